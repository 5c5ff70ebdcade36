/*
 * A paired executor at work: the daemon's machine as a running actor, with the lanes of each session and the turns of its
 * commands around it.
 */
import { createActor } from 'xstate';
import type { ActorRefFrom, AnyActorRef, InspectionEvent } from 'xstate';
import { faultLines } from '../machines/daemon/faults.ts';
import type { daemonMachine } from '../machines/daemon/machine.ts';
import { commandIdSchema } from '../helpers/protocol/ids.ts';
import type { CommandId, ExecutorId, RunId } from '../helpers/protocol/ids.ts';
import type { Statement } from '../helpers/protocol/statements.ts';
import type { CommandFrame } from '../server/protocol.ts';
import type { ControlChannel } from '../actors/control-plane.ts';
import type { Core } from './core.ts';
import { ensureStated, submitDescriptor } from './descriptor.ts';
import type { Executions } from './executions.ts';
import { checkCommand } from './gate.ts';
import type { CommandFacts } from './ledger/records.ts';
import { runLanes } from './lanes.ts';
import { provideDaemon } from './provide.ts';
import type { Receipts } from './receipts.ts';
import { RecordsUnwritable } from './records.ts';
import { Scheduler } from './scheduler.ts';
import type { Sessions } from './session.ts';

type DaemonActor = ActorRefFrom<typeof daemonMachine>;

/** What the control lane last said, for `status`. */
export interface Heard {
  readonly standing: Statement<'control.answer'>['standing'] | 'unknown';
  readonly at: number | null;
}

/** Takes one line for the log: a closed code and a sentence without content, paths or keys. */
export type Note = (code: string, sentence: string) => void;

/** One executor of this daemon. */
export class Executor {
  readonly id: ExecutorId;
  readonly actor: DaemonActor;
  readonly executions: Executions;
  readonly #core: Core;
  readonly #note: Note;
  readonly #sessions: Sessions;
  readonly #receipts: Receipts;
  readonly #scheduler: Scheduler;
  readonly #free = new Set<() => void>();
  #lastReason = '';
  /** A revision could not be recorded, so an older one is stated. */
  #statesOld = false;
  heard: Heard = { standing: 'unknown', at: null };

  /** `note` takes what a person may want to read in the log. */
  constructor(core: Core, id: ExecutorId, inspect: (event: InspectionEvent) => void, note: Note) {
    this.id = id;
    this.#note = note;
    this.#core = core;
    const { sessions, executions, receipts } = core.forExecutor(id);
    this.#sessions = sessions;
    this.#receipts = receipts;
    this.executions = executions;
    this.#scheduler = new Scheduler(
      () => this.#limit,
      (commandId) => this.actor.send({ type: 'work.turn', commandId }),
    );
    const machine = provideDaemon({
      promotions: core.promotions,
      sessions,
      executions,
      openLedger: () => core.openLedger(() => this.actor.send({ type: 'ledger.damaged' })),
      closeLedger: () => core.closeLedger(),
      prepare: () => this.#prepare(),
      connected: () => this.#connected(),
      postponed: (error) => this.#noteOnce('RECOVERY_POSTPONED', error),
      unconnected: (error) => this.#noteOnce('NOT_CONNECTED', error),
    });
    this.actor = createActor(machine, {
      id: 'daemon',
      input: { executorId: id },
      inspect: (event) => {
        // What a machine spawns or invokes is an actor of this system, with id, events and an end.
        if (event.type === '@xstate.actor') this.#follow(event.actorRef as AnyActorRef);
        inspect(event);
      },
    });
    this.actor.on('daemon.work-refused', ({ commandId, code }) => void this.#refuseHeld(commandId, code));
    this.actor.on('daemon.work-repeated', ({ commandId }) => void this.#tellAgain(commandId));
    this.actor.on('daemon.faulted', ({ fault }) => {
      note(fault, faultLines[fault].join(' '));
      sessions.close('the machine is in its error state');
    });
  }

  /** Channel of the session of the moment. */
  get channel(): ControlChannel | undefined {
    return this.#sessions.channel;
  }

  /** The next session is proved with the next key. */
  proveWithNext(): void {
    this.#sessions.proveWithNext();
  }

  /** The owner's policy changed: what it narrows holds at once, and the machine states itself anew. */
  async policyChanged(): Promise<void> {
    const { channel } = this.#sessions;
    await this.#prepare();
    if (channel && channel.epoch > 0) await this.#submit();
  }

  /** Follows the machine of one command: its turn is asked for when it is accepted and given back when it ends. */
  #follow(actor: AnyActorRef): void {
    if (!actor.id.startsWith('command-')) return;
    const command = commandIdSchema.parse(actor.id.slice('command-'.length));
    const run = this.executions.factsOf(command)?.run;
    if (run === undefined) return;
    actor.on('execution.phase', ({ phase }: { phase?: unknown }) => {
      if (phase === 'accepted-pending') this.#scheduler.enqueue(run, command);
    });
    actor.subscribe({ complete: () => this.#closed(run, command), error: () => this.#closed(run, command) });
  }

  #closed(run: RunId, command: CommandId): void {
    this.executions.release(command);
    this.#scheduler.release(run, command);
    for (const resolve of this.#free) resolve();
    this.#free.clear();
  }

  get #limit(): number {
    return this.#core.standing.policy?.limits.concurrentCommands ?? 1;
  }

  /** Root and policy are looked at before each handshake; where they cannot be, the machine connects and says what it last stated. */
  async #prepare(): Promise<void> {
    const root = await this.#core.root().catch(() => undefined);
    const { standing } = this.#core;
    const { policy } = standing;
    if (root && policy) this.#statesOld = !this.#recorded(() => void ensureStated(standing, policy, root));
  }

