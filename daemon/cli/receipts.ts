/*
 * `receipts verify FILE`: whether an exported chain of receipts proves what it says, with keys of the reader's own choice and
 * no network.
 */
import fs from 'node:fs';
import { admitKey, KeyRefused } from '../../helpers/protocol/signed.ts';
import type { AdmittedKey } from '../../helpers/protocol/signed.ts';
import { readReceiptExport, verifyReceiptChain } from '../../helpers/protocol/receipt-chain.ts';
import type { ReceiptExport } from '../../helpers/protocol/receipt-chain.ts';
import { CliFailure } from './failure.ts';
import { say, sayJson, styled } from './terminal.ts';
import type { Terminal } from './terminal.ts';

/** Public keys as 64 hexadecimal digits. */
export interface ReaderKeys {
  readonly machine: string;
  readonly control: string;
}

const LIMIT_BYTES = 16_777_216;

/** Verifies one export. Throws CliFailure: difference for the first entry that is not what it should be. */
export function verifyReceipts(terminal: Terminal, file: string, keys: ReaderKeys, isJson: boolean): void {
  const exported = readExport(file);
  const verdict = verifyReceiptChain(exported, {
    machine: keyOf('machine', keys.machine),
    control: keyOf('control', keys.control),
  });
  if (isJson) sayJson(terminal, { executor: exported.executor, command: exported.command, ...verdict });
  if (!verdict.ok) throw new CliFailure('difference', `entry ${verdict.entry} (${verdict.type}): ${verdict.fault}`);
  if (isJson) return;
  const end = verdict.complete ? `ended as ${verdict.outcome ?? 'unknown'}, countersigned` : 'not ended yet';
  say(terminal, `${styled(terminal, 'green', 'verified')}: ${verdict.entries} entries of ${exported.command}, ${end}`);
}

function readExport(file: string): ReceiptExport {
  let text: string;
  try {
    if (fs.statSync(file).size > LIMIT_BYTES)
      throw new CliFailure('refused', `an export has at most ${LIMIT_BYTES} bytes`);
    text = fs.readFileSync(file, 'utf8');
  } catch (cause) {
    if (cause instanceof CliFailure) throw cause;
    throw new CliFailure('usage', 'the file cannot be read', { cause });
  }
  try {
    return readReceiptExport(text);
  } catch (cause) {
    throw new CliFailure('difference', 'the file is no export of receipts of this version', { cause });
  }
}

function keyOf(whose: string, text: string): AdmittedKey {
  try {
    if (!/^[0-9a-f]{64}$/.test(text)) throw new KeyRefused('expected 64 hexadecimal digits');
    return admitKey(Buffer.from(text, 'hex'));
  } catch (cause) {
    if (!(cause instanceof KeyRefused)) throw cause;
    throw new CliFailure('usage', `the ${whose} key is no public key: ${cause.message}`, { cause });
  }
}
