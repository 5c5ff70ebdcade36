import { resolve } from '../availability/store.ts';
import type { Work } from '../commands/work.ts';
import { findExecutor } from '../executors/store.ts';
import { Refusal } from '../refusal.ts';
import { findRun } from '../runs/store.ts';
import type { Reader } from '../store/store.ts';
import { changedFact } from './rules.ts';
import type { FactChanged, PromotionFacts } from './rules.ts';
import type { PromotionRow } from './store.ts';

/** Reads the eight facts as they stand and compares them with those of the preparation. */
export async function changedNow(
  work: Work,
  reader: Reader,
  promotion: PromotionRow,
): Promise<FactChanged | undefined> {
  const { reviewDigest, manifestDigest, run, person, agent, authorizationRevision, policyDigest } = promotion;
  const prepared = {
    reviewDigest,
    manifestDigest,
    run,
    person,
    agent,
    authorizationRevision,
    granted: true,
    policyDigest,
  };
  return changedFact(prepared, await readFacts(work, reader, promotion));
}

async function readFacts(work: Work, reader: Reader, promotion: PromotionRow): Promise<PromotionFacts> {
  const review = await reader.selectFrom('reviews').selectAll().where('id', '=', promotion.review).executeTakeFirst();
  const newest = await reader
    .selectFrom('reviews')
    .select('manifestDigest')
    .where('run', '=', promotion.run)
    .orderBy('createdAt', 'desc')
    .limit(1)
    .executeTakeFirst();
  const run = review && (await findRun(reader, review.run));
  const executor = await findExecutor(reader, promotion.executor);
  const person = await reader
    .selectFrom('people')
    .select('id')
    .where('id', '=', promotion.person)
    .where('active', '=', 1)
    .executeTakeFirst();
  const agent = await reader
    .selectFrom('agents')
    .select('id')
    .where('id', '=', run?.agent ?? promotion.agent)
    .where('endedAt', 'is', null)
    .executeTakeFirst();
  const wish = {
    person: promotion.person,
    agent: undefined,
    operation: 'workspace.promote',
    executor: promotion.executor,
  };
  const answer = run && (await resolve(work, reader, { ...wish, origin: { project: run.project } }));
  return {
    reviewDigest: review?.digest.toString('hex') ?? '',
    manifestDigest: newest?.manifestDigest.toString('hex') ?? '',
    run: run?.executor === promotion.executor ? run.id : '',
    person: person?.id === run?.person ? (person?.id ?? '') : '',
    agent: agent?.id ?? '',
    authorizationRevision: executor?.authorizationRevision ?? -1,
    // A machine that is offline at this moment has lost no grant; the gate of its command says so itself.
    granted: answer !== undefined && (answer.available || answer.reason === 'offline'),
    policyDigest: executor?.confirmedPolicyDigest,
  };
}

/** What a person is told of a fact that changed. */
export function factRefusal(code: FactChanged): Refusal {
  return new Refusal(code, 'Something that this promotion was prepared for has changed since; nothing was sent.', {
    remedy: 'Review the run again and prepare the promotion anew.',
  });
}
