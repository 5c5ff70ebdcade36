import assert from 'node:assert/strict';
import fs from 'node:fs';

import type { OperationSuccess } from '../../../helpers/protocol/operations.ts';
import { Bench, memoryFolder } from './bench.ts';

const places = (found: OperationSuccess<'file.search'>): string[] =>
  found.matches.map(({ path, line, column }) => (line === undefined ? path : `${path}:${line}:${column}`));

describe('file.search', function () {
  this.timeout(60_000);
  let bench: Bench;
  let before: string;

  beforeEach(() => {
    bench = new Bench(memoryFolder());
    bench.put({
      'a.txt': 'alpha beta\nGamma delta\n',
      'src/one.ts': 'const one = 1;\nconst naïve = "x"; // beta\r\n',
      'src/two.ts': 'beta beta',
      'bin.dat': Buffer.from([0, 1, 2, 98, 101, 116, 97]),
    });
    before = bench.treeDigest();
  });
  afterEach(async () => {
    assert.equal(bench.treeDigest(), before);
    await bench.remove();
  });

  const search = (args: object): Promise<OperationSuccess<'file.search'>> => bench.done('file.search', args);
  it('contents are found literally, with line, column and text, in byte order of paths; binary files are skipped', async () => {
    const found = await search({ query: 'beta' });
    assert.deepEqual(places(found), ['a.txt:1:7', 'src/one.ts:2:23', 'src/two.ts:1:1']);
    assert.equal(found.matches[1]?.text, 'const naïve = "x"; // beta');
    assert.deepEqual([found.stopped, found.filesSearched], ['complete', 3]);
    assert.deepEqual(places(await search({ query: 'beta', path: 'src/two.ts' })), ['src/two.ts:1:1']);
  });

  it('patterns and letter case are as asked for', async () => {
    assert.deepEqual(places(await search({ query: '^g.mma\\b', syntax: 'pattern' })), []);
    assert.deepEqual(places(await search({ query: '^g.mma\\b', syntax: 'pattern', ignoreCase: true })), ['a.txt:2:1']);
    assert.deepEqual(places(await search({ query: 'GAMMA', ignoreCase: true })), ['a.txt:2:1']);
    assert.deepEqual(places(await search({ query: '1;$', syntax: 'pattern' })), ['src/one.ts:1:13']);
    assert.deepEqual(places(await search({ query: '(x', syntax: 'literal' })), []);
    assert.match(await bench.fails('WORKSPACE_DENIED', 'file.search', { query: '(x', syntax: 'pattern' }), /RE2/);
    assert.match(await bench.fails('WORKSPACE_DENIED', 'file.search', { query: '(a)\\1', syntax: 'pattern' }), /RE2/);
  });

  it('names are found, folders too, and whole paths where the query has a slash', async () => {
    assert.deepEqual(places(await search({ query: 'o', in: 'names' })), ['src/one.ts', 'src/two.ts']);
    assert.deepEqual(places(await search({ query: 'src', in: 'names' })), ['src']);
    assert.deepEqual(places(await search({ query: 'c/t', in: 'names' })), ['src/two.ts']);
  });

  it('the draft of the run is searched, not what it replaced', async () => {
    await bench.done('file.write', { path: 'src/two.ts', content: 'omega', overwrite: true });
    await bench.done('file.write', { path: 'new/omega.txt', content: 'omega', createParents: true });
    await bench.done('file.delete', { path: 'a.txt' });
    assert.deepEqual(places(await search({ query: 'beta' })), ['src/one.ts:2:23']);
    assert.deepEqual(places(await search({ query: 'omega' })), ['new/omega.txt:1:1', 'src/two.ts:1:1']);
    assert.deepEqual(places(await search({ query: 'omega', in: 'names' })), ['new/omega.txt']);
  });

  it('it says when it stopped early, and never answers more than a result may hold', async () => {
    const found = await search({ query: 'beta', maxMatches: 2 });
    assert.deepEqual([found.matches.length, found.stopped], [2, 'matches']);
    assert.equal((await search({ query: 'beta', maxMatches: 3 })).stopped, 'complete');
    bench.put({ 'long.txt': `${'y'.repeat(390)}\n`.repeat(400) });
    before = bench.treeDigest();
    const many = await search({ query: 'y', path: 'long.txt', maxMatches: 200 });
    assert.equal(many.stopped, 'matches');
    assert.ok(many.matches.length > 100 && JSON.stringify(many).length < 65_536);
  });

  it('a match far along a line longer than any is found with the text around it', async () => {
    bench.put({ 'one-line.json': `${'x'.repeat(3_000_000)}needle${'z'.repeat(1_000)}` });
    before = bench.treeDigest();
    const found = await search({ query: 'needle' });
    assert.equal(found.matches[0]?.path, 'one-line.json');
    assert.match(found.matches[0]?.text ?? '', /x{100}needlez+/);
  });

  const timed = async (query: string, syntax: string): Promise<number> => {
    const start = performance.now();
    await search({ query, syntax, path: 'hostile.txt' });
    return performance.now() - start;
  };

  it('hostile patterns end as fast as a literal', async () => {
    bench.put({ 'hostile.txt': `${'a'.repeat(50_000)}\n`.repeat(80) });
    before = bench.treeDigest();
    await timed('b', 'literal');
    const literal = await timed(`${'a'.repeat(500)}b`, 'literal');
    // public cases: OWASP ReDoS, the RE2 and Cloudflare write-ups, snyk's and recheck's examples
    const hostile = [
      '(a+)+b',
      '([a-zA-Z]+)*b',
      '(a|aa)+b',
      '(a|a?)+b',
      '(.*a){12}b',
      '^(a+)+$b',
      '(a*)*b',
      '(?:.*.*=.*)b',
      '(x+x+)+y',
      '^(([a-z])+.)+[A-Z]([a-z])+$',
      '(a?){50}a{50}b',
      '.*.*.*.*.*b',
      '(?:(?:a*)*)*b',
      '\\s+$',
      '([^b]+)+b',
    ];
    for (const pattern of hostile) {
      const ms = await timed(pattern, 'pattern');
      assert.ok(
        ms < Math.max(1_000, literal * 10),
        `${pattern}: ${ms.toFixed(0)} ms, literal ${literal.toFixed(0)} ms`,
      );
    }
  });

  it('a large tree is searched whole, off the main loop, and a stop ends it', async () => {
    const folders = 200;
    for (let folder = 0; folder < folders; folder += 1) {
      fs.mkdirSync(bench.at(`tree/${folder}`), { recursive: true });
      for (let file = 0; file < 100; file += 1)
        fs.writeFileSync(bench.at(`tree/${folder}/${file}`), `content ${folder} ${file}`);
    }
    before = bench.treeDigest();
    let turns = 0;
    const ticking = setInterval(() => (turns += 1), 5);
    const found = await search({ query: 'content 199 99' });
    clearInterval(ticking);
    assert.deepEqual([places(found), found.stopped], [['tree/199/99:1:1'], 'complete']);
    assert.ok(found.filesSearched > 20_000 && turns > 5, `${turns} turns`);
    // a hundred thousand files later a thread holds nothing of the files that it closed
    for (let round = 0; round < 5; round += 1) assert.equal((await search({ query: 'absent' })).stopped, 'complete');
    const running = bench.ask('file.search', { query: 'absent' }, { call: 'stop me' });
    setTimeout(() => void bench.handlers['workspace.cancel']({ call: 'stop me' }), 50);
    const stopped = await running;
    assert.equal(stopped.success ? '' : stopped.code, 'CANCELLED');
    const short = await bench.done('file.search', { query: 'absent' }, { withinMs: 1_050 });
    assert.equal(short.stopped, 'time');
  });
});
