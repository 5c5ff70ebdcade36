import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';

import { entriesIn } from '../../../helpers/files/walk.ts';
import { bundleWriter, type Writer } from '../../fixtures/bundle-writer.ts';
import { Bench, sha256 } from './bench.ts';

const steps: readonly (readonly [string, unknown])[] = [
  ['file.write', { path: 'new/deep/file.txt', content: 'first', createParents: true }],
  ['file.write', { path: 'new/deep/file.txt', content: 'second', overwrite: true }],
  ['file.append', { path: 'a.txt', content: 'more' }],
  ['file.patch', { path: 'a.txt', expectedSha256: sha256('alphamore'), edits: [{ oldText: 'more', newText: 'less' }] }],
  ['file.rename', { from: 'src', to: 'lib' }],
  ['file.chmod', { path: 'lib/run.sh', executable: true }],
  ['file.delete', { path: 'new', recursive: true }],
];

interface Ran {
  readonly done: number;
  readonly calls: number;
}

function plant(bench: Bench): void {
  bench.put({ 'a.txt': 'alpha', 'src/run.sh': 'run', 'src/two': 'two' });
  fs.chmodSync(bench.at('src/run.sh'), 0o644);
}

/** Every file that a run sees, with mode and content. */
async function seen(bench: Bench, folder = '.'): Promise<string[]> {
  const lines: string[] = [];
  for (const { name, kind, mode } of (await bench.done('file.list', { path: folder })).entries) {
    const at = folder === '.' ? name : `${folder}/${name}`;
    if (kind === 'directory') lines.push(`${at}/`, ...(await seen(bench, at)));
    else lines.push(`${at} ${mode} ${await bench.text(at)}`);
  }
  return lines;
}

function assertNothingLeftOver(bench: Bench): void {
  for (const slot of fs.readdirSync(bench.draftsPath)) {
    const folder = fs.openSync(path.join(bench.draftsPath, slot), 'r');
    const names = [...entriesIn(folder)].map(({ name }) => name.toString()).filter((name) => !name.endsWith('.index'));
    fs.closeSync(folder);
    assert.ok(
      names.every((name) => name.startsWith('content-')),
      names.join(),
    );
  }
}

/** What a run sees after each number of steps. */
async function expectedStates(): Promise<string[]> {
  const bench = new Bench();
  plant(bench);
  const states = [JSON.stringify(await seen(bench))];
  for (const [operation, args] of steps) {
    await bench.done(operation as never, args);
    states.push(JSON.stringify(await seen(bench)));
  }
  await bench.remove();
  return states;
}

describe('a draft whose writer is killed', () => {
  let writer: Writer;

  before(async function () {
    this.timeout(30_000);
    writer = await bundleWriter();
  });
  after(() => writer.remove());

  function runWriter(bench: Bench, nth: number, moment: 'before' | 'after'): Ran {
    const stepsFile = path.join(bench.folder, 'steps.json');
    fs.writeFileSync(stepsFile, JSON.stringify(steps));
    const args = [writer.file, bench.rootPath, bench.draftsPath, bench.run, String(nth), moment, stepsFile];
    const { stdout, stderr, signal, status } = spawnSync(process.execPath, args, { encoding: 'utf8' });
    assert.ok(nth === 0 ? status === 0 : signal === 'SIGKILL', `status ${status}, signal ${signal}: ${stderr}`);
    const lines = stdout
      .trim()
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line));
    for (const line of lines) assert.equal(line.result.success, true, JSON.stringify(line));
    return { done: lines.length, calls: lines.at(-1)?.calls ?? 0 };
  }

  it('S-186 killed at every write and flush, it is the complete old or the complete new draft, and the project is untouched', async function () {
    this.timeout(120_000);
    const states = await expectedStates();
    assert.equal(new Set(states).size, steps.length + 1, 'each step shows');
    const whole = new Bench();
    plant(whole);
    const { calls } = runWriter(whole, 0, 'after');
    await whole.remove();
    assert.ok(calls > 20, `${calls} writes and flushes`);
    for (let nth = 1; nth <= calls; nth += 1) {
      const moment = nth % 2 === 0 ? 'before' : 'after';
      const bench = new Bench();
      plant(bench);
      const before = bench.treeDigest();
      const { done } = runWriter(bench, nth, moment);
      bench.start();
      const state = states.indexOf(JSON.stringify(await seen(bench)));
      assert.ok(
        state === done || state === done + 1,
        `call ${nth} ${moment}: ${done} steps were told, ${state} are there`,
      );
      assertNothingLeftOver(bench);
      await bench.done('file.write', { path: 'afterwards', content: 'works' });
      assert.equal(await bench.text('afterwards'), 'works');
      assert.equal(bench.treeDigest(), before);
      await bench.remove();
    }
  });
});
