import type { CommandId, ExecutorId } from '../../helpers/protocol/ids.ts';
import type { Signed } from '../../helpers/protocol/signed.ts';
import type { Statement } from '../../helpers/protocol/statements.ts';
import { ChannelRefused } from '../channel/refused.ts';
import type { Proved } from '../channel/session.ts';
import type { ReceiptFrame } from '../protocol.ts';
import type { CheckedReceipt } from './rules.ts';
import type { CommandRow } from './store.ts';

/** One receipt whose signature, machine, command, connection and envelope were checked; its links are not judged yet. */
export type OpenedReceipt = (
  | Exclude<CheckedReceipt, { readonly type: 'machine.result' }>
  | (Extract<CheckedReceipt, { readonly type: 'machine.result' }> & { readonly resultDigest: Uint8Array })
) & {
  readonly signed: Signed;
  /** Digest of the statement, 32 bytes. */
  readonly bytes: Buffer;
  readonly command: CommandId;
  readonly executor: ExecutorId;
  /** It began under an earlier connection. */
  readonly late: boolean;
  /** What it says about its machine's past. */
  readonly stated: { readonly guard: number; readonly ledgerCount?: number; readonly ledgerHead?: Uint8Array };
};

/** Checks each receipt of a frame against the command that it names. Throws ChannelRefused RECEIPT_INVALID or RECEIPT_FOREIGN. */
export function openReceipts(from: Proved, row: CommandRow, frame: ReceiptFrame): OpenedReceipt[] {
  // Written by server/commands/store.ts alone; the envelope's digest stands there since the lease.
  const { context } = JSON.parse(row.stored) as { context: { envelopeDigest: string | null } };
  return frame.receipts.map(({ type, signed }) => {
    const opened = from.open(type, signed);
    if (!opened) throw new ChannelRefused('RECEIPT_INVALID', `${type} is not signed by the paired key`);
    const { statement, digest } = opened;
    requireOwn(statement, row, context.envelopeDigest);
    const common = {
      signed,
      bytes: digest,
      digest: digest.toString('hex'),
      previous: Buffer.from(statement.previous).toString('hex'),
      command: row.id,
      executor: row.executor,
      late: frame.late,
    };
    const { guard } = statement;
    if ('resultDigest' in statement) {
      const { outcome, resultDigest, ledgerCount, ledgerHead } = statement;
      return { ...common, type: 'machine.result', outcome, resultDigest, stated: { guard, ledgerCount, ledgerHead } };
    }
    if ('code' in statement) return { ...common, type: 'machine.refused', code: statement.code, stated: { guard } };
    return { ...common, type: type === 'machine.started' ? type : 'machine.accepted', stated: { guard } };
  });
}

function requireOwn(statement: Statement<'machine.accepted'>, row: CommandRow, envelopeDigest: string | null): void {
  const fits =
    statement.executor === row.executor &&
    statement.command === row.id &&
    statement.epoch === row.epoch &&
    Buffer.from(statement.envelopeDigest).toString('hex') === envelopeDigest;
  if (!fits)
    throw new ChannelRefused('RECEIPT_FOREIGN', 'receipt names another machine, command, connection or envelope');
}
