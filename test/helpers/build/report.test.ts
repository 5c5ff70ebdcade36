import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { readReport } from '../../../helpers/build/report.ts';

const root = join(import.meta.dirname, '../../..');

describe('test report', () => {
  it('the reporter writes every outcome, says what a skipped test lacked, and ends with the counts', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'nessie-report-'));
    try {
      const output = join(folder, 'deep/report.json');
      const reporter = ['--reporter', './helpers/build/report.ts', '--reporter-option', `output=${output}`];
      const mocha = ['node_modules/mocha/bin/mocha.js', 'test/fixtures/outcomes.ts', ...reporter];
      const { stdout, status } = spawnSync(process.execPath, mocha, { cwd: root, encoding: 'utf8' });
      assert.equal(status, 1);
      assert.match(stdout, /^skipped: outcomes lacks a moon: no moon here$/m);
      assert.equal(stdout.trimEnd().split('\n').at(-1), '1 passed, 1 failed, 3 skipped');
      const report = readReport(output);
      assert.equal(report?.node, process.version);
      assert.deepEqual(report?.tests, [
        { title: 'passes', fullTitle: 'outcomes passes', outcome: 'passed' },
        { title: 'fails', fullTitle: 'outcomes fails', outcome: 'failed' },
        { title: 'lacks a moon', fullTitle: 'outcomes lacks a moon', outcome: 'skipped', missing: 'no moon here' },
        { title: 'has no body', fullTitle: 'outcomes has no body', outcome: 'skipped', missing: 'no reason given' },
        { title: 'is below', fullTitle: 'outcomes lacks a sun is below', outcome: 'skipped', missing: 'no sun here' },
      ]);
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  it('a run that has not been leaves no report, and a damaged one is an error', () => {
    assert.equal(readReport(join(root, 'no/such/report.json')), undefined);
    assert.throws(() => readReport(join(root, 'README.md')), SyntaxError);
  });
});
