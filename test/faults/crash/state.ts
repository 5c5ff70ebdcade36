/*
 * What stands on the disk between two processes: the tree and promote's own folder, by name, kind, mode and content, and whether a
 * time is the one from before. What is of one run alone (ids, random names, inode numbers, times) is left out, so that two kills
 * which leave the same work to a recovery have the same state.
 */
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';

import { readRecords } from '../../../helpers/promote/journal-records.ts';
import type { JournalRecord } from '../../../helpers/promote/journal-records.ts';
import type { Listing, PromotionScene } from '../../fakes/promotion-scene.ts';
import { PROMOTION } from './bench.ts';
import { steady } from './description.ts';

/** How far a promotion is by its journal's name: not begun or gone without a trace, one of its states, or at rest. */
export type Standing = 'none' | 'staging' | 'prepared' | 'committed' | 'archived';

/** Reads how far the promotion of a scene is. */
export function standingOf({ own }: PromotionScene): Standing {
  const at = (...names: string[]): boolean => fs.existsSync(path.join(own, ...names));
  for (const state of ['staging', 'prepared', 'committed'] as const) if (at(`journal.${state}`)) return state;
  return at('history', PROMOTION, 'journal') ? 'archived' : 'none';
}

/** The state in lines that a person can read. */
export function stateOf(scene: PromotionScene, before: Listing): string {
  const tree = [...scene.listing()].map(([name, { kind, mode, mtimeNs, content }]) => {
    const was = before.get(name);
    const time = was === undefined ? '' : was.mtimeNs === mtimeNs ? 'time as before' : 'another time';
    return `root/${steady(name)} ${kind} ${mode} ${content} ${time}`.trimEnd();
  });
  return [...tree, ...ownLines(scene)].join('\n');
}

/** A short name of a state. */
export function keyOf(state: string): string {
  return createHash('sha256').update(state).digest('hex').slice(0, 12);
}

/** promote's own folder in lines, in the order of their names. */
export function ownLines({ own }: PromotionScene): string[] {
  const names = fs.readdirSync(own, { recursive: true, encoding: 'utf8' });
  return names.map((name) => `own/${steady(name)} ${lineOf(path.join(own, name))}`).toSorted();
}

function lineOf(file: string): string {
  const stat = fs.lstatSync(file, { bigint: true });
  const mode = (Number(stat.mode) & 0o7777).toString(8);
  if (!stat.isFile()) return `${stat.isDirectory() ? 'folder' : 'other'} ${mode}`;
  const content = fs.readFileSync(file);
  if (!/^journal(\.|$)/.test(path.basename(file))) {
    return `file ${mode} ${createHash('sha256').update(content).digest('hex')}`;
  }
  // The end of a stage folder gives the journal the time of this process's clock, which knows no parts of a millisecond.
  const time = stat.mtimeNs % 1_000_000n === 0n ? 'touched' : 'not touched';
  const { records, whole } = readRecords(content);
  return `journal ${mode} ${time} ${whole ? 'whole' : 'cut'} ${records.map(wordsOf).join(', ')}`;
}

function wordsOf(record: JournalRecord): string {
  if (record.kind === 'step')
    return `step ${record.slot} ${record.change} ${Buffer.from(record.path).toString('latin1')}`;
  if (record.kind === 'folder') return `folder ${Buffer.from(record.path).toString('latin1')}`;
  return record.kind;
}