  /** Says why something that is tried again does not come about, once for each reason. */
  #noteOnce(code: string, error: unknown): void {
    const reason = error instanceof Error ? causesOf(error) : 'unknown failure';
    if (reason !== this.#lastReason) this.#note(code, reason);
    this.#lastReason = reason;
  }

  #connected(): void {
    this.#lastReason = '';
    const { channel } = this.#sessions;
    if (!channel) return;
    void this.#submit().catch((error: unknown) => channel.end('descriptor was not taken', error));
    const lanes = runLanes(
      {
        executor: this.id,
        sessions: this.#sessions,
        keyStore: () => this.#core.keyStore.client,
        ledger: this.#core.ledger,
        clock: this.#core.clock,
        capacity: () => this.#capacity(),
        heard: (answer) => this.#hear(answer),
        delivered: (frames) => this.#deliver(frames),
      },
      channel,
    );
    void lanes.then((end) => {
      this.#note('CONNECTION_ENDED', causesOf(end));
      this.actor.send({ type: 'connection.lost' });
    });
  }

  /** A change of the records that cannot be written is none, and is told; it is tried again when the control plane is heard next. */
  #recorded(change: () => void): boolean {
    try {
      change();
      return true;
    } catch (error) {
      if (!(error instanceof RecordsUnwritable)) throw error;
      this.#note(error.code, error.message);
      return false;
    }
  }

  async #submit(): Promise<void> {
    const { stated, confirmed } = this.#core.standing;
    const { channel } = this.#sessions;
    if (!channel || !stated || stated.revision === confirmed?.revision) return;
    await submitDescriptor(channel, this.#core.keyStore.client, this.id, stated, this.#core.clock.now());
  }

  async #capacity(): Promise<number> {
    for (;;) {
      const free = Math.min(64, this.#limit * 2 - this.#scheduler.held);
      if (free > 0) return free;
      await new Promise<void>((resolve) => this.#free.add(resolve));
    }
  }

  #hear(answer: Statement<'control.answer'>): void {
    this.heard = { standing: answer.standing, at: Date.now() };
    this.#recorded(() => this.#core.standing.confirm(answer.confirmedRevision, answer.confirmedPolicyDigest));
    if (this.#statesOld)
      void this.policyChanged().catch((error: unknown) =>
        this.#sessions.channel?.end('descriptor was not taken', error),
      );
    for (const commandId of answer.cancel) this.actor.send({ type: 'control.cancel', commandId });
    if (answer.standing === 'revoked') this.actor.send({ type: 'control.revoked' });
    else if (answer.standing === 'fenced' || answer.epoch !== this.#sessions.channel?.epoch)
      this.actor.send({ type: 'control.fenced' });
    else this.actor.send({ type: 'control.answered', standing: answer.standing });
  }

  async #deliver(frames: readonly CommandFrame[]): Promise<void> {
    for (const frame of frames) {
      const verdict = checkCommand(frame, this.#core.gateFacts(this.id));
      if (verdict.permitted)
        this.actor.send({ type: 'work.received', execution: this.executions.admit(verdict.command) });
      else if (verdict.gate === 'repeat') await this.#repeat(verdict.facts);
      else if (verdict.facts) await this.#refuse(verdict.facts, verdict.code);
      // THREAT: an envelope that the pinned key did not sign has nobody to be answered; whoever sent it is not the control plane.
      else throw new TypeError(`delivered command refused: ${verdict.code}`);
    }
  }

  async #refuse(facts: CommandFacts, code: string): Promise<void> {
    // A known id with other bytes must not touch the record of the command that it imitates.
    if (this.#core.ledger.memory.commands.has(facts.command)) return;
    await this.#receipts.refuse(facts, { outcome: 'refused', code, resultDigest: null });
    const { channel } = this.#sessions;
    if (channel) await this.#receipts.deliver(channel, facts.command, { result: undefined, late: false });
  }

  async #refuseHeld(commandId: string, code: string): Promise<void> {
    const facts = this.executions.factsOf(commandId);
    this.executions.release(commandId);
    if (facts) await this.#refuse(facts, code).catch(() => undefined);
  }

  async #repeat(facts: CommandFacts): Promise<void> {
    const held = this.#core.ledger.memory.commands.get(facts.command);
    if (held && held.phase !== 'acknowledged') await this.#tellAgain(facts.command);
  }

  async #tellAgain(commandId: string): Promise<void> {
    const { channel } = this.#sessions;
    // Receipts travel again with the result; a repetition that fails is repeated by the control plane.
    if (channel) await this.#receipts.tell(channel, commandIdSchema.parse(commandId)).catch(() => undefined);
  }
}

/** The sentences of an error and of its causes, joined; every one of them was written here. */
function causesOf(error: Error): string {
  const { cause } = error;
  return cause instanceof Error ? `${error.message}: ${causesOf(cause)}` : error.message;
}
