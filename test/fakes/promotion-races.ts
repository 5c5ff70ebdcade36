/* Single races of a program against one promotion by the real, confined promote, with what must hold after each. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';

import { PromotionScene } from './promotion-scene.ts';
import type { Wanted } from './promotion-scene.ts';
import { filesBelow, sealOf } from './folder-contents.ts';
import { raceApply } from './racing.ts';
import type { Raced, Racer } from './racing.ts';
import type { RealInstallation } from './real-row.ts';

/** Ways in which a folder is swapped under a promotion (test/fixtures/racers/swapper.ts). */
export type Way = 'exchange' | 'renames' | 'moves';

/** How a promotion ended, for counts. */
export function outcomeOf({ reply }: Pick<Raced, 'reply'>): string {
  return 'code' in reply ? `${reply.outcome} ${reply.code}` : reply.outcome;
}

/** Files that a promotion is busy with before it comes to the folder that is raced. */
const CALM = 300;

const many = (count: number, content: (index: number) => string): Record<string, Wanted> =>
  Object.fromEntries(
    Array.from({ length: count }, (_, index) => [`calm/${String(index).padStart(4, '0')}`, { file: content(index) }]),
  );

/** A root with a folder `work` that is raced, a folder `outside` that looks the same, and a draft that changes, removes and makes files in `work`. */
function racedScene(calm: number): { readonly scene: PromotionScene; readonly outside: string } {
  const scene = new PromotionScene();
  const outside = path.join(scene.folder, 'outside');
  fs.mkdirSync(outside);
  for (const name of ['calm', 'work']) scene.folderAt(name);
  for (const name of ['file', 'gone']) {
    scene.put(`work/${name}`, `old ${name}`);
    fs.writeFileSync(path.join(outside, name), `old ${name}`);
    scene.give(path.join(outside, name));
  }
  scene.give(outside);
  scene.draftOf({
    ...many(calm, () => 'calm'),
    'work/added': { file: 'added' },
    'work/file': { file: 'new file' },
    'work/gone': 'removed',
    'work/made': { folder: 0o755 },
    'work/made/in': { file: 'in' },
  });
  return { scene, outside };
}

const OLD = { 'work/file': 'old file', 'work/gone': 'old gone' };
const NEW = { 'work/added': 'added', 'work/file': 'new file', 'work/made/in': 'in' };

/** How a race of swaps ended, and how many swaps fell into the promotion. */
export interface Swapped {
  readonly outcome: string;
  readonly swaps: number;
}

/**
 * A folder is swapped for a link to a folder outside, without a pause or with one of up to `restUs`. Nothing is written outside, and
 * the tree is the old or the new one but for paths of which the person is told.
 */
export async function swapRace(
  installation: RealInstallation,
  racer: Racer,
  way: Way,
  restUs: number,
): Promise<Swapped> {
  const { scene, outside } = racedScene(CALM);
  try {
    const link = path.join(scene.root, 'link');
    fs.symlinkSync(outside, link);
    const seal = sealOf(outside);
    const where = { way, path: String(scene.at('work')), other: link, restUs: String(restUs) };
    const raced = await raceApply(installation, scene, racer, where);
    assert.equal(sealOf(outside), seal, 'something was written outside');
    judgeTree(scene.root, raced, keptOf(scene));
    return { outcome: outcomeOf(raced), swaps: Number(raced.figures['swaps']) };
  } finally {
    scene.remove();
  }
}

/** The folder itself is moved out of the root and back. What was placed in it outside is taken back, or the person is told. */
export async function moveRace(installation: RealInstallation, racer: Racer, restUs: number): Promise<Swapped> {
  const { scene, outside } = racedScene(CALM);
  try {
    const away = path.join(scene.folder, 'away');
    fs.mkdirSync(away);
    scene.give(away);
    const seal = sealOf(outside);
    const where = {
      way: 'moves',
      path: String(scene.at('work')),
      other: path.join(away, 'work'),
      restUs: String(restUs),
    };
    const raced = await raceApply(installation, scene, racer, where);
    assert.equal(sealOf(outside), seal, 'something was written outside');
    assert.deepEqual(fs.readdirSync(away), [], 'something was left outside');
    judgeTree(scene.root, raced, keptOf(scene));
    return { outcome: outcomeOf(raced), swaps: Number(raced.figures['swaps']) };
  } finally {
    scene.remove();
  }
}

function keptOf(scene: PromotionScene): readonly string[] {
  return [...filesBelow(path.join(scene.own, 'kept')).values()];
}

/** The raced folder is wholly old or wholly new, but for paths that were told; no old content is lost. */
function judgeTree(root: string, raced: Raced, kept: readonly string[]): void {
  const calm = (name: string): boolean => name.startsWith('calm/');
  const all = filesBelow(root);
  const found = Object.fromEntries([...all].filter(([name]) => !calm(name)));
  const expected: Readonly<Record<string, string>> = raced.reply.outcome === 'promoted' ? NEW : OLD;
  const said = JSON.stringify([found, raced.reply, raced.recovered]);
  assert.notEqual(raced.reply.outcome === 'refused' && raced.reply.code, 'PROMOTION_RECOVERY_REQUIRED', said);
  const names = new Set([...Object.keys(found), ...Object.keys(expected)]);
  for (const name of names) {
    if (found[name] !== expected[name]) assert.ok(raced.told.has(name), `nobody was told of ${name}: ${said}`);
  }
  if (raced.reply.outcome === 'promoted') return;
  for (const old of Object.values(OLD))
    assert.ok(Object.values(found).includes(old) || kept.includes(old), `${old} is lost: ${said}`);
  assert.equal([...all.keys()].filter(calm).length, 0, 'a calm file was left');
}

