/*
 * The machine's receipts: each is signed by key-store, links to the one before it, and stands in the ledger before the step
 * that it permits. leased (signed by the control plane) -> accepted -> started -> result, or refused in place of what follows.
 */
import { signStatements } from '../actors/key-store.ts';
import type { KeyStoreClient, ToSign } from '../actors/key-store.ts';
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
/** How long a `started` that was signed with its `accepted` states the time of the start well enough, in ms. */
const PREPARED_MS = 250;

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
  /** Receipts of a start that may come at once, signed with the acceptance and in no record yet: nothing is permitted by them. */
  readonly #prepared = new Map<CommandId, { readonly signed: Signed; readonly at: number }>();

  constructor(parts: ReceiptParts) {
    this.#parts = parts;
  }

  /** Records `accepted`: durable when it resolves. */
  async accept(facts: CommandFacts): Promise<void> {
    const at = this.#now();
    const [receipt, started] = await this.#sign(
      { type: 'machine.accepted', fields: this.#fields(facts, at) },
      { type: 'machine.started', fields: this.#unlinked(facts, at), linked: true },
    );
    this.#prepared.set(facts.command, { signed: started, at });
    await this.#parts.ledger().append({ kind: 'accepted', at, facts, receipt });
  }

  /** Records `started`: durable when it resolves. */
  async start(facts: CommandFacts): Promise<void> {
    const at = this.#now();
    const prepared = this.#takePrepared(facts.command);
    const receipt =
      prepared && at - prepared.at <= PREPARED_MS
        ? prepared.signed
        : (await this.#sign({ type: 'machine.started', fields: this.#fields(facts, at) }))[0];
    await this.#parts.ledger().append({ kind: 'started', at, command: facts.command, receipt });
  }

  /** Records how a started command ended. */
  async end(facts: CommandFacts, ended: Ended & { outcome: Outcome; resultDigest: Uint8Array }): Promise<void> {
    const { count, head } = this.#parts.ledger().standing;
    const [signed] = await this.#sign({
      type: 'machine.result',
      fields: {
        ...this.#fields(facts, this.#now()),
        outcome: ended.outcome,
        resultDigest: ended.resultDigest,
        ledgerCount: count,
        ledgerHead: head,
      },
    });
    await this.#appendEnded(facts, ended, { type: 'machine.result', signed });
  }

  /** Records that a command will not run, or that its refused result is replaced; `code` says which check or why. */
  async refuse(facts: CommandFacts, ended: Ended & { code: string }): Promise<void> {
    this.#takePrepared(facts.command);
    const [signed] = await this.#sign({
      type: 'machine.refused',
      fields: { ...this.#fields(facts, this.#now()), code: ended.code },
    });
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

  #takePrepared(command: CommandId): { readonly signed: Signed; readonly at: number } | undefined {
    const prepared = this.#prepared.get(command);
    this.#prepared.delete(command);
    return prepared;
  }

  /** What every receipt of a command states but its place in the chain. */
  #unlinked({ command, epoch, envelopeDigest }: CommandFacts, at: number) {
    return { at, executor: this.#parts.executor, command, epoch, envelopeDigest };
  }

  #fields(facts: CommandFacts, at: number) {
    return { ...this.#unlinked(facts, at), previous: this.#previous(facts) };
  }

  /** One signature for each statement, in one request. */
  async #sign<const Asked extends readonly ToSign<TypedReceipt['type']>[]>(
    ...statements: Asked
  ): Promise<{ readonly [Index in keyof Asked]: Signed }> {
    const sign = async () => {
      const signed = await signStatements(await this.#parts.signer(), statements, { withinMs: SIGN_MS });
      // signStatements gives one for one.
      return signed as { readonly [Index in keyof Asked]: Signed };
    };
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
