/*
 * Receipts of one simulated daemon, as daemon/receipts.ts makes them: each is signed, links to the one before it, stands in the ledger
 * before the step that it permits, and is sent with its whole chain until it is answered.
 */
import type { CommandFacts, LedgerRecord, TypedReceipt } from '../../../daemon/ledger/records.ts';
import type { CommandId } from '../../../helpers/protocol/ids.ts';
import type { KnownOutcome, Outcome } from '../../values.ts';
import type { Daemon } from './daemon.ts';
import { digestOf, hexOf } from './digests.ts';
import { headText } from './disk.ts';
import { acknowledgedRecord } from './ledger-facts.ts';
import type { Question, Receipt, Result } from './messages.ts';
import type { Finished } from './operation.ts';

type Said =
  | { readonly type: 'machine.accepted' | 'machine.started' }
  | { readonly type: 'machine.result'; readonly outcome: KnownOutcome }
  | { readonly type: 'machine.refused'; readonly code: string };

/** How a receipt of an ending is delivered. */
interface Delivery {
  readonly late?: boolean;
  /** Undefined where no proved answer came. */
  readonly answered?: (verdict: 'settled' | 'refused' | undefined) => void;
}

/** A chain as it is sent. */
export type Chain = Omit<Extract<Question, { readonly ask: 'receipts' }>, 'ask'>;

/** Chains that are remembered for whoever repeats them. */
const REMEMBERED = 20;

const nothing = (): void => undefined;

/** Receipts of one process. */
export class MachineReceipts {
  readonly #daemon: Daemon;
  /** The newest chains that were sent. */
  said: readonly Chain[] = [];

  constructor(daemon: Daemon) {
    this.#daemon = daemon;
  }

  accept(facts: CommandFacts, done: () => void, failed: () => void): void {
    const { signed } = this.#sign(facts, { type: 'machine.accepted' });
    this.#append({ kind: 'accepted', at: this.#now(), facts, receipt: signed }, done, failed);
  }

  start(facts: CommandFacts, done: () => void, failed: () => void): void {
    const { signed } = this.#sign(facts, { type: 'machine.started' });
    this.#append({ kind: 'started', at: this.#now(), command: facts.command, receipt: signed }, done, failed);
  }

  end(facts: CommandFacts, finished: Finished, done: () => void, failed: () => void): void {
    const { outcome, code, manifestDigest, acceptable } = finished;
    if (outcome === 'unknown') return this.endUnknown(facts, done, failed);
    const result = { failure: code, manifestDigest, acceptable };
    const receipt = this.#sign(facts, { type: 'machine.result', outcome }, result);
    this.#ended(facts, { outcome, code, resultDigest: null }, receipt, done, failed);
  }

  /** That a command will not run, or that its refused result is replaced. */
  refuse(
    facts: CommandFacts,
    { outcome, code }: { readonly outcome: Outcome | 'unknown'; readonly code: string },
    done: () => void,
    failed: () => void = nothing,
  ): void {
    const receipt = this.#sign(facts, { type: 'machine.refused', code });
    const known = this.#daemon.ledger.memory.commands.get(facts.command);
    if (known && known.phase !== 'reserved')
      return this.#ended(facts, { outcome, code, resultDigest: null }, receipt, done, failed);
    this.#append({ kind: 'refused', at: this.#now(), facts, code, receipt: receipt.signed }, done, failed);
  }

  /** That nobody knows how it ended: there is no receipt of that. */
  endUnknown(facts: CommandFacts, done: () => void, failed: () => void): void {
    const ended = { outcome: 'unknown', code: null, resultDigest: null } as const;
    this.#append({ kind: 'ended', at: this.#now(), command: facts.command, ended, receipt: null }, done, failed);
  }

  /** Tells of progress through the chain before the ending is there. */
  tell(command: CommandId): void {
    const receipts = this.#chain(command);
    if (receipts.length === 0) return;
    this.#daemon.channel?.ask(this.#say({ command, receipts, late: false, result: undefined }), nothing);
  }

  /** Sends the whole chain and records the countersignature. */
  deliver(command: CommandId, { late = false, answered = nothing }: Delivery): void {
    const { channel } = this.#daemon;
    const receipts = this.#chain(command);
    if (!channel || receipts.length === 0) return this.#daemon.later(0, () => answered(undefined));
    const result = receipts.at(-1)?.result;
    channel.ask(
      this.#say({ command, receipts, late, result }),
      (answer) => {
        const verdict = answer.answer === 'acknowledged' ? answer.verdict : undefined;
        if (verdict !== 'settled') return answered(verdict);
        this.#append(
          acknowledgedRecord(command, this.#now()),
          () => answered('settled'),
          () => answered(undefined),
        );
      },
      () => this.#daemon.later(0, () => answered(undefined)),
    );
  }

  #say(chain: Chain): Question {
    this.said = [...this.said.slice(-REMEMBERED), chain];
    return { ask: 'receipts', ...chain };
  }

  #chain(command: CommandId): readonly Receipt[] {
    const { ledger, setting } = this.#daemon;
    return setting.signatures.open(ledger.memory.commands.get(command)?.receipts ?? []);
  }

  #ended(
    facts: CommandFacts,
    ended: Extract<LedgerRecord, { kind: 'ended' }>['ended'],
    receipt: TypedReceipt,
    done: () => void,
    failed: () => void,
  ): void {
    this.#append({ kind: 'ended', at: this.#now(), command: facts.command, ended, receipt }, done, failed);
  }

  #append(record: LedgerRecord, done: () => void, failed: () => void): void {
    const { ledger } = this.#daemon;
    const alive = (then: () => void) => () => {
      if (this.#daemon.alive) then();
    };
    ledger.append(record, alive(done), alive(failed));
  }

  #sign(facts: CommandFacts, said: Said, result?: Result): TypedReceipt {
    const { computer, ledger, setting } = this.#daemon;
    const { disk } = computer;
    disk.guard += 1;
    const last = this.#chain(facts.command).at(-1);
    const { count, head } = ledger.standing;
    const stated = said.type === 'machine.result' ? { ledgerCount: count, ledgerHead: headText(head) } : {};
    const receipt: Receipt = {
      ...said,
      result,
      executor: computer.executor,
      command: facts.command,
      epoch: facts.epoch,
      digest: digestOf(setting.fresh('receipt')),
      // The lease that came with the command is the first statement of its chain.
      previous: last?.digest ?? hexOf(facts.leasedDigest),
      stated: { guard: disk.guard, ...stated },
    };
    setting.watch.signed(receipt, this.#daemon);
    return setting.signatures.sign(receipt);
  }

  #now(): number {
    return this.#daemon.computer.clockNow();
  }
}
