import type { CommandId, ExecutorId, RunId } from '../../helpers/protocol/ids.ts';
import type { Signed } from '../../helpers/protocol/signed.ts';
import type { Statement } from '../../helpers/protocol/statements.ts';
import { YES } from '../commands/store.ts';
import type { Work } from '../commands/work.ts';
import { findExecutor } from '../executors/store.ts';
import { standingOf } from './rules.ts';

/** An answer without what is its own: nonce and time. */
export type ControlFields = Omit<Statement<'control.answer'>, 'guard' | 'nonce' | 'at'>;

/** Most cancels and most ended runs that one answer carries; the rest follows in the next one. */
const LIST_LIMIT = 64;

/** What the machine has heard on its connection: it asked again after these were told. */
export interface Heard {
  readonly cancels: ReadonlySet<CommandId>;
  /** The last answer was full, so there may be more to tell. */
  readonly isFull: boolean;
}

/** What a new connection has heard. */
export const NOTHING_HEARD: Heard = { cancels: new Set(), isFull: false };

/** What the machine has heard once it asks again after an answer. */
export function hear(before: Heard, { cancel, endedRuns }: ControlFields): Heard {
  const isFull = cancel.length === LIST_LIMIT || endedRuns.length === LIST_LIMIT;
  // An answer that is not full named all there were; only beyond it one must know which were told before.
  return { cancels: new Set(cancel.length < LIST_LIMIT ? cancel : [...before.cancels, ...cancel]), isFull };
}

/** What an executor is told now. */
export async function readControl(
  work: Work,
  executor: ExecutorId,
  epoch: number,
  heard: Heard,
): Promise<ControlFields> {
  const { read } = work.store;
  const row = await findExecutor(read, executor);
  const cancels = await readCancels(work, executor);
  const ended = await read
    .selectFrom('runs')
    .select('id')
    .where('executor', '=', executor)
    .where('endTold', '=', 0)
    .where('state', '=', 'ended')
    .orderBy('endedAt')
    .limit(LIST_LIMIT)
    .execute();
  return {
    executor,
    epoch,
    standing: row ? standingOf(row, epoch) : 'revoked',
    cancel: nextToTell(cancels, heard.cancels),
    endedRuns: ended.map(({ id }) => id),
    confirmedRevision: row?.confirmedRevision ?? 0,
    confirmedPolicyDigest: Buffer.from(row?.confirmedPolicyDigest ?? '0'.repeat(64), 'hex'),
  };
}

/** Every command that somebody wants ended and that may still run: open ones first, newest first. */
async function readCancels(work: Work, executor: ExecutorId): Promise<CommandId[]> {
  const rows = await work.store.read
    .selectFrom('commands')
    .select('id')
    .where('executor', '=', executor)
    .where('cancelWanted', '=', YES)
    .where((where) => where.or([where('open', '=', YES), where('deadline', '>', work.clock.now())]))
    .orderBy('open', 'desc')
    .orderBy('createdAt', 'desc')
    .orderBy('id')
    .execute();
  return rows.map(({ id }) => id);
}

/** As many as one answer carries; what this connection never heard goes before what it did. */
function nextToTell(cancels: readonly CommandId[], heard: ReadonlySet<CommandId>): CommandId[] {
  if (cancels.length <= LIST_LIMIT) return [...cancels];
  const untold = cancels.filter((id) => !heard.has(id));
  return [...untold, ...cancels.filter((id) => heard.has(id))].slice(0, LIST_LIMIT);
}

/** Whether the machine was told something else before, or nothing: then it does not wait for the end of the hold. */
export function isNews(fields: ControlFields, before: ControlFields | undefined): boolean {
  return before === undefined || JSON.stringify(fields) !== JSON.stringify(before);
}

/** Signs an answer over the daemon's nonce: whoever swallows or replays one gains nothing but silence. */
export async function signControl(work: Work, fields: ControlFields, nonce: Uint8Array): Promise<Signed> {
  const [signed] = await work.signer.sign([
    { type: 'control.answer', fields: { ...fields, nonce, at: work.clock.now() } },
  ]);
  if (!signed) throw new Error('the command key gave no signature');
  return signed;
}

/** The machine asked again on the same connection, so it has the answer that named these runs. */
export async function markEndTold(work: Work, runs: readonly RunId[]): Promise<void> {
  if (runs.length === 0) return;
  await work.store.write((tx) => tx.updateTable('runs').set({ endTold: 1 }).where('id', 'in', runs).execute());
}
