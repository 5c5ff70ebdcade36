import type { CommandId } from '../../helpers/protocol/ids.ts';
import { receiptExportSchema } from '../../helpers/protocol/receipt-chain.ts';
import type { ReceiptExport } from '../../helpers/protocol/receipt-chain.ts';
import type { Reader } from '../store/store.ts';
import { chainOf, findCommand } from './store.ts';

/** The signed statements of one command as a file that `receipts verify` reads offline; undefined for one that nobody was given. */
export async function exportReceipts(reader: Reader, id: CommandId): Promise<ReceiptExport | undefined> {
  const command = await findCommand(reader, id);
  const chain = await chainOf(reader, id);
  if (!command || chain.length === 0) return undefined;
  return receiptExportSchema.parse({
    format: 'nessie-executor.receipts.v1',
    executor: command.executor,
    command: id,
    statements: chain.map(({ type, payload, signature }) => ({
      type,
      payload: payload.toString('base64'),
      signature: signature.toString('base64'),
    })),
  });
}
