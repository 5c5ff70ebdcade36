import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';

import { Draw } from '../../campaigns/campaign.ts';
import { parseManifest, type Manifest } from '../../../helpers/files/manifest.ts';
import type { OperationKey } from '../../../helpers/protocol/operations.ts';
import { Bench, memoryFolder, newPromotion, sha256 } from './bench.ts';

const SEQUENCES = 30;
const STEPS = 40;
const NAMES = ['a', 'b', 'c'];

/** Every path below a folder with its kind, executable bit and content. */
function tree(top: string, below = ''): string[] {
  return fs
    .readdirSync(path.join(top, below))
    .toSorted()
    .flatMap((name) => {
      const at = path.join(below, name);
      const status = fs.lstatSync(path.join(top, at));
      if (status.isDirectory()) return [`${at}/`, ...tree(top, at)];
      return [`${at} ${(status.mode & 0o777).toString(8)} ${fs.readFileSync(path.join(top, at), 'utf8')}`];
    });
}

async function draftTree(bench: Bench, below = '.'): Promise<string[]> {
  const { entries } = await bench.done('file.list', { path: below });
  const lines: string[] = [];
  for (const { name, kind, mode } of entries) {
    const at = below === '.' ? name : `${below}/${name}`;
    if (kind === 'directory') lines.push(`${at}/`, ...(await draftTree(bench, at)));
    else lines.push(`${at} ${mode.replace(/^0/, '')} ${await bench.text(at)}`);
  }
  return lines;
}

type Step = readonly [OperationKey, Record<string, unknown>, (shadow: string) => void];

/** One random operation, and the same with ordinary calls on an ordinary tree. */
function randomStep(random: (below: number) => number, count: number): Step {
  const somewhere = (): string => Array.from({ length: 1 + random(3) }, () => NAMES[random(NAMES.length)]).join('/');
  const [at, to] = [somewhere(), somewhere()];
  const content = `content ${count}`;
  const steps: readonly Step[] = [
    [
      'file.write',
      { path: at, content, overwrite: true, createParents: true },
      (shadow) => {
        fs.mkdirSync(path.dirname(path.join(shadow, at)), { recursive: true });
        fs.writeFileSync(path.join(shadow, at), content);
      },
    ],
    ['file.append', { path: at, content }, (shadow) => fs.appendFileSync(path.join(shadow, at), content)],
    ['file.delete', { path: at, recursive: true }, (shadow) => fs.rmSync(path.join(shadow, at), { recursive: true })],
    ['file.rename', { from: at, to }, (shadow) => fs.renameSync(path.join(shadow, at), path.join(shadow, to))],
    [
      'file.mkdir',
      { path: at, createParents: true },
      (shadow) => fs.mkdirSync(path.join(shadow, at), { recursive: true }),
    ],
    [
      'file.chmod',
      { path: at, executable: count % 2 === 0 },
      (shadow) => fs.chmodSync(path.join(shadow, at), count % 2 === 0 ? 0o755 : 0o644),
    ],
  ];
  return steps[random(steps.length)] ?? randomStep(random, count);
}

/** Applies a manifest to a tree with ordinary calls, content taken from where the draft's view had it. */
async function applyManifest(bench: Bench, { changes }: Manifest, target: string): Promise<void> {
  for (const change of changes.toReversed()) {
    const at = path.join(target, change.path);
    if (change.kind === 'deleted' && change.type === 'directory') fs.rmdirSync(at);
    else if (change.kind === 'deleted' || change.kind === 'modified') {
      if (change.type === 'file') assert.equal(sha256(fs.readFileSync(at)), change.before?.sha256);
      fs.rmSync(at);
    }
  }
  for (const change of changes) {
    const at = path.join(target, change.path);
    if (!change.after) continue;
    if (change.type === 'directory') fs.mkdirSync(at);
    else {
      const content = await bench.text(change.path);
      assert.equal(sha256(content), change.after.sha256);
      fs.writeFileSync(at, content);
      fs.chmodSync(at, Number.parseInt(change.after.mode, 8));
    }
  }
}

describe('a draft beside an ordinary tree', function () {
  this.timeout(60_000);

  it('shows what the same operations do to ordinary files, over restarts, and its manifest turns the root into that', async () => {
    const seed = randomInt(2 ** 31);
    for (let sequence = 0; sequence < SEQUENCES; sequence += 1) {
      const draw = new Draw(String(seed + sequence));
      const random = (below: number): number => draw.below(below);
      const bench = new Bench(memoryFolder());
      bench.put({ 'a/a/a': '1', 'a/b': '2', 'b/c': '3', c: '4' });
      const [shadow, applied] = ['shadow', 'applied'].map((name) => path.join(bench.folder, name));
      assert.ok(shadow && applied);
      for (const copy of [shadow, applied]) fs.cpSync(bench.rootPath, copy, { recursive: true });
      const before = bench.treeDigest();
      await bench.done('file.write', { path: 'start', content: 'x' });
      fs.writeFileSync(path.join(shadow, 'start'), 'x');
      const story: string[] = [];
      let succeeded = 0;
      for (let count = 0; count < STEPS; count += 1) {
        const [operation, args, onShadow] = randomStep(random, count);
        const answer = await bench.ask(operation, args);
        story.push(`${operation} ${JSON.stringify(args)} ${JSON.stringify(answer)}`);
        if (answer.success) {
          onShadow(shadow);
          succeeded += 1;
        }
        if (random(10) === 0) bench.start();
        assert.deepEqual(await draftTree(bench), tree(shadow), `seed ${seed + sequence}\n${story.join('\n')}`);
      }
      assert.ok(succeeded > 0, story.join('\n'));
      assert.equal(bench.treeDigest(), before);
      const { manifestDigest } = await bench.done('workspace.review', {});
      const promotion = newPromotion();
      const { manifest } = await bench.handlers['workspace.freeze']({ run: bench.run, promotion, manifestDigest });
      assert.ok(manifest);
      await applyManifest(bench, parseManifest(manifest), applied);
      assert.deepEqual(tree(applied), tree(shadow), `seed ${seed + sequence}\n${story.join('\n')}`);
      await bench.remove();
    }
  });
});
