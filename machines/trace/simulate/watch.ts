/*
 * The invariants of the product, watched while a simulated world runs: each is looked at when something happens that could break it.
 *
 *   1 once          a side effect happens at most once for an idempotency key, whatever crashes, repeats or reconnects
 *   2 permitted     nothing begins that both gates do not permit at the moment of the step; a withdrawal holds within a second of a
 *                   working control lane, and where that is cut no step begins after 3 s and nothing runs after 60 s
 *   3 bound         a run never moves to another machine; a result is believed from the connection and chain that accepted the command
 *   4 final         no terminal state changes, except an unknown outcome, once; no outcome says what did not happen
 *   5 tree          the person's tree is the old one or the approved one
 *   6 drafts        no call of an agent writes outside a draft
 *   8 recorded      every decision is recorded before the right takes effect
 *   9 monotonic     epochs, fences, the counters of keys and what is remembered of ledgers never fall
 *  10 ends          every command ends: none stays open past its time
 *  11 administrator a private machine keeps an administrator
 *  12 pairing       an executor has the one key that people on both sides confirmed, and a pairing makes one executor
 *
 * The seventh of design section 8 (nothing of the host leaves it) is about the lines of the trace, and is watched over them.
 */
import type { Remembered } from '../../../server/channel/rules.ts';
import { isOpen, stateName } from '../../../server/commands/rules.ts';
import type { Computer } from './computer.ts';
import type { Daemon } from './daemon.ts';
import { headText } from './disk.ts';
import { CONTROL_SILENCE_MS } from '../../daemon/connection.ts';
import { agentOperations, availabilityFacts, PROMOTE } from './facts.ts';
import type { Frame, Proof, Receipt } from './messages.ts';
import type { Finished } from './operation.ts';
import type { CommandRow, ExecutorRow, PromotionRow, Tables } from './tables.ts';
import { CONTROL_HOLD_MS } from './times.ts';

/** What did not hold, and when. */
export interface Violation {
  readonly invariant: string;
  readonly says: string;
  /** ms from the start of the world. */
  readonly at: number;
  /** Deciding events before it. */
  readonly after: number;
}

/** What truly happened to a command. */
interface Truth {
  readonly frame: Frame;
  readonly host: Daemon;
  effects: number;
  finished: Finished | undefined;
  /** Whether it was asked to stop. */
  stopping: boolean;
}

/** What a watch needs of its world. */
export interface Watched {
  now(): number;
  deciding(): number;
  later(ms: number, then: () => void): void;
  /** Whether the control lane of a machine is well. */
  isHeard(executor: string): boolean;
  /** How long a process of the control plane has been there without a gap, in ms. */
  servedFor(): number;
  row<Name extends keyof Tables>(table: Name, id: string): Tables[Name] | undefined;
}

/** How long after its deadline a command may be open, in ms: a sweep, a lock, a process that starts again. */
const SETTLES_MS = 90_000;
/** A withdrawal holds on a working lane within this, in ms. */
const WITHDRAWN_MS = 1000;
/** How long a step may take that began in time: a check of the gate, a record. */
const STEP_MS = 50;
/** Without a working lane no step begins after this, in ms. */
const SILENT_MS = CONTROL_SILENCE_MS + CONTROL_HOLD_MS;
/** And nothing runs after this, in ms: the minute, the grace of a stop, and its notice. */
const ENDED_MS = 60_000 + CONTROL_HOLD_MS + 2100;

/** Watches one world. */
export class Watch {
  readonly #world: Watched;
  readonly violations: Violation[] = [];
  readonly #truths = new Map<string, Truth>();
  readonly #effects = new Map<string, number>();
  readonly #signed = new Map<string, { readonly receipt: Receipt; readonly host: Computer }>();
  /** Operations that were taken from a machine, by `executor operation`: when, and whether its lane was well ever since. */
  readonly #withdrawn = new Map<string, { readonly at: number; lane: boolean }>();
  readonly #outcomes = new Map<string, string>();
  readonly #claims = new Map<string, { readonly fingerprint: string; readonly claimDigest: string }>();
  readonly #confirmed = new Set<string>();
  readonly #paired = new Set<string>();
  /** Commands that a copy of a machine spoke of. Until the two differ a copy is the machine: what it says then is nobody else's lie. */
  readonly #byCopies = new Set<string>();
  readonly #proofs = new WeakMap<Proof, Computer>();
  readonly #highFences = new Map<string, number>();

  constructor(world: Watched) {
    this.#world = world;
  }

