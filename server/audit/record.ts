/*
 * The audit chain: rows are only ever added, each one names the digest of the one before, and a head row holds length and last
 * digest. Digests are keyed with a secret outside the database, so that somebody who can only write the database can neither
 * alter, reorder, remove nor invent a row without `verify` naming the place.
 *
 * INVARIANT  An entry is written in the transaction of the effect that it records: no record, no effect (N-196, R92).
 */
import { canonicalBytes } from '../../helpers/protocol/descriptor.ts';
import type { OrganisationId, PersonId } from '../../helpers/protocol/ids.ts';
import type { Context } from '../context.ts';
import type { Secrets } from '../secrets.ts';
import type { Reader, Writer } from '../store/store.ts';
import type { Tables } from '../store/tables.ts';

/** What was decided or done, by whom, to what. Person and assistant stand apart; contents, paths and secrets never appear. */
export interface AuditEntry {
  /** Subject and verb, as in `executor.paused`. */
  readonly action: string;
  readonly organisation?: string;
  readonly person?: string;
  readonly agent?: string;
  /** The assistant's part in a change that it prepared. */
  readonly assistant?: string;
  readonly executor?: string;
  readonly run?: string;
  readonly command?: string;
  readonly outcome: 'done' | 'refused' | 'failed';
  /** Code of a refusal or failure. */
  readonly reason?: string;
  readonly facts?: Readonly<Record<string, string | number>>;
}

/** What a person decided; `recordDecision` adds by whom, in which organisation, and that it is done. */
export type Decided = Omit<AuditEntry, 'organisation' | 'person' | 'outcome'>;

type Row = Tables['audit'];

/** 32 zero bytes: what the first row names as the one before. */
export const CHAIN_START = Buffer.alloc(32);

/** Adds one entry to the chain in the caller's transaction. */
export async function record(
  context: Pick<Context, 'secrets' | 'clock'>,
  tx: Writer,
  entry: AuditEntry,
): Promise<void> {
  const head = await tx.selectFrom('auditHead').select(['sequence', 'digest']).where('id', '=', 1).executeTakeFirst();
  const sequence = (head?.sequence ?? 0) + 1;
  const unsealed: Omit<Row, 'digest'> = {
    sequence,
    at: context.clock.now(),
    action: entry.action,
    organisation: entry.organisation ?? null,
    person: entry.person ?? null,
    agent: entry.agent ?? null,
    assistant: entry.assistant ?? null,
    executor: entry.executor ?? null,
    run: entry.run ?? null,
    command: entry.command ?? null,
    outcome: entry.outcome,
    reason: entry.reason ?? null,
    facts: canonicalBytes(entry.facts ?? {}).toString('utf8'),
    previous: head?.digest ?? CHAIN_START,
  };
  const digest = rowDigest(context.secrets, unsealed);
  await tx
    .insertInto('audit')
    .values({ ...unsealed, digest })
    .execute();
  if (head === undefined) await tx.insertInto('auditHead').values({ id: 1, sequence, digest }).execute();
  else await tx.updateTable('auditHead').set({ sequence, digest }).where('id', '=', 1).execute();
}

/** As record, for what a person decided. */
export async function recordDecision(
  context: Pick<Context, 'secrets' | 'clock'>,
  tx: Writer,
  by: { readonly organisation: OrganisationId; readonly person: PersonId },
  decided: Decided,
): Promise<void> {
  const { organisation, person } = by;
  await record(context, tx, { ...decided, organisation, person, outcome: 'done' });
}

/** Keyed digest of one row without its own digest, 32 bytes. The place of a row is what `previous` says, so a moved row is told from an altered one. */
export function rowDigest(secrets: Secrets, row: Omit<Row, 'digest'>): Buffer {
  const { previous, sequence: _, ...rest } = row;
  return secrets.keyed('audit', previous, canonicalBytes(rest));
}

/** Where the chain is not what was written. */
export type AuditFault =
  | { readonly fault: 'deleted'; readonly sequence: number }
  | { readonly fault: 'altered'; readonly sequence: number }
  | { readonly fault: 'reordered'; readonly sequence: number }
  | { readonly fault: 'head-missing' };

/** Rows read at a time. */
const PAGE = 1000;

/** Walks the whole chain. Answers how many rows stand and every fault by its place. */
export async function verifyAudit(
  reader: Reader,
  secrets: Secrets,
): Promise<{ readonly rows: number; readonly faults: readonly AuditFault[] }> {
  const faults: AuditFault[] = [];
  let last: Pick<Row, 'sequence' | 'digest'> = { sequence: 0, digest: CHAIN_START };
  let rows = 0;
  for (;;) {
    const from = last.sequence;
    const page = await reader
      .selectFrom('audit')
      .selectAll()
      .where('sequence', '>', from)
      .orderBy('sequence')
      .limit(PAGE)
      .execute();
    for (const row of page) {
      faults.push(...faultsAfter(secrets, last, row));
      last = row;
    }
    rows += page.length;
    if (page.length < PAGE) break;
  }
  const head = await reader.selectFrom('auditHead').selectAll().where('id', '=', 1).executeTakeFirst();
  return { rows, faults: [...faults, ...faultsOfHead(head, last)] };
}

function missing(after: number, before: number): AuditFault[] {
  const count = Math.max(0, before - after - 1);
  return Array.from({ length: count }, (_, index) => ({ fault: 'deleted', sequence: after + 1 + index }));
}

function faultsAfter(secrets: Secrets, last: Pick<Row, 'sequence' | 'digest'>, row: Row): AuditFault[] {
  const { digest, ...unsealed } = row;
  const gap = missing(last.sequence, row.sequence);
  if (!rowDigest(secrets, unsealed).equals(digest)) return [...gap, { fault: 'altered', sequence: row.sequence }];
  const follows = gap.length > 0 || row.previous.equals(last.digest);
  return follows ? gap : [{ fault: 'reordered', sequence: row.sequence }];
}

function faultsOfHead(
  head: Pick<Row, 'sequence' | 'digest'> | undefined,
  last: Pick<Row, 'sequence' | 'digest'>,
): AuditFault[] {
  if (head === undefined) return last.sequence === 0 ? [] : [{ fault: 'head-missing' }];
  if (head.sequence > last.sequence) return missing(last.sequence, head.sequence + 1);
  const isHead = head.sequence === last.sequence && head.digest.equals(last.digest);
  return isHead ? [] : [{ fault: 'altered', sequence: last.sequence }];
}
