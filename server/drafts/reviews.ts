import type { PersonId, ReviewId, RunId } from '../../helpers/protocol/ids.ts';
import { operations, operationShape } from '../../helpers/protocol/operations.ts';
import type { OperationSuccess } from '../../helpers/protocol/operations.ts';
import { decode } from '../../helpers/protocol/codec.ts';
import type { CommandEnd } from '../commands/outcomes.ts';
import type { Work } from '../commands/work.ts';
import { findExecutor } from '../executors/store.ts';
import { openPayload } from '../payloads/store.ts';
import { Refusal } from '../refusal.ts';
import { bindForPerson } from '../runs/bind.ts';
import { call } from '../runs/call.ts';
import { bindingsOf, findRun } from '../runs/store.ts';
import type { RunRow } from '../runs/store.ts';
import type { Reader } from '../store/store.ts';
import type { Difference, DifferenceWish, ReviewDetail, ReviewSummary } from './answers.ts';
import type { ReviewRow } from './store.ts';

/** Most changes in one answer, and pages of them that are asked of a machine for one answer. */
const PAGE_CHANGES = 100;
const PAGES_LIMIT = 100;
/** Most reviews in a list. */
const LIST_LIMIT = 200;

const writing = operations.filter(({ writes }) => writes).map(({ key }) => key);

/** A review of a run that this person started; to anybody else it is absent (N-142). Throws Refusal REVIEW_ABSENT. */
export async function ownReview(
  reader: Reader,
  person: PersonId,
  id: ReviewId,
): Promise<{ readonly review: ReviewRow; readonly run: RunRow }> {
  const review = await reader
    .selectFrom('reviews')
    .selectAll()
    .where('id', '=', id)
    .where('person', '=', person)
    .executeTakeFirst();
  const run = review && (await findRun(reader, review.run));
  if (review && run?.person === person) return { review, run };
  throw new Refusal('REVIEW_ABSENT', 'There is no such review among yours.', { status: 404 });
}

/** Reviews of one person's runs, or of one of them, newest first. */
export async function listReviews(reader: Reader, person: PersonId, run?: RunId): Promise<ReviewSummary[]> {
  const all = reader.selectFrom('reviews').selectAll().where('person', '=', person).orderBy('createdAt', 'desc');
  const rows = await (run === undefined ? all : all.where('run', '=', run)).limit(LIST_LIMIT).execute();
  return Promise.all(rows.map((row) => summarise(reader, row)));
}

async function summarise(reader: Reader, row: ReviewRow): Promise<ReviewSummary> {
  const executor = await findExecutor(reader, row.executor);
  const agent = await reader.selectFrom('agents').select('name').where('id', '=', row.agent).executeTakeFirst();
  const promotion = await reader
    .selectFrom('promotions')
    .select('state')
    .where('review', '=', row.id)
    .orderBy('createdAt', 'desc')
    .limit(1)
    .executeTakeFirst();
  return {
    review: row.id,
    run: row.run,
    agentName: agent?.name ?? '',
    executor: row.executor,
    executorLabel: executor?.label ?? '',
    digest: row.digest.toString('hex'),
    manifestDigest: row.manifestDigest.toString('hex'),
    changeCount: row.changeCount,
    createdAt: row.createdAt,
    stale: await isStale(reader, row),
    promotion: executor?.confirmed?.promotion ?? 'machine',
    difference: executor?.confirmed?.difference ?? 'machine',
    promotionState: promotion?.state ?? null,
  };
}

/** Whether the draft may have changed since: the machine decides in the end, this only saves a person the way. */
async function isStale(reader: Reader, row: ReviewRow): Promise<boolean> {
  const written = await reader
    .selectFrom('commands')
    .select('id')
    .where('run', '=', row.run)
    .where('createdAt', '>=', row.createdAt)
    .where('operation', 'in', writing)
    .limit(1)
    .executeTakeFirst();
  if (written) return true;
  const newer = await reader
    .selectFrom('reviews')
    .select('id')
    .where('run', '=', row.run)
    .where('createdAt', '>', row.createdAt)
    .where('manifestDigest', '!=', row.manifestDigest)
    .limit(1)
    .executeTakeFirst();
  return newer !== undefined;
}

