/* A person's edits at native calls of an apply, and where each of them must be after it. */
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';

import { PromotionScene } from './promotion-scene.ts';
import { filesBelow } from './folder-contents.ts';
import { applyWatched, QUICK_PARENT, recoverHere } from './watched-apply.ts';

/** A number from 0 to below a limit. */
export type Below = (limit: number) => number;

const TARGETS = ['folder/file', 'folder/gone', 'folder/added', 'folder/mode', 'folder/made/in'] as const;
/** `save` renames a new file over the path, `append` opens, writes and closes, `hold` opens and writes when all is over. */
const WAYS = ['save', 'append', 'hold'] as const;

/** One edit of a file. */
export interface Planned {
  readonly target: string;
  readonly way: (typeof WAYS)[number];
}

/** A root and a draft with a change of every kind in one folder. */
export function editedScene(): PromotionScene {
  const scene = new PromotionScene({ asCaller: true, parent: QUICK_PARENT });
  scene.folderAt('folder');
  for (const name of ['file', 'gone', 'mode']) scene.put(`folder/${name}`, `old ${name}`);
  scene.draftOf({
    'folder/added': { file: 'added' },
    'folder/file': { file: 'new file' },
    'folder/gone': 'removed',
    'folder/made': { folder: 0o755 },
    'folder/made/in': { file: 'in' },
    'folder/mode': { mode: 0o600 },
  });
  return scene;
}

/** Edits at one to three moments of an apply of `calls` calls, some of them again within the next calls. */
export function drawEdits(below: Below, calls: number): ReadonlyMap<number, readonly Planned[]> {
  const plan = new Map<number, Planned[]>();
  for (let moment = below(3); moment >= 0; moment -= 1) {
    const first = 1 + below(calls);
    const edit: Planned = { target: TARGETS[below(TARGETS.length)] ?? '', way: WAYS[below(WAYS.length)] ?? 'save' };
    for (let again = below(6); again >= 0; again -= 1) {
      const call = first + below(12);
      plan.set(call, [...(plan.get(call) ?? []), edit]);
    }
  }
  return plan;
}

/** A person with a root: what was edited, and what the person saved over since. */
class Person {
  readonly #root: string;
  /** Edits that must be somewhere, with their paths. */
  readonly edits = new Map<string, string>();
  #held: { descriptor: number; ino: number; edit: string }[] = [];
  #waiting: Planned[] = [];
  #count = 0;

  constructor(root: string) {
    this.#root = root;
  }

  /** Does what waited for a lease, and then these. */
  edit(planned: readonly Planned[]): void {
    const due = [...this.#waiting, ...planned];
    this.#waiting = [];
    for (const one of due) {
      try {
        this.#editOne(one);
      } catch (error) {
        const { code } = error as NodeJS.ErrnoException;
        if (code === 'EAGAIN') this.#waiting.push(one);
        else if (code !== 'ENOENT') throw error;
      }
    }
  }

  /** Writes to what is still open, and does what still waits. */
  finish(): void {
    for (const { descriptor, edit } of this.#held) {
      fs.writeSync(descriptor, edit);
      fs.closeSync(descriptor);
    }
    this.#held = [];
    this.edit([]);
    for (const { descriptor, edit } of this.#held) {
      fs.writeSync(descriptor, edit);
      fs.closeSync(descriptor);
    }
  }

  #editOne({ target, way }: Planned): void {
    const file = path.join(this.#root, target);
    this.#count += 1;
    const edit = `<edit ${this.#count}>`;
    if (way === 'save') return this.#save(file, target, edit);
    const { O_WRONLY, O_APPEND, O_NONBLOCK } = fs.constants;
    // an open that waited would wait for this very process
    const descriptor = fs.openSync(file, O_WRONLY | O_APPEND | O_NONBLOCK);
    this.edits.set(edit, target);
    if (way === 'hold') {
      this.#held.push({ descriptor, ino: fs.fstatSync(descriptor).ino, edit });
      return;
    }
    fs.writeSync(descriptor, edit);
    fs.closeSync(descriptor);
  }

  /** What the person saves over is the person's to lose: edits in it, and what is yet to be written to it. */
  #save(file: string, target: string, edit: string): void {
    const fresh = path.join(path.dirname(file), `.saving${this.#count}`);
    fs.writeFileSync(fresh, edit);
    const old = fs.existsSync(file) ? { text: fs.readFileSync(file, 'utf8'), ino: fs.statSync(file).ino } : undefined;
    fs.renameSync(fresh, file);
    for (const gone of old?.text.match(/<edit \d+>/g) ?? []) this.edits.delete(gone);
    for (const held of this.#held) if (held.ino === old?.ino) this.edits.delete(held.edit);
    this.edits.set(edit, target);
  }
}

/** Plays edits at native calls of an apply: each is at its path then, or in a copy that was kept and told. Returns how it ended, and of how many edits only a copy is left. */
export async function playEdits(
  plan: ReadonlyMap<number, readonly Planned[]>,
): Promise<{ readonly outcome: string; readonly copied: number }> {
  const scene = editedScene();
  try {
    const person = new Person(scene.root);
    const { reply, recovered } = await applyWatched(scene, (call) => person.edit(plan.get(call) ?? []));
    person.finish();
    const again = await recoverHere(scene);
    const kept = 'kept' in reply ? reply.kept : [];
    const told = new Set([...kept, ...recovered.conflicts, ...again.conflicts]);
    const tree = filesBelow(scene.root);
    const copies = [...filesBelow(path.join(scene.own, 'kept')).values()];
    let copied = 0;
    for (const [edit, target] of person.edits) {
      if (tree.get(target)?.includes(edit) === true) continue;
      const said = JSON.stringify([edit, target, reply, recovered, again, [...tree], copies, [...plan]]);
      assert.ok(
        copies.some((copy) => copy.includes(edit)),
        `an edit is lost: ${said}`,
      );
      assert.ok(told.has(target), `nobody was told of a copy: ${said}`);
      copied += 1;
    }
    const outcome = 'code' in reply ? `${reply.outcome} ${reply.code}` : reply.outcome;
    assert.notEqual(outcome, 'refused PROMOTION_RECOVERY_REQUIRED', JSON.stringify([...plan]));
    return { outcome, copied };
  } finally {
    scene.remove();
  }
}