/** How a race of edits ended: edits done, and where they are. */
export interface Edited {
  readonly outcome: string;
  readonly done: number;
  readonly kept: number;
  /** Longest wait for a lease, in ms. */
  readonly waited: number;
}

/** How a person edits: in which way, from which phase on, with which longest pause before each, files of how many bytes, how many of them. */
export interface EditPlan {
  readonly way: 'rename' | 'open';
  readonly from: 'staging' | 'placing';
  readonly restUs: number;
  readonly size: number;
  readonly edits: number;
}

const EDITED = 24;

/** A person edits some files, each once, while they are promoted. Each edit is at its path, or a copy was kept and the person told. */
export async function editRace(
  installation: RealInstallation,
  racer: Racer,
  round: number,
  { way, from, restUs, size, edits }: EditPlan,
): Promise<Edited> {
  const scene = new PromotionScene();
  try {
    const names = Array.from({ length: EDITED }, (_, index) => `file${String(index).padStart(2, '0')}`);
    for (const name of names.slice(4)) scene.put(name, `old ${name} ${'-'.repeat(size)}\n`);
    const wanted = names.map((name, index): [string, Wanted] => [
      name,
      index % 6 === 5 ? 'removed' : { file: `new ${name} ${'+'.repeat(size)}\n` },
    ]);
    scene.draftOf(Object.fromEntries(wanted));
    const files = shuffled(names).slice(0, edits).join(',');
    const begun =
      from === 'staging'
        ? { folder: scene.root, from: '.nessie-stage-' }
        : { folder: scene.own, from: 'journal.prepared' };
    const where = { way, root: scene.root, files, restUs: String(restUs), round: String(round), ...begun };
    const raced = await raceApply(installation, scene, racer, where);
    return judgeEdits(scene, raced);
  } finally {
    scene.remove();
  }
}

function judgeEdits(scene: PromotionScene, raced: Raced): Edited {
  // What test/fixtures/racers/person.ts tells.
  const figures = raced.figures as { edits: Record<string, string>; waited: number };
  const tree = filesBelow(scene.root);
  const kept = keptOf(scene);
  let copies = 0;
  for (const [name, edit] of Object.entries(figures.edits)) {
    if (tree.get(name)?.includes(edit) === true) continue;
    const said = JSON.stringify([name, raced.reply, raced.recovered, [...tree.keys()]]);
    assert.ok(
      kept.some((content) => content.includes(edit)),
      `an edit is lost: ${said}`,
    );
    assert.ok(raced.told.has(name), `nobody was told of a copy: ${said}`);
    copies += 1;
  }
  const done = Object.keys(figures.edits).length;
  return { outcome: outcomeOf(raced), done, kept: copies, waited: figures.waited };
}

function shuffled<Item>(items: readonly Item[]): Item[] {
  return items
    .map((item) => ({ item, key: Math.random() }))
    .toSorted((one, other) => one.key - other.key)
    .map(({ item }) => item);
}

/** Bytes of a file that takes promote a while to read under its lease. */
const SLOW_BYTES = 48_000_000;

/** A person opens a file for writing while promote has a lease on it, waits, and writes then. The edit is in the file at its path. */
export async function waitRace(installation: RealInstallation, racer: Racer, round: number): Promise<Edited> {
  const scene = new PromotionScene();
  try {
    scene.put('first', 'old first');
    scene.put('slow', Buffer.alloc(SLOW_BYTES, 'old '));
    scene.draftOf({ first: { file: 'new first' }, slow: { file: 'new slow' } });
    const where = { way: 'wait', root: scene.root, files: 'slow', restUs: '0', round: String(round) };
    const begun = { folder: scene.own, from: 'journal.prepared' };
    return judgeEdits(scene, await raceApply(installation, scene, racer, { ...where, ...begun }));
  } finally {
    scene.remove();
  }
}

/** Content that says itself whether it is whole (test/fixtures/racers/reader.ts). */
export function wholeContent(seed: string, bytes: number): string {
  const rest = seed.repeat(Math.ceil(bytes / seed.length));
  return createHash('sha256').update(rest).digest('hex') + rest;
}

/** What a reader saw while files were replaced. */
export interface Read {
  readonly outcome: string;
  readonly replaced: number;
  readonly reads: number;
  readonly changed: number;
}

const READ_BYTES = 40_000;

/** A reader reads whole files in a loop while all of them are replaced: none is torn, none is missing. */
export async function readRace(installation: RealInstallation, racer: Racer, count: number): Promise<Read> {
  const scene = new PromotionScene();
  try {
    const names = Array.from({ length: count }, (_, index) => `file${String(index).padStart(4, '0')}`);
    for (const name of names) scene.put(name, wholeContent(`old ${name} `, READ_BYTES));
    scene.draftOf(Object.fromEntries(names.map((name) => [name, { file: wholeContent(`new ${name} `, READ_BYTES) }])));
    const files = names.map((name) => String(scene.at(name))).join(',');
    const raced = await raceApply(installation, scene, racer, { files });
    // What test/fixtures/racers/reader.ts tells.
    const { reads, torn, missing, changed } = raced.figures as Record<'reads' | 'torn' | 'missing' | 'changed', number>;
    assert.equal(raced.reply.outcome, 'promoted');
    assert.deepEqual({ torn, missing }, { torn: 0, missing: 0 });
    return { outcome: outcomeOf(raced), replaced: count, reads, changed };
  } finally {
    scene.remove();
  }
}
