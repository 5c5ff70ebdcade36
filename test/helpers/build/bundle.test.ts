import assert from 'node:assert/strict';
import fs from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

import { bundle, ENTRIES } from '../../../helpers/build/bundle.ts';
import { InstallationError, readInstallation, verifyFiles } from '../../../helpers/runtime/installation.ts';
import { TABLE } from '../../../helpers/table.ts';

const TOP = path.resolve(import.meta.dirname, '../../..');

describe('the build', () => {
  let base: string;
  before(() => (base = fs.mkdtempSync(path.join(tmpdir(), 'build-'))));
  after(() => fs.rmSync(base, { recursive: true }));

  it('makes equal bytes twice, in under three seconds each, with no path of this machine in a bundle', async () => {
    const manifests: string[] = [];
    for (const name of ['one', 'two']) {
      const startedAt = performance.now();
      await bundle(TOP, path.join(base, name), ENTRIES);
      assert.ok(performance.now() - startedAt < 3_000);
      manifests.push(fs.readFileSync(path.join(base, name, 'manifest.json'), 'utf8'));
    }
    assert.equal(manifests[0], manifests[1]);
    const files = fs.readdirSync(path.join(base, 'one')).filter((name) => name.endsWith('.mjs'));
    for (const name of files) assert.ok(!fs.readFileSync(path.join(base, 'one', name), 'utf8').includes(TOP), name);
  });

  it('has an entry for every row of the table, from the source that the table names', () => {
    for (const { row, entry } of Object.values(TABLE))
      assert.equal(ENTRIES.find(({ name }) => name === row)?.source, entry, row);
  });

  it('a file that is altered, missing or not in the manifest is told by its name and without a path', () => {
    const folder = path.join(base, 'one');
    const installation = readInstallation(folder);
    verifyFiles(installation, ['launch.mjs', 'koffi.node']);
    fs.appendFileSync(path.join(folder, 'launch.mjs'), '\n');
    const refusal = (code: string) => (error: unknown) =>
      error instanceof InstallationError && error.code === code && !error.message.includes(base);
    assert.throws(() => verifyFiles(installation, ['koffi.node', 'launch.mjs']), refusal('ROLE_ALTERED'));
    assert.throws(() => verifyFiles(installation, ['other.mjs']), refusal('ROLE_MISSING'));
    fs.rmSync(path.join(folder, 'launch.mjs'));
    assert.throws(() => verifyFiles(installation, ['launch.mjs']), refusal('ROLE_MISSING'));
    assert.throws(() => readInstallation(base), refusal('INSTALLATION_MISSING'));
  });
});