/** Asks the machine of a run for its changes now, under the run's own binding. Throws Refusal, with the machine's code where it failed there. */
export async function reviewNow(work: Work, person: PersonId, id: RunId): Promise<ReviewId> {
  const run = await findRun(work.store.read, id);
  if (run?.person !== person) throw new Refusal('RUN_ABSENT', 'There is no such run among yours.', { status: 404 });
  const { command } = await askReview(work, run, '0');
  const made = await work.store.read
    .selectFrom('reviews')
    .select('id')
    .where('command', '=', command)
    .executeTakeFirst();
  if (made) return made.id;
  throw new Refusal('REVIEW_ABSENT', 'The machine answered, and no review was kept; ask again.', { status: 503 });
}

/** One review with its changes from an offset; pages past the first are asked of the machine. Throws Refusal. */
export async function showReview(work: Work, person: PersonId, id: ReviewId, offset: number): Promise<ReviewDetail> {
  const { review, run } = await ownReview(work.store.read, person, id);
  const summary = await summarise(work.store.read, review);
  const first = await readKept(work, review);
  if (!first) return { ...summary, offset, changes: [], kept: false };
  let page = first;
  let from = 0;
  for (
    let turn = 0;
    from + page.changes.length <= offset && page.cursor !== undefined && turn < PAGES_LIMIT;
    turn += 1
  ) {
    from += page.changes.length;
    page = (await askReview(work, run, page.cursor)).result;
    if (page.manifestDigest !== summary.manifestDigest) {
      throw new Refusal('REVIEW_STALE', 'The draft changed since this review; review the run again.');
    }
  }
  const changes = page.changes.slice(Math.max(0, offset - from), offset - from + PAGE_CHANGES);
  return { ...summary, offset, changes, kept: true };
}

async function readKept(work: Work, review: ReviewRow): Promise<OperationSuccess<'workspace.review'> | undefined> {
  const bytes = await openPayload(work.store.read, work.keys, review.command, 'result');
  return bytes && operationShape('workspace.review').result.parse(decode(bytes));
}

async function askReview(work: Work, run: RunRow, cursor: string) {
  const binding = (await bindingsOf(work.store.read, run.id)).find(({ operation }) => operation === 'workspace.review');
  if (!binding) {
    throw new Refusal('OPERATION_UNBOUND', 'This run has no binding for workspace.review on any machine.', {
      remedy: 'Let the agent list its tools while the machine is online.',
    });
  }
  const { command, end } = await call(work, { run, binding, arguments: { cursor } });
  return { command, result: operationShape('workspace.review').result.parse(requireSuccess(end)) };
}

/** One sealed piece of a reviewed change, as the machine gave it. Throws Refusal DIFFERENCE_ON_MACHINE, or with the machine's code. */
export async function readDifference(
  work: Work,
  person: PersonId,
  id: ReviewId,
  wish: DifferenceWish,
): Promise<Difference> {
  const { review, run } = await ownReview(work.store.read, person, id);
  const executor = await findExecutor(work.store.read, review.executor);
  if (executor?.confirmed?.difference === 'machine') {
    throw new Refusal('DIFFERENCE_ON_MACHINE', 'The owner of this machine shows the difference there alone.', {
      status: 403,
      remedy: `Run nessie-executor review ${run.id} on the machine.`,
    });
  }
  const binding = await bindForPerson(work, run, 'review.difference');
  const manifestDigest = review.manifestDigest.toString('hex');
  const { end } = await call(work, { run, binding, arguments: { ...wish, manifestDigest } });
  const { success: _, ...difference } = operationShape('review.difference').result.parse(requireSuccess(end));
  return difference;
}

/** The result of a command that a person waits for. Throws Refusal that names side and code. */
export function requireSuccess(end: CommandEnd | undefined): unknown {
  if (end?.outcome === 'succeeded') return end.result;
  if (end === undefined || end.outcome === 'unknown') {
    throw new Refusal('OUTCOME_UNKNOWN', 'The machine has not answered; it may or may not have done this.', {
      status: 504,
    });
  }
  const side = end.gate === 'control-plane' ? 'The control plane' : 'The machine';
  throw new Refusal(end.code ?? end.outcome.toUpperCase(), `${side} answered: ${end.outcome}.`, { status: 409 });
}
