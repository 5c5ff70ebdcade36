import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

import { CommandLine } from '../../fixtures/command-line.ts';

describe('nessie-executor simulate', function () {
  this.timeout(60_000);
  let cli: CommandLine;
  let folder: string;

  before(async () => {
    cli = await CommandLine.build();
    folder = fs.mkdtempSync(path.join(os.tmpdir(), 'simulate-'));
  });
  after(() => {
    fs.rmSync(folder, { recursive: true });
    return cli.remove();
  });

  it('ends with one line of JSON, whose digest is that of the trace that it writes and that replays', async () => {
    const trace = path.join(folder, 'trace.jsonl');
    const wish = ['simulate', '--seed', 'cli', '--executors', '2', '--hours', '1', '--faults', 'cut,daemon'];
    const { code, out } = await cli.run([...wish, '--trace', trace, '--json']);
    assert.equal(code, 0);
    const told = JSON.parse(out.trim().split('\n').at(-1) ?? '') as Record<string, unknown>;
    assert.deepEqual(Object.keys(told), ['events', 'eventsPerMinute', 'violations', 'seed', 'traceDigest']);
    assert.equal(told['violations'], 0);
    const again = await cli.run([...wish, '--json']);
    assert.equal((JSON.parse(again.out) as typeof told)['traceDigest'], told['traceDigest']);
    assert.match((await cli.run(['trace', 'replay', trace])).out, /^replayed: /);
  });

  it('tells a person what was simulated', async () => {
    const { code, out } = await cli.run(['simulate', '--executors', '2', '--hours', '1', '--faults', 'none']);
    assert.equal(code, 0);
    assert.match(out, /deciding events +\d+, \d+ a minute\n[\s\S]*every invariant held\n$/);
  });

  it('ends a story that went otherwise with 1 and what came', async () => {
    const file = path.join(folder, 'story.yaml');
    fs.writeFileSync(file, 'tells: x\nsteps: [{ at: 1s, do: pause }]\nexpect: [{ machine: 1, is: revoked }]\n');
    const { code, out, error } = await cli.run(['simulate', '--scenario', file]);
    assert.equal(code, 1);
    assert.match(out, /machine 1: expected revoked, got online/);
    assert.match(error, /otherwise in 1 point/);
  });

  const wrong: Readonly<Record<string, readonly [string[], RegExp]>> = {
    'a kind of fault that there is not': [['--faults', 'cut,rain'], /expected all, none or some of .*; got rain/],
    'a number that is none': [['--executors', 'many'], /--executors: expected a number from 1 to 10000, got many/],
    'no time at all': [['--hours', '0'], /--hours: expected a number from 0\.01/],
    'a pace that there is not': [['--pace', 'fast'], /--pace: expected ordinary or dense, got fast/],
    'a story that is not there': [['--scenario', '/nowhere.yaml'], /no such file/],
    'a file that is no story': [['--scenario', '/etc/hostname'], /scenario cannot be read/],
    'a machine that there is not': [['--step', 'other'], /there are the machines executor/],
  };
  for (const [what, [options, says]] of Object.entries(wrong)) {
    it(`ends ${what} with one sentence and code 2`, async () => {
      const { code, error } = await cli.run(['simulate', ...options]);
      assert.equal(code, 2);
      assert.match(error, says);
      assert.doesNotMatch(error, /\n {4}at /);
    });
  }
});
