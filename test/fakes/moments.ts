/* An apply by promote's own code in this process, with somebody else at work in the very moment before or after a rename. */
import fs from 'node:fs';
import { constants } from 'node:os';
import path from 'node:path';

import type { PromoteReply } from '../../helpers/promote/protocol.ts';
import { NativeError } from '../../helpers/runtime/libc.ts';
import type { Argument } from '../../helpers/runtime/libc.ts';
import { applyHere } from './promote-here.ts';
import type { PromotionScene } from './promotion-scene.ts';

/** A rename that others come before or after: of which name of the person, and its how manyth. */
export interface Moment {
  readonly name: string;
  readonly nth: number;
  readonly side?: 'after';
  readonly act: () => void;
}

/** `failing` refuses the rename of the commit, so that all is taken back; `watch` is told of each call before it is made. */
export interface Circumstances {
  readonly failing?: boolean;
  readonly watch?: (name: string, args: readonly Argument[]) => void;
}

const nameAt = (args: readonly Argument[], at: number): string => {
  const value = args[at];
  return Buffer.isBuffer(value) ? value.subarray(0, -1).toString('latin1') : '';
};

/** Applies the draft of a scene. `done` are syncs with the path and removals with the name, in order; nothing is brought to a disk. */
export async function applyAt(
  scene: PromotionScene,
  moments: readonly Moment[],
  { failing = false, watch }: Circumstances = {},
): Promise<{ readonly reply: PromoteReply<'promote.apply'>; readonly done: readonly string[] }> {
  const done: string[] = [];
  const counts = new Map<string, number>();
  const dueAt = (args: readonly Argument[]): readonly Moment[] =>
    [nameAt(args, 1), nameAt(args, 3)].flatMap((moved) => {
      const nth = (counts.get(moved) ?? 0) + 1;
      counts.set(moved, nth);
      return moments.filter((moment) => moment.name === moved && moment.nth === nth);
    });
  const reply = await applyHere(scene, (name, args, make) => {
    watch?.(name, args);
    if (name === 'fsync') {
      const synced = fs.readlinkSync(`/proc/self/fd/${Number(args[0])}`, 'latin1');
      done.push(`fsync ${path.relative(scene.folder, synced)}`);
      return 0;
    }
    if (name === 'unlinkat') done.push(`unlinkat ${nameAt(args, 1)}`);
    if (name !== 'renameat2') return make();
    if (failing && nameAt(args, 3) === 'journal.committed') throw new NativeError(name, constants.errno.EIO);
    const due = dueAt(args);
    for (const { side, act } of due) if (side !== 'after') act();
    const result = make();
    for (const { side, act } of due) if (side === 'after') act();
    return result;
  });
  return { reply, done };
}

/** Outcome, or the code of what stopped it. */
export function codeOf(reply: PromoteReply<'promote.apply'>): string {
  return 'code' in reply ? reply.code : reply.outcome;
}

/** The stage folder of a scene. */
export function stageOf(scene: PromotionScene): string {
  const name = fs.readdirSync(scene.root).find((found) => found.startsWith('.nessie-stage-'));
  if (name === undefined) throw new Error('there is no stage folder');
  return path.join(scene.root, name);
}

/** Contents of all files below a folder. */
export function contentsOf(folder: string): string[] {
  return fs
    .readdirSync(folder, { recursive: true, withFileTypes: true, encoding: 'latin1' })
    .filter((entry) => entry.isFile())
    .map((entry) => fs.readFileSync(Buffer.from(path.join(entry.parentPath, entry.name), 'latin1'), 'utf8'));
}