  /** Notes that something did not hold. */
  broken(invariant: string, says: string): void {
    this.violations.push({ invariant, says, at: this.#world.now(), after: this.#world.deciding() });
  }

  /** How often a command had its effect. */
  effectsOf(command: string): number {
    return this.#truths.get(command)?.effects ?? 0;
  }

  /** A row is about to be committed. */
  stored(table: keyof Tables, before: unknown, after: unknown, audit: readonly string[]): void {
    // The store gives rows of the table that it names.
    if (table === 'executors') this.#executor(before as ExecutorRow | undefined, after as ExecutorRow, audit);
    // As above.
    if (table === 'commands') this.#command(before as CommandRow | undefined, after as CommandRow, audit);
    // As above.
    if (table === 'runs') this.#run(before as Tables['runs'] | undefined, after as Tables['runs']);
    // As above.
    if (table === 'promotions') this.#promotion(before as PromotionRow | undefined, after as PromotionRow);
  }

  /** A command has this much time, in ms; some while after it, it must have ended. */
  deadline(command: string, ms: number): void {
    this.#world.later(ms + SETTLES_MS, () => {
      const state = this.#outcomes.get(command);
      if (state === undefined || !isOpen(state)) return;
      // While no process of the control plane is there, nobody can end anything.
      if (this.#world.servedFor() < SETTLES_MS) this.deadline(command, 0);
      else this.broken('10 ends', `${command} is still ${state}`);
    });
  }

  /** A machine signed a receipt. */
  signed(receipt: Receipt, daemon: Daemon): void {
    this.#signed.set(receipt.digest, { receipt, host: daemon.computer });
    if (daemon.computer.isCopy) this.#byCopies.add(receipt.command);
    const truth = this.#truths.get(receipt.command);
    if (
      receipt.type === 'machine.result' &&
      receipt.outcome === 'succeeded' &&
      truth?.finished?.outcome !== 'succeeded'
    )
      this.broken('4 final', `${receipt.command} is told as a success and was none`);
  }

  /** A person on the page claims a pairing for the key that was shown. */
  claims(pairing: string, fingerprint: string, claimDigest: string): void {
    this.#claims.set(pairing, { fingerprint, claimDigest });
  }

  /** A machine confirms a claim that a person there was shown. */
  confirms(pairing: string, claimDigest: string): void {
    this.#confirmed.add(`${pairing} ${claimDigest}`);
  }

  /** An executor is made of a pairing. */
  pairs(pairing: string, executor: string, fingerprint: string): void {
    const claim = this.#claims.get(pairing);
    if (claim?.fingerprint !== fingerprint || !this.#confirmed.has(`${pairing} ${claim.claimDigest}`))
      this.broken('12 pairing', `${executor} is made with a key that one side did not confirm`);
    if (this.#paired.has(pairing)) this.broken('12 pairing', `${pairing} makes a second executor`);
    this.#paired.add(pairing);
  }

  /** A machine proves its key. */
  proves(proof: Proof, host: Computer): void {
    this.#proofs.set(proof, host);
  }

  /** A machine is let in by a proof: its ledger must go on from what is remembered of it. */
  admitted(proof: Proof, { ledgerCount, ledgerHead }: Remembered): void {
    const { ledger } = this.#proofs.get(proof)?.disk ?? { ledger: [] };
    const entry = ledger[ledgerCount - 1];
    if (ledgerCount > 0 && (!entry || headText(entry.head) !== ledgerHead))
      this.broken('3 bound', `${proof.executor} is let in with a ledger that is not its own`);
  }

  /** The control plane believes receipts of a command. */
  believed(row: CommandRow, receipts: readonly Receipt[]): void {
    const hosts = new Set<Computer>();
    let last = '';
    for (const { type, digest } of row.chain) {
      const known = this.#signed.get(digest);
      if (known && known.receipt.previous !== last)
        this.broken('3 bound', `${row.id} is believed with a gap in its chain`);
      if (type !== 'control.command' && type !== 'control.acknowledged') last = digest;
      if (known) hosts.add(known.host);
      if (!type.startsWith('machine.')) continue;
      const { executor, command, epoch } = known?.receipt ?? {};
      if (executor !== row.executor || command !== row.id || epoch !== row.epoch)
        this.broken('3 bound', `${row.id} is believed of another machine, command or connection`);
    }
    const copied = [...hosts].some((host) => host.isCopy);
    if (hosts.size > 1 && !copied) this.broken('3 bound', `${row.id} was reported by two machines in one chain`);
    if (receipts.length === 0) this.broken('3 bound', `${row.id} changed by no receipt`);
  }

  /** A machine hears nothing from now on: after a minute of that nothing may run on it. */
  silent(host: Daemon): void {
    this.#world.later(ENDED_MS, () => {
      if (!host.alive || host.silentFor < ENDED_MS - CONTROL_HOLD_MS || host.computer.wakesIn > 0) return;
      for (const { frame, host: other, finished, stopping } of this.#truths.values())
        if (other === host && !finished && !stopping)
          this.broken('2 permitted', `${frame.command} runs after a minute of silence`);
    });
  }

  /** An operation begins, once and for all. */
  begins(host: Daemon, frame: Frame): void {
    const { command, operation, executor } = frame;
    if (this.#truths.has(command)) this.broken('1 once', `${command} begins again`);
    this.#truths.set(command, { frame, host, effects: 0, finished: undefined, stopping: false });
    if (executor !== host.computer.executor) this.broken('3 bound', `${command} begins on another machine`);
    // A change in the very moment of the step is one after it.
    const narrowed = !host.permits(operation) && this.#world.now() - host.computer.policyAt > STEP_MS;
    if (narrowed) this.broken('2 permitted', `${command} begins against the policy of its machine`);
    if (host.computer.trueNow() > frame.expiresAt) this.broken('2 permitted', `${command} begins after its time`);
    const { ledger } = host.computer.disk;
    if (host.channel?.epoch !== frame.epoch) this.broken('3 bound', `${command} begins on a connection that is over`);
    if (host.silentFor > CONTROL_SILENCE_MS + STEP_MS)
      this.broken('2 permitted', `${command} begins after ${host.silentFor} ms of silence`);
    const recorded = ledger.some(({ record }) => record.kind === 'started' && record.command === command);
    if (!recorded) this.broken('8 recorded', `${command} begins without a record`);
    const withdrawn = this.#withdrawn.get(`${executor} ${operation}`);
    if (!withdrawn) return;
    const age = this.#world.now() - withdrawn.at;
    if (age > SILENT_MS || (withdrawn.lane && age > WITHDRAWN_MS))
      this.broken('2 permitted', `${command} begins ${age} ms after ${operation} was withdrawn`);
  }

  /** The operation of a command was asked to stop. */
  stopped(command: string): void {
    const truth = this.#truths.get(command);
    if (truth) truth.stopping = true;
  }

  /** Something outside changes by a command. */
  effect({ command, idempotencyKey, operation }: Frame, where: 'draft' | 'tree'): void {
    const truth = this.#truths.get(command);
    if (truth) truth.effects += 1;
    const times = (this.#effects.get(idempotencyKey) ?? 0) + 1;
    this.#effects.set(idempotencyKey, times);
    if (times > 1) this.broken('1 once', `${idempotencyKey} has its effect again`);
    if ((where === 'tree') !== (operation === PROMOTE)) this.broken('6 drafts', `${command} writes to the ${where}`);
    if (this.#byCopies.has(command)) return;
    const outcome = this.#outcomes.get(command) ?? 'none';
    if (['refused', 'cancelled', 'expired', 'none'].includes(outcome))
      this.broken('4 final', `${command} has its effect and is told as ${outcome}`);
  }

  ended({ command }: Frame, finished: Finished): void {
    const truth = this.#truths.get(command);
    if (truth) truth.finished = finished;
  }

  /** A machine settles what a promotion left when its process died. */
  recovered({ disk }: Computer, { promotion, committed }: NonNullable<Computer['disk']['journal']>): void {
    if ((disk.tree === promotion) !== committed) this.broken('5 tree', `a recovery leaves neither tree: ${promotion}`);
  }

  /** The control lane of a machine is not well: what was withdrawn meanwhile may take longer to hold. */
  troubled(executor: string): void {
    for (const [key, withdrawn] of this.#withdrawn) if (key.startsWith(`${executor} `)) withdrawn.lane = false;
  }

  #executor(before: ExecutorRow | undefined, after: ExecutorRow, audit: readonly string[]): void {
    const { id, stored } = after;
    const state = stateName(stored.value);
    if (after.administrators.length === 0 && state !== 'revoked')
      this.broken('11 administrator', `${id} has no administrator`);
    if (!before) return;
    const earlier = before.stored.context;
    const changed = stateName(before.stored.value) !== state;
    const raised = stored.context.epoch - earlier.epoch;
    if (raised < 0) this.broken('9 monotonic', `the epoch of ${id} falls`);
    if (changed && raised === 0) this.broken('9 monotonic', `the epoch of ${id} stands while its state changes`);
    if (
      after.remembered.guard < before.remembered.guard ||
      after.remembered.ledgerCount < before.remembered.ledgerCount
    )
      this.broken('9 monotonic', `what is remembered of ${id} falls`);
    if (stateName(before.stored.value) === 'revoked' && changed)
      this.broken('4 final', `${id} comes back from its end`);
    const decides = changed || before.granted !== after.granted || before.confirmed !== after.confirmed;
    if (decides && audit.length === 0) this.broken('8 recorded', `a decision about ${id} stands without a record`);
    for (const operation of [...agentOperations, PROMOTE]) this.#given(before, after, operation);
  }

  #given(before: ExecutorRow, after: ExecutorRow, operation: string): void {
    const key = `${after.id} ${operation}`;
    const given = isGiven(after, operation);
    if (given) this.#withdrawn.delete(key);
    else if (isGiven(before, operation)) {
      const withdrawn = { at: this.#world.now(), lane: this.#world.isHeard(after.id) };
      this.#withdrawn.set(key, withdrawn);
      this.#world.later(WITHDRAWN_MS, () => {
        if (withdrawn.lane)
          this.#stillRuns(key, withdrawn, (stopping) => !stopping, 'was not asked to stop within a second');
      });
      this.#world.later(ENDED_MS, () => this.#stillRuns(key, withdrawn, () => true, 'runs a minute later'));
    }
  }

  #stillRuns(key: string, withdrawn: object, isWrong: (stopping: boolean) => boolean, says: string): void {
    if (this.#withdrawn.get(key) !== withdrawn) return;
    for (const { frame, host, finished, stopping } of this.#truths.values()) {
      if (finished || !host.alive || host.computer.wakesIn > 0 || `${frame.executor} ${frame.operation}` !== key)
        continue;
      if (isWrong(stopping)) this.broken('2 permitted', `${frame.command} ${says} after its operation was withdrawn`);
    }
  }

  #command(before: CommandRow | undefined, after: CommandRow, audit: readonly string[]): void {
    const { id } = after;
    const from = before && stateName(before.stored.value);
    const to = stateName(after.stored.value);
    this.#outcomes.set(id, to);
    if (!before) return;
    if (before.executor !== after.executor) this.broken('3 bound', `${id} moves to another machine`);
    if (before.epoch !== null && before.epoch !== after.epoch)
      this.broken('3 bound', `${id} moves to another connection`);
    if (from === to || from === undefined) return;
    if (to === 'leased') this.#leased(after, audit);
    if (!isOpen(from) && (from !== 'unknown' || isOpen(to)))
      this.broken('4 final', `${id} was ${from} and becomes ${to}`);
    if (!isOpen(to)) this.#true(id, to);
  }

  #leased({ id, executor, epoch }: CommandRow, audit: readonly string[]): void {
    if (!audit.includes('command.leased')) this.broken('8 recorded', `${id} is leased without a record`);
    if (this.#world.row('executors', executor)?.stored.context.epoch !== epoch)
      this.broken('3 bound', `${id} is leased to a connection that is over`);
  }

  /** Whether an outcome that is told is what happened. */
  #true(id: string, outcome: string): void {
    const truth = this.#truths.get(id);
    const effects = truth?.effects ?? 0;
    if (outcome === 'succeeded' && truth?.finished?.outcome !== 'succeeded')
      this.broken('4 final', `${id} is told as a success and was none`);
    if (this.#byCopies.has(id)) return;
    const untrue = ['refused', 'cancelled', 'expired'].includes(outcome) && effects > 0;
    if (untrue) this.broken('4 final', `${id} is told as ${outcome} and had its effect`);
  }

  #run(before: Tables['runs'] | undefined, after: Tables['runs']): void {
    if (before && before.executor !== after.executor) this.broken('3 bound', `${after.id} moves to another machine`);
    for (const [operation, { fence, id }] of Object.entries(after.bindings)) {
      const earlier = before?.bindings[operation];
      if (earlier && earlier.id !== id) this.broken('3 bound', `${after.id} gets another binding`);
      if (earlier) continue;
      const high = this.#highFences.get(after.executor) ?? 0;
      if (fence <= high) this.broken('9 monotonic', `the fence of ${after.id} falls`);
      this.#highFences.set(after.executor, Math.max(high, fence));
    }
  }

  #promotion(before: PromotionRow | undefined, after: PromotionRow): void {
    const to = stateName(after.stored.value);
    if (before?.stored.status === 'done' && before.stored !== after.stored)
      this.broken('4 final', `${after.id} changes after its end`);
    const truth = this.#truths.get(after.command ?? '');
    const applied = truth?.effects === 1 && truth.finished?.manifestDigest === after.stored.context.manifestDigest;
    if (to === 'promoted' && !applied) this.broken('5 tree', `${after.id} is told as promoted and the tree is another`);
    const row = this.#world.row('executors', after.executor);
    const stale = row?.authorizationRevision !== after.facts.authorizationRevision;
    if (to === 'dispatched' && before && stateName(before.stored.value) === 'prepared' && stale)
      this.broken('2 permitted', `${after.id} is sent under access that changed since it was prepared`);
  }
}

/** Whether an operation is given on a machine, whether or not it is online. */
function isGiven(row: ExecutorRow, operation: string): boolean {
  const facts = availabilityFacts(row, operation);
  const state = stateName(row.stored.value);
  return (
    facts.discoverable &&
    facts.granted &&
    facts.approved &&
    facts.permittedLocally &&
    state !== 'revoked' &&
    state !== 'error'
  );
}
