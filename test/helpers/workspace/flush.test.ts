import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';

import { bundleWriter, type Writer } from '../../fixtures/bundle-writer.ts';
import { skipBecause } from '../../skip.ts';
import { Bench } from './bench.ts';

const steps = [
  ['file.write', { path: 'a.txt', content: 'one' }],
  ['file.write', { path: 'a.txt', content: 'two', overwrite: true }],
  ['file.write', { path: 'b.txt', content: 'three' }],
] as const;

describe('a draft on a disk that fails', () => {
  let writer: Writer;

  before(async function () {
    this.timeout(30_000);
    if (spawnSync('strace', ['-V']).status !== 0) skipBecause(this, 'strace, to make flushes fail');
    writer = await bundleWriter();
  });
  after(() => writer?.remove());

  it('a step whose flush failed is told as failed, is not there, and the next step does not bring it back', async function () {
    this.timeout(60_000);
    for (let nth = 1; nth <= 11; nth += 2) {
      const bench = new Bench();
      fs.writeFileSync(path.join(bench.folder, 'steps.json'), JSON.stringify(steps));
      const args = [bench.rootPath, bench.draftsPath, bench.run, '0', 'after', path.join(bench.folder, 'steps.json')];
      const strace = ['-f', '-qq', '-o', '/dev/null', '-e', 'trace=fsync', '-e', `inject=fsync:error=EIO:when=${nth}`];
      const { stdout, status, stderr } = spawnSync('strace', [...strace, process.execPath, writer.file, ...args], {
        encoding: 'utf8',
        // strace counts the calls of each thread for itself
        env: { ...process.env, UV_THREADPOOL_SIZE: '1' },
      });
      assert.equal(status, 0, stderr);
      const results: { success: boolean; code?: string; message?: string }[] = stdout
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line).result);
      assert.equal(results.filter(({ success }) => !success).length, 1, `flush ${nth}: ${stdout}`);
      assert.ok(results.every(({ success, code }) => success || code === 'WORKSPACE_UNAVAILABLE'));
      bench.start();
      const [one, two, three] = results.map(({ success }) => success);
      const expected = two ? 'two' : one ? 'one' : undefined;
      if (expected === undefined) await bench.fails('WORKSPACE_UNAVAILABLE', 'file.read', { path: 'a.txt' });
      else assert.equal(await bench.text('a.txt'), expected, `flush ${nth}`);
      assert.equal((await bench.names()).includes('b.txt'), three, `flush ${nth}`);
      await bench.remove();
    }
  });
});
