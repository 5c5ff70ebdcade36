import assert from 'node:assert/strict';
import fs from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

import { bundle, ENTRIES } from '../../../helpers/build/bundle.ts';
import { inspectTree } from '../../../helpers/runtime/inspect.ts';
import { readInstallation, type Installation } from '../../../helpers/runtime/installation.ts';
import { runTwins } from '../../../helpers/runtime/twins.ts';
import { makeExecutor, runningInstallation, Tree } from '../../fixtures/run-tree.ts';
import { until } from '../../fixtures/until.ts';

const TOP = path.resolve(import.meta.dirname, '../../..');
/** Programs that no row is. */
const OTHERS = new Set(['cli', 'server']);

describe('the shipped rows', () => {
  let base: string;
  let built: Installation;
  let installation: Installation;
  let tree: Tree;
  let executor: string;

  before(async () => {
    base = fs.mkdtempSync(path.join(tmpdir(), 'shipped-'));
    fs.chmodSync(base, 0o755);
    const folder = path.join(base, 'dist');
    await bundle(
      TOP,
      folder,
      ENTRIES.filter(({ name }) => !OTHERS.has(name)),
    );
    built = readInstallation(folder);
    installation = runningInstallation(built);
    const made = makeExecutor();
    executor = made.base;
    tree = new Tree(built, made.configuration);
    await until(
      'every row is up',
      () => inspectTree(installation, made.configuration).processes.length === 5 || undefined,
    );
    await until('the daemon is up', () => tree.log.includes('"STARTED"') || undefined);
  });
  after(async () => {
    await tree.stop();
    fs.rmSync(base, { recursive: true });
    fs.rmSync(executor, { recursive: true });
  });

  it('run as the table says, every thread of them, and none listens on a network', async () => {
    const inspection = await until('the tree is settled', () => {
      const found = inspectTree(installation, tree.configuration);
      return found.differences.length === 0 ? found : undefined;
    });
    assert.deepEqual(inspection.processes.map(({ row }) => row).toSorted(byName), [
      'daemon',
      'key-store',
      'link',
      'supervisor',
      'workspace',
    ]);
  });

  it('reach what the table says and nothing else, beside the running ones', async () => {
    const findings = await runTwins(installation, tree.configuration);
    assert.deepEqual(
      findings.filter(({ isDifference }) => isDifference),
      [],
    );
  });

  it('end in order when the supervisor is asked to', async () => {
    assert.equal(await tree.stop(), 0);
    assert.deepEqual(inspectTree(installation, tree.configuration), {
      supervisor: undefined,
      processes: [],
      landlockAbi: undefined,
      differences: [],
    });
  });
});

function byName(one: unknown, other: unknown): number {
  return String(one).localeCompare(String(other));
}
