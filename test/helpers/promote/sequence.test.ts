import assert from 'node:assert/strict';
import fs from 'node:fs';
import { constants } from 'node:os';
import path from 'node:path';

import { interpose, NativeError } from '../../../helpers/runtime/libc.ts';
import type { Argument, Interposer } from '../../../helpers/runtime/libc.ts';
import { LEASE } from '../../../helpers/runtime/native-locks.ts';
import type { SyscallName } from '../../../helpers/runtime/syscall-numbers.ts';
import { applyHere, confirmUndo, promoted, recoverHere, undoHere } from '../../fakes/promote-here.ts';
import { PromotionScene } from '../../fakes/promotion-scene.ts';
import { QUICK_PARENT } from '../../fakes/watched-apply.ts';
import { describeCall } from '../../faults/crash/description.ts';

/** After a change of the protocol that was meant: RECORD=1 npx mocha test/helpers/promote/sequence.test.ts */
const RECORDED = path.resolve(import.meta.dirname, '..', '..', 'fixtures', 'promotion-calls.txt');
const CHANGES = new Set(
  'mkdirat unlinkat renameat2 linkat fchmod fchown fsetxattr utimensat fsync fdatasync syncfs'.split(' '),
);
/** However new content is copied, it is one step. */
const WRITES = new Set(['pwrite64', 'copy_file_range']);
const CREATES = BigInt(fs.constants.O_CREAT) | 0o20000000n;

/** F_SETLEASE (linux/fcntl.h). */
const SET_LEASE = 1024;

const leaseIn = (words: string, kind: unknown): string =>
  words.replace('fcntl', kind === LEASE.NONE ? 'ends lease' : 'leases');

/** Names that are removed right after one another come in the order of the file system. */
function inOrder(lines: readonly string[]): readonly string[] {
  const isRemoval = (line: string): boolean => /^unlinkat (?:root\/STAGE|own\/history\/PROMOTION) /.test(line);
  const sorted: string[] = [];
  let run: string[] = [];
  for (const line of lines) {
    if (isRemoval(line)) {
      run.push(line);
      continue;
    }
    sorted.push(...run.toSorted(), line);
    run = [];
  }
  return [...sorted, ...run.toSorted()];
}

/** Six changes: each kind of step, with a folder that comes and one that goes. */
function smallScene(): PromotionScene {
  const scene = new PromotionScene({ asCaller: true, parent: QUICK_PARENT });
  for (const folder of ['keep', 'old']) scene.folderAt(folder);
  for (const name of ['keep/changed', 'keep/gone', 'old/inside']) scene.put(name, name);
  scene.draftOf({
    'keep/changed': { file: 'new' },
    'keep/gone': 'removed',
    old: 'removed',
    'old/inside': 'removed',
    made: { folder: 0o750 },
    'made/inside': { file: 'inside' },
  });
  return scene;
}

/** Notes what is changed, synced or leased; from the call on that begins with `end`, none is made any more, or that one alone is refused. */
class Watch {
  readonly lines: string[] = [];
  readonly #end: string | undefined;
  readonly #isCut: boolean;
  readonly #atEnd: () => void;
  #isOver = false;

  constructor(end?: string, isCut = true, atEnd: () => void = () => undefined) {
    this.#end = end;
    this.#isCut = isCut;
    this.#atEnd = atEnd;
  }

  readonly interposer: Interposer = (name, args, make) => {
    const refused = new NativeError(name, constants.errno.EIO);
    if (this.#isOver && this.#isCut) throw refused;
    const words = this.#wordsOf(name, args);
    if (words === undefined) return make();
    if (!this.#isOver && this.#end !== undefined && words.includes(this.#end)) {
      this.#isOver = true;
      this.#atEnd();
      throw refused;
    }
    if (words !== this.lines.at(-1)) this.lines.push(words);
    return make();
  };

  #wordsOf(name: SyscallName, args: readonly Argument[]): string | undefined {
    if (name === 'fcntl') return args[1] === SET_LEASE ? leaseIn(describeCall(name, args), args[2]) : undefined;
    if (WRITES.has(name)) return describeCall(name, args).replace(/^\w+ (?:.* )?/, 'write ');
    const creates = Buffer.isBuffer(args[2]) && (args[2].readBigUInt64LE(0) & CREATES) !== 0n;
    return CHANGES.has(name) || (name === 'openat2' && creates) ? describeCall(name, args) : undefined;
  }
}

async function linesOf(watch: Watch, work: () => unknown): Promise<readonly string[]> {
  interpose(watch.interposer);
  try {
    await work();
  } finally {
    interpose(undefined);
  }
  return watch.lines;
}

/** Cuts an apply before a call, and gives the lines of the recovery. */
async function recoveredFrom(cut: string): Promise<readonly string[]> {
  const scene = smallScene();
  try {
    await applyHere(scene, new Watch(cut).interposer).catch(() => undefined);
    return await linesOf(new Watch(), () => recoverHere(scene));
  } finally {
    scene.remove();
  }
}

async function undone(): Promise<readonly string[]> {
  const scene = smallScene();
  try {
    const id = await promoted(scene);
    await confirmUndo(scene, id);
    return await linesOf(new Watch(), () => undoHere(scene, id));
  } finally {
    scene.remove();
  }
}

async function applied(
  end?: string,
  meanwhile: (scene: PromotionScene) => void = () => undefined,
): Promise<readonly string[]> {
  const scene = smallScene();
  const watch = new Watch(end, false, () => meanwhile(scene));
  try {
    await applyHere(scene, watch.interposer);
    return watch.lines;
  } finally {
    scene.remove();
  }
}

function save(scene: PromotionScene): void {
  fs.writeFileSync(path.join(scene.folder, 'saved'), 'saved');
  fs.renameSync(path.join(scene.folder, 'saved'), scene.at('keep/changed'));
}

describe('the steps of a promotion', () => {
  it('what an apply, an undo and every way out change, sync and lease is what stands in promotion-calls.txt, in that order', async () => {
    const found = {
      'an apply that goes through': await applied(),
      'an apply whose commit is refused': await applied('journal.prepared own journal.committed'),
      'an apply whose commit is refused after a person saved over a file of it': await applied(
        'journal.prepared own journal.committed',
        save,
      ),
      'the recovery of one that was cut before it was prepared': await recoveredFrom('journal.prepared'),
      'the recovery of one that was cut before its commit': await recoveredFrom('journal.committed'),
      'the recovery of one that was cut after its commit': await recoveredFrom('mkdirat own history'),
      'an undo': await undone(),
    };
    const text = Object.entries(found)
      .map(
        ([title, lines]) =>
          `${title}\n${inOrder(lines)
            .map((line) => `  ${line}\n`)
            .join('')}`,
      )
      .join('\n');
    if (process.env['RECORD'] === '1') fs.writeFileSync(RECORDED, text);
    assert.equal(text, fs.readFileSync(RECORDED, 'utf8'));
  });
});
