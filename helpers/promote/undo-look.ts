/*
 * What the owner may know of the history without a change: the promotions that are kept, whether each can be undone now, and what
 * that would change. A file whose time is as the promotion left it is not read; the undo itself reads all of them.
 */
import { rootIdentity } from '../files/root.ts';
import type { Past, UndoPlan, UndoRefusal } from '../protocol/history-facts.ts';
import { promotionIdSchema } from '../protocol/ids.ts';
import type { PromotionId } from '../protocol/ids.ts';
import { toPathText } from '../protocol/path-text.ts';
import { oldFilesOf, pastIds, readPast } from './history.ts';
import type { PastPromotion } from './history.ts';
import type { Prepared } from './journal.ts';
import type { Planned } from './plan.ts';
import { checkRoom, preflight, shapeOf } from './preflight.ts';
import type { PromoteBody } from './protocol.ts';
import { needsPerson } from './recover.ts';
import type { Scene } from './stage-end.ts';
import { Stopped } from './stop.ts';
import { refusalOf, reverse, UndoRefused, undosIn } from './undo-plan.ts';

/** Most promotions in one answer, and most changes and text of paths. */
const PAST_LIMIT = 1000;
const PLAN_LIMIT = { changes: 10_000, characters: 400_000 } as const;

/** Every kept promotion, newest first, each with the reason for which it cannot be undone now. */
export function pastPromotions(scene: Scene): Past[] {
  const undos = undosIn(scene.own);
  const all = pastIds(scene.own).map((promotion) => pastOf(scene, promotion, undos));
  return all.toSorted((one, two) => (two.facts?.at ?? 0) - (one.facts?.at ?? 0)).slice(0, PAST_LIMIT);
}

/** What undoing a promotion would change, from a number on, while it can be undone. */
export function undoPlan(scene: Scene, { promotion, from }: PromoteBody<'promote.undo-plan'>): UndoPlan {
  const { past, plan, refusal } = look(scene, promotion, undosIn(scene.own));
  if (refusal !== null) return { outcome: 'refused', ...refusal };
  const inOrderOfPaths = plan.toSorted((one, two) => Buffer.compare(one.path, two.path));
  return {
    outcome: 'possible',
    journalDigest: past.digest,
    rootIdentity: rootIdentity(scene.root).toString('hex'),
    changeCount: plan.length,
    changes: changesOf(inOrderOfPaths.slice(from, from + PLAN_LIMIT.changes)),
  };
}

function changesOf(plan: readonly Planned[]): Extract<UndoPlan, { outcome: 'possible' }>['changes'] {
  const changes = plan.map(({ path, change: kind, type }) => ({ path: toPathText(path), kind, type }));
  let characters = 0;
  const over = changes.findIndex(({ path }) => (characters += path.length) > PLAN_LIMIT.characters);
  return over === -1 ? changes : changes.slice(0, Math.max(1, over));
}

function pastOf(scene: Scene, promotion: PromotionId, undos: readonly Prepared[]): Past {
  const { past, refusal } = look(scene, promotion, undos);
  const old = oldFilesOf(scene.own, promotion);
  const facts = past === undefined ? null : factsOf(past.prepared);
  return { promotion, facts, fileCount: old.count, byteCount: old.bytes, refusal };
}

function factsOf({ begin: { run, at, undoes }, steps }: Prepared): Past['facts'] {
  return { run, at, undoes: promotionIdSchema.safeParse(undoes).data ?? null, changeCount: steps.length };
}

type Looked =
  | { readonly past: PastPromotion; readonly plan: readonly Planned[]; readonly refusal: null }
  | { readonly past: PastPromotion | undefined; readonly plan?: never; readonly refusal: UndoRefusal };

function look(scene: Scene, promotion: PromotionId, undos: readonly Prepared[]): Looked {
  let past: PastPromotion | undefined;
  try {
    past = readPast(scene.own, promotion);
    const reversal = reverse(scene, promotion, past, undos);
    const shape = shapeOf(reversal.plan);
    checkRoom(scene.root, reversal.plan);
    for (const planned of reversal.plan) preflight(scene.root, planned, shape, 'by time');
    return { ...reversal, refusal: null };
  } catch (error) {
    if (error instanceof UndoRefused || error instanceof Stopped) return { past, refusal: refusalOf(error) };
    if (needsPerson(error)) return { past, refusal: { code: 'PROMOTION_JOURNAL_INVALID' } };
    throw error;
  }
}
