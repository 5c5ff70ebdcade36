/*
 * The machine's receipts: each is signed by key-store, links to the one before it, and stands in the ledger before the step
 * that it permits. leased (signed by the control plane) -> accepted -> started -> result, or refused in place of what follows.
 */
import { signStatement } from '../actors/key-store.ts';
import type { KeyStoreClient } from '../actors/key-store.ts';
import { HelperGone } from '../actors/helper-client.ts';
import type { ControlChannel } from '../actors/control-plane.ts';
import type { CommandId, ExecutorId } from '../helpers/protocol/ids.ts';
import { statementDigest } from '../helpers/protocol/signed.ts';
import type { AdmittedKey, Signed } from '../helpers/protocol/signed.ts';
import { openStatement } from '../helpers/protocol/statements.ts';
import type { Outcome } from '../helpers/protocol/statements.ts';
import type { ControlClock } from './clock.ts';
import type { Ledger } from './ledger/ledger.ts';
import type { CommandFacts, Ended, TypedReceipt } from './ledger/records.ts';
import { PeerAbsent } from './peers.ts';
import { AnswerUnproved } from './session.ts';

const SIGN_MS = 5000;
const DELIVER_MS = 15_000;

/** What making and sending receipts needs. */
export interface ReceiptParts {
  readonly executor: ExecutorId;
  readonly commandKey: () => AdmittedKey;
  /** Waits for key-store where it is being started again. */
  readonly signer: () => Promise<KeyStoreClient>;
  readonly ledger: () => Ledger;
  readonly clock: () => ControlClock;
}

/** Receipts of one daemon. */
export class Receipts {
  readonly #parts: ReceiptParts;

  constructor(parts: ReceiptParts) {
    this.#parts = parts;
  }

  /** Records `accepted`: durable when it resolves. */
  async accept(facts: CommandFacts): Promise<void> {
    const receipt = await this.#sign('machine.accepted', facts, {});
    await this.#parts.ledger().append({ kind: 'accepted', at: this.#now(), facts, receipt });
  }

  /** Records `started`: durable when it resolves. */
  async start(facts: CommandFacts): Promise<void> {
    const receipt = await this.#sign('machine.started', facts, {});
    await this.#parts.ledger().append({ kind: 'started', at: this.#now(), command: facts.command, receipt });
  }

  /** Records how a started command ended. */
  async end(facts: CommandFacts, ended: Ended & { outcome: Outcome; resultDigest: Uint8Array }): Promise<void> {
    const { count, head } = this.#parts.ledger().standing;
    const signed = await this.#sign('machine.result', facts, {
      outcome: ended.outcome,
      resultDigest: ended.resultDigest,
      ledgerCount: count,
      ledgerHead: head,
    });
    await this.#appendEnded(facts, ended, { type: 'machine.result', signed });
  }

  /** Records that a command will not run, or that its refused result is replaced; `code` says which check or why. */
  async refuse(facts: CommandFacts, ended: Ended & { code: string }): Promise<void> {
    const signed = await this.#sign('machine.refused', facts, { code: ended.code });
    const known = this.#parts.ledger().memory.commands.get(facts.command);
    if (known && known.phase !== 'reserved') {
      await this.#appendEnded(facts, ended, { type: 'machine.refused', signed });
    } else {
      await this.#parts.ledger().append({ kind: 'refused', at: this.#now(), facts, code: ended.code, receipt: signed });
    }
  }

  /** Records that nobody knows how it ended. There is no receipt: an unknown outcome is never sent as if it were known. */
  async endUnknown(facts: CommandFacts): Promise<void> {
    const ended: Ended = { outcome: 'unknown', code: null, resultDigest: null };
    await this.#parts.ledger().append({ kind: 'ended', at: this.#now(), command: facts.command, ended, receipt: null });
  }

  /** Tells of progress through the chain before the result is there; nothing waits for it. */
  async tell(channel: ControlChannel, command: CommandId): Promise<void> {
    const receipts = [...(this.#parts.ledger().memory.commands.get(command)?.receipts ?? [])];
    if (receipts.length > 0) await channel.ask('receipts', { command, receipts, late: false }, DELIVER_MS);
  }

  /** Sends the whole chain and records the countersignature. Rejects when no proved answer came. */
  async deliver(
    channel: ControlChannel,
    command: CommandId,
    delivery: { result: Uint8Array | undefined; late: boolean },
  ): Promise<'settled' | 'refused'> {
    const receipts = [...(this.#parts.ledger().memory.commands.get(command)?.receipts ?? [])];
    const last = receipts.at(-1);
    if (!last) throw new RangeError('command has no receipt to deliver');
    const withResult = last.type === 'machine.result' && delivery.result ? { result: delivery.result } : {};
    const frame = { command, receipts, late: delivery.late, ...withResult };
    const { acknowledged } = await channel.ask('receipts', frame, DELIVER_MS);
    const verdict = this.#readAcknowledged(acknowledged, command, last);
    if (verdict === 'refused') return 'refused';
    // The countersignature was proved, so it is there.
    await this.#parts.ledger().append({
      kind: 'acknowledged',
      at: this.#now(),
      command,
      acknowledged: acknowledged as Signed,
    });
    return 'settled';
  }

  #readAcknowledged(
    signed: Signed | undefined,
    command: CommandId,
    last: TypedReceipt,
  ): 'settled' | 'refused' | 'duplicate' {
    const opened = signed && openStatement('control.acknowledged', this.#parts.commandKey(), signed);
    if (!opened) throw new AnswerUnproved('receipt was not countersigned by the pinned command key');
    const { statement } = opened;
    const digest = statementDigest(last.type, last.signed.payload);
    if (
      statement.executor !== this.#parts.executor ||
      statement.command !== command ||
      !digest.equals(statement.receiptDigest)
    ) {
      throw new AnswerUnproved('countersignature is for another receipt');
    }
    return statement.verdict;
  }

  #appendEnded(facts: CommandFacts, ended: Ended, receipt: TypedReceipt): Promise<void> {
    return this.#parts.ledger().append({ kind: 'ended', at: this.#now(), command: facts.command, ended, receipt });
  }

  #now(): number {
    return this.#parts.clock().now();
  }

  async #sign(type: TypedReceipt['type'], facts: CommandFacts, rest: Record<string, unknown>): Promise<Signed> {
    const fields = {
      at: this.#now(),
      executor: this.#parts.executor,
      command: facts.command,
      epoch: facts.epoch,
      envelopeDigest: facts.envelopeDigest,
      previous: this.#previous(facts),
      ...rest,
    };
    // Fields of the three receipts differ in `rest` alone; key-store checks them against the type's own schema.
    const sign = async (): Promise<Signed> =>
      signStatement(await this.#parts.signer(), type, fields as never, { withinMs: SIGN_MS });
    try {
      return await sign();
    } catch (error) {
      // A key-store that died is back within a moment, and a signature has no effect: it is asked once more.
      if (!(error instanceof HelperGone) && !(error instanceof PeerAbsent)) throw error;
      return sign();
    }
  }

  /** Digest of the newest link of the chain: the last receipt, or the lease that came with the command. */
  #previous(facts: CommandFacts): Uint8Array {
    const last = this.#parts.ledger().memory.commands.get(facts.command)?.receipts.at(-1);
    return last ? statementDigest(last.type, last.signed.payload) : facts.leasedDigest;
  }
}
