/*
 * Verifies an exported chain of one command without a network: who signed what, over which bytes, in which order.
 *
 *   control.command ─► control.leased ─► machine.accepted ─► machine.started ─► machine.result ─► control.acknowledged
 *                                    └───────────┴─────────────────┴► machine.refused ────────────┘
 *   a result that the control plane could not take: … machine.result ─► control.acknowledged (refused) ─► machine.refused
 *   ─► control.acknowledged (settled)
 *
 * The keys are the reader's own: those that an export states prove nothing about it.
 */
import * as z from 'zod';
import { bytesTo, commandIdSchema, executorIdSchema } from './ids.ts';
import type { AdmittedKey } from './signed.ts';
import { openStatement } from './statements.ts';
import type { CommandEnvelope, Opened, Statement } from './statements.ts';

/** Types of statements that a chain is made of. */
export const chainTypes = [
  'control.command',
  'control.leased',
  'machine.accepted',
  'machine.started',
  'machine.result',
  'machine.refused',
  'control.acknowledged',
] as const;
export type ChainType = (typeof chainTypes)[number];

/** Closed shape of an export: JSON, bytes as base64. */
export const receiptExportSchema = z.strictObject({
  format: z.literal('nessie-executor.receipts.v1'),
  executor: executorIdSchema,
  command: commandIdSchema,
  statements: z
    .array(
      z.strictObject({
        type: z.enum(chainTypes),
        payload: z.base64().max(90_000),
        signature: z.base64().length(88),
      }),
    )
    .min(1)
    .max(10),
});
export type ReceiptExport = z.infer<typeof receiptExportSchema>;

/** What an export proves. `entry` counts from 1. */
export type ChainVerdict =
  | { readonly ok: true; readonly complete: boolean; readonly outcome: string | undefined; readonly entries: number }
  | { readonly ok: false; readonly entry: number; readonly type: string; readonly fault: string };

const followers: Readonly<Record<ChainType | 'start', readonly ChainType[]>> = {
  start: ['control.command'],
  'control.command': ['control.leased'],
  'control.leased': ['machine.accepted', 'machine.refused', 'machine.result'],
  'machine.accepted': ['machine.started', 'machine.refused', 'machine.result'],
  'machine.started': ['machine.result', 'machine.refused'],
  'machine.result': ['control.acknowledged'],
  'machine.refused': ['control.acknowledged'],
  'control.acknowledged': ['machine.refused'],
};

interface Walk {
  last: ChainType | 'start';
  digest: Buffer;
  envelope: Opened<'control.command'> | undefined;
  /** The last statement of the machine, which an acknowledgement names. */
  ending: { readonly digest: Buffer; readonly outcome: string } | undefined;
  verdict: Statement<'control.acknowledged'>['verdict'] | undefined;
}

/** Reads an export. Throws SyntaxError or ZodError for what is none. */
export function readReceiptExport(text: string): ReceiptExport {
  return receiptExportSchema.parse(JSON.parse(text));
}

/** Verifies each statement of an export and its link to the one before; names the first entry that is not what it should be. */
export function verifyReceiptChain(
  exported: ReceiptExport,
  keys: { readonly machine: AdmittedKey; readonly control: AdmittedKey },
): ChainVerdict {
  const walk: Walk = {
    last: 'start',
    digest: Buffer.alloc(0),
    envelope: undefined,
    ending: undefined,
    verdict: undefined,
  };
  for (const [index, entry] of exported.statements.entries()) {
    const fault = faultOf(walk, exported, entry, keys);
    if (fault !== undefined) return { ok: false, entry: index + 1, type: entry.type, fault };
  }
  const complete = walk.last === 'control.acknowledged' && walk.verdict === 'settled';
  return {
    ok: true,
    complete,
    outcome: complete ? walk.ending?.outcome : undefined,
    entries: exported.statements.length,
  };
}

function faultOf(
  walk: Walk,
  exported: ReceiptExport,
  entry: ReceiptExport['statements'][number],
  keys: { readonly machine: AdmittedKey; readonly control: AdmittedKey },
): string | undefined {
  const { type } = entry;
  if (!followers[walk.last].includes(type)) return `cannot follow ${walk.last === 'start' ? 'nothing' : walk.last}`;
  if (walk.last === 'control.acknowledged' && walk.verdict !== 'refused') return 'nothing follows a settled ending';
  const signed = { payload: Buffer.from(entry.payload, 'base64'), signature: Buffer.from(entry.signature, 'base64') };
  if (!bytesTo(65_536).safeParse(signed.payload).success) return 'statement is too long';
  let opened;
  try {
    opened = openStatement(type, type.startsWith('machine.') ? keys.machine : keys.control, signed);
  } catch {
    // Signed by the right key, yet not in the shape of its type: another version wrote it.
    return 'statement is not in the shape of its type';
  }
  if (!opened) return 'signature is not of the expected key';
  const { executor, command } = opened.statement;
  if (executor !== exported.executor) return 'names another executor';
  if (command !== exported.command) return 'names another command';
  const fault = linkFault(walk, type, opened);
  walk.last = type;
  walk.digest = opened.digest;
  return fault;
}

function linkFault(walk: Walk, type: ChainType, opened: Opened<ChainType>): string | undefined {
  if (type === 'control.command') {
    walk.envelope = narrow(type, opened);
    return undefined;
  }
  if (!walk.envelope) return 'has no envelope before it';
  if (type === 'control.leased') return leasedFault(walk.envelope, narrow(type, opened).statement);
  if (type === 'control.acknowledged') {
    const { statement } = narrow(type, opened);
    walk.verdict = statement.verdict;
    return walk.ending && same(statement.receiptDigest, walk.ending.digest)
      ? undefined
      : 'acknowledges another receipt';
  }
  const { statement } = narrow(type, opened);
  if (!same(statement.envelopeDigest, walk.envelope.digest)) return 'names another envelope';
  if (statement.epoch !== walk.envelope.statement.epoch) return 'names another connection';
  // A replacement links to the result that it stands in for, not to the acknowledgement between them.
  const previous = walk.last === 'control.acknowledged' ? walk.ending?.digest : walk.digest;
  if (!previous || !same(statement.previous, previous)) return 'does not follow the statement before it';
  const outcome = type === 'machine.result' ? narrow(type, opened).statement.outcome : 'refused';
  if (type === 'machine.result' && walk.last !== 'machine.started' && ['succeeded', 'failed'].includes(outcome)) {
    return 'states an effect of what never started';
  }
  walk.ending = { digest: opened.digest, outcome };
  return undefined;
}

function leasedFault(
  { digest, statement }: { readonly digest: Buffer; readonly statement: CommandEnvelope },
  leased: Statement<'control.leased'>,
): string | undefined {
  if (!same(leased.envelopeDigest, digest)) return 'names another envelope';
  return leased.epoch === statement.epoch ? undefined : 'names another connection';
}

/** `opened` was made by openStatement of exactly this type, which its union no longer says. */
function narrow<Type extends ChainType>(_type: Type, opened: Opened<ChainType>): Opened<Type> {
  return opened;
}

function same(one: Uint8Array, other: Uint8Array): boolean {
  return Buffer.compare(one, other) === 0;
}
