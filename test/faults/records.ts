/*
 * What both sides have on disk, read past every program: the machine's ledger and the control plane's database.
 */
import fs from 'node:fs';
import path from 'node:path';
import Database from 'libsql';
import { LedgerMemory } from '../../daemon/ledger/memory.ts';
import type { CommandMemory } from '../../daemon/ledger/memory.ts';
import { readMark, readSegment } from '../../daemon/ledger/segment.ts';
import type { CommandId } from '../../helpers/protocol/ids.ts';
import { receiptExportSchema, verifyReceiptChain } from '../../helpers/protocol/receipt-chain.ts';
import type { ChainVerdict } from '../../helpers/protocol/receipt-chain.ts';
import { admitKey } from '../../helpers/protocol/signed.ts';

/** A ledger as its bytes tell it: throws where the chain does not hold. */
export function readLedger(stateDir: string): { memory: LedgerMemory; count: number } {
  const folder = path.join(stateDir, 'daemon', 'ledger');
  const memory = new LedgerMemory();
  let count = 0;
  let head: Uint8Array = new Uint8Array(32);
  for (const name of fs
    .readdirSync(folder)
    .filter((entry) => entry.endsWith('.log'))
    .toSorted()) {
    const bytes = fs.readFileSync(path.join(folder, name));
    const mark = readMark(bytes);
    if (!mark) continue;
    if (count > 0 && (mark.count !== count || Buffer.compare(mark.previousHead, head) !== 0))
      throw new Error('a segment does not continue the one before it');
    count = mark.count;
    head = mark.previousHead;
    for (const { record, head: after } of readSegment(bytes, head).placed) {
      count += 1;
      head = after;
      memory.apply(record, count, after);
    }
  }
  return { memory, count };
}

/** What the ledger says of one command now. */
export function inLedger(stateDir: string, command: CommandId): CommandMemory | undefined {
  return readLedger(stateDir).memory.commands.get(command);
}

/** One command as the control plane stores it. */
export interface StoredCommand {
  readonly id: CommandId;
  readonly operation: string;
  readonly state: string;
  readonly open: number;
  readonly outcome: string | null;
  readonly code: string | null;
  readonly epoch: number | null;
}

/** The control plane's database, read beside the server that writes it. */
export class StoredRecords {
  readonly #file: string;

  constructor(dataFolder: string) {
    this.#file = path.join(dataFolder, 'store.db');
  }

  /** Commands in the order in which they were asked for. */
  commands(): StoredCommand[] {
    // The columns of server/commands/tables.ts.
    return this.#all(
      'select id, operation, state, open, outcome, code, epoch from commands order by createdAt, rowid',
    ) as StoredCommand[];
  }

  command(id: CommandId): StoredCommand | undefined {
    return this.commands().find((command) => command.id === id);
  }

  /** The run that a command belongs to. */
  runOf(id: CommandId): string {
    const [row] = this.#all('select run from commands where id = ?', id) as { run: string }[];
    if (!row) throw new Error('there is no such command');
    return row.run;
  }

  /** Types of the receipts of a command, in their order. */
  receiptTypes(id: CommandId): string[] {
    const rows = this.#all('select type from receipts where command = ? order by position', id) as { type: string }[];
    return rows.map(({ type }) => type);
  }

  /** Verifies the receipts of a command as an offline reader would; undefined where no machine was given it. */
  verdictOf(id: CommandId, controlKey: Uint8Array): ChainVerdict | undefined {
    // The columns of server/commands/tables.ts and server/store/tables.ts.
    const rows = this.#all('select type, payload, signature from receipts where command = ? order by position', id) as {
      type: string;
      payload: ArrayBuffer;
      signature: ArrayBuffer;
    }[];
    const [machine] = this.#all(
      'select e.id as id, e.publicKey as publicKey from executors e join commands c on c.executor = e.id where c.id = ?',
      id,
    ) as { id: string; publicKey: ArrayBuffer }[];
    if (rows.length === 0 || !machine) return undefined;
    const exported = receiptExportSchema.parse({
      format: 'nessie-executor.receipts.v1',
      executor: machine.id,
      command: id,
      statements: rows.map(({ type, payload, signature }) => ({
        type,
        payload: Buffer.from(payload).toString('base64'),
        signature: Buffer.from(signature).toString('base64'),
      })),
    });
    return verifyReceiptChain(exported, {
      machine: admitKey(Buffer.from(machine.publicKey)),
      control: admitKey(controlKey),
    });
  }

  /** Each question opens the database anew: a reader that outlives a killed server would keep what that server's log said. */
  #all(query: string, ...parameters: string[]): unknown[] {
    const database = new Database(this.#file, { readonly: true });
    try {
      database.exec('pragma busy_timeout = 5000');
      return database.prepare(query).all(...parameters);
    } finally {
      database.close();
    }
  }
}
