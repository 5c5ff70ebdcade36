/*
 * What the owner may know of the history without a change: the promotions that are kept, whether each can be undone now, and what
 * that would change. A file whose time is as the promotion left it is not read; the undo itself reads all of them.
 */
import { rootIdentity } from '../files/root.ts';
import type { Turn } from '../files/digest.ts';
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
import { isTrouble, Stopped } from './stop.ts';
import { refusalOf, reverse, UndoRefused, undosIn } from './undo-plan.ts';

/** Most promotions in one answer, and the longest path that is named there, so that all fit one frame. */
const PAST_LIMIT = { promotions: 500, pathCharacters: 512 } as const;
/** Most changes in one answer, and about as many bytes as they may take of a frame. */
const PLAN_LIMIT = { changes: 10_000, bytes: 800_000 } as const;
/** What a change takes beside its path. */
const CHANGE_BYTES = 64;

/** Every kept promotion, newest first, each with the reason for which it cannot be undone now. */
export async function pastPromotions(scene: Scene, turn: Turn): Promise<Past[]> {
  const undos = undosIn(scene.own);
  const all: Past[] = [];
  for (const promotion of pastIds(scene.own)) all.push(await pastOf({ ...scene, turn }, promotion, undos));
  return all.toSorted((one, two) => (two.facts?.at ?? 0) - (one.facts?.at ?? 0)).slice(0, PAST_LIMIT.promotions);
}

/** What undoing a promotion would change, from a number on, while it can be undone. */
export async function undoPlan(
  scene: Scene,
  turn: Turn,
  { promotion, from }: PromoteBody<'promote.undo-plan'>,
): Promise<UndoPlan> {
  const { past, plan, refusal } = await look({ ...scene, turn }, promotion, undosIn(scene.own));
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
  let bytes = 0;
  const over = changes.findIndex(({ path }) => (bytes += Buffer.byteLength(path) + CHANGE_BYTES) > PLAN_LIMIT.bytes);
  return over === -1 ? changes : changes.slice(0, Math.max(1, over));
}

async function pastOf(scene: Seen, promotion: PromotionId, undos: readonly Prepared[]): Promise<Past> {
  const { past, refusal } = await look(scene, promotion, undos);
  const facts = past === undefined ? null : factsOf(past.prepared);
  const told = { promotion, facts, refusal: refusal && shortened(refusal) };
  try {
    const { count: fileCount, bytes: byteCount } = oldFilesOf(scene.own, promotion);
    return { ...told, fileCount, byteCount };
  } catch (error) {
    // One that the disk does not let be looked at keeps nobody from the others.
    const { refusal: reason } = unreadable(error, past);
    return { ...told, fileCount: 0, byteCount: 0, refusal: told.refusal ?? reason };
  }
}

function shortened({ code, path, detail }: UndoRefusal): UndoRefusal {
  const isShort = path !== undefined && path.length <= PAST_LIMIT.pathCharacters;
  return { code, ...(isShort ? { path } : {}), ...(detail === undefined ? {} : { detail }) };
}

function factsOf({ begin: { run, at, undoes }, steps }: Prepared): Past['facts'] {
  return { run, at, undoes: promotionIdSchema.safeParse(undoes).data ?? null, changeCount: steps.length };
}

/** A scene, and how others are let in while files of it are read. */
type Seen = Scene & { readonly turn: Turn };

type Looked =
  | { readonly past: PastPromotion; readonly plan: readonly Planned[]; readonly refusal: null }
  | { readonly past: PastPromotion | undefined; readonly plan?: never; readonly refusal: UndoRefusal };

async function look(scene: Seen, promotion: PromotionId, undos: readonly Prepared[]): Promise<Looked> {
  let past: PastPromotion | undefined;
  try {
    past = readPast(scene.own, promotion);
    const how = { look: 'by time', turn: scene.turn } as const;
    const reversal = reverse(scene, promotion, past, undos);
    const shape = shapeOf(reversal.plan);
    checkRoom(scene.root, reversal.plan);
    for (const planned of reversal.plan) await preflight(scene.root, planned, shape, how);
    return { ...reversal, refusal: null };
  } catch (error) {
    if (error instanceof UndoRefused || error instanceof Stopped) return { past, refusal: refusalOf(error) };
    return unreadable(error, past);
  }
}

/** A promotion of which something cannot be read, and whether that is the disk's fault or that of what is kept. Throws what is neither. */
function unreadable(error: unknown, past: PastPromotion | undefined): Extract<Looked, { refusal: UndoRefusal }> {
  if (isTrouble(error)) return { past, refusal: { code: 'PROMOTION_IO_FAILURE' } };
  if (needsPerson(error)) return { past, refusal: { code: 'PROMOTION_JOURNAL_INVALID' } };
  throw error;
}
