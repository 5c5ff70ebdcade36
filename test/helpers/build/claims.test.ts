import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { checkClaims, parseClaims } from '../../../helpers/build/claims.ts';

type Outcome = 'passed' | 'failed' | 'skipped';

async function problems(
  claims: string,
  ran: Readonly<Record<string, Outcome>> | undefined,
  strict = false,
): Promise<string[]> {
  const folder = await mkdtemp(join(tmpdir(), 'nessie-claims-'));
  try {
    await mkdir(join(folder, 'test'));
    await mkdir(join(folder, 'node_modules/.cache/nessie'), { recursive: true });
    await writeFile(join(folder, 'SECURITY.md'), claims);
    await writeFile(
      join(folder, 'test/a.test.ts'),
      "describe('walk', () => { it('a link is refused', () => {}); });\n",
    );
    const tests = Object.entries(ran ?? {}).map(([title, outcome]) => ({ title, fullTitle: `walk ${title}`, outcome }));
    if (ran)
      await writeFile(
        join(folder, 'node_modules/.cache/nessie/test-report.json'),
        JSON.stringify({ node: 'v20.0.0', uid: 0, tests }),
      );
    return await checkClaims(folder, { ran: strict });
  } finally {
    await rm(folder, { recursive: true });
  }
}

const claim = '- C-01 No path leaves the root - a link is refused\n';

describe('security claims', () => {
  it('a claim whose test exists and passed stands', async () => {
    assert.deepEqual(await problems(claim, { 'a link is refused': 'passed' }, true), []);
  });

  it('a claim fails whose test does not exist, failed, was skipped, or did not run', async () => {
    assert.match(
      (await problems(claim.replace('link', 'mount'), undefined))[0] ?? '',
      /C-01: no test is called "a mount is refused"/,
    );
    assert.match((await problems(claim, { 'a link is refused': 'failed' }))[0] ?? '', /did not pass in the last run/);
    assert.match((await problems(claim, { 'a link is refused': 'skipped' }))[0] ?? '', /did not pass in the last run/);
    assert.match((await problems(claim, {}, true))[0] ?? '', /was not in the last run/);
  });

  it('a suite’s title shows no claim', async () => {
    assert.match((await problems('- C-01 All is well - walk\n', undefined))[0] ?? '', /no test is called "walk"/);
  });

  it('a malformed line, a number that stands twice, and a page without claims are refused', async () => {
    assert.match(
      (await problems(`${claim}- C-2 short\n`, undefined))[0] ?? '',
      /expected "- C-nn sentence - test title", found "- C-2 short"/,
    );
    assert.match((await problems(claim + claim, undefined))[0] ?? '', /C-01 stands twice/);
    assert.match((await problems('# Security\n', undefined))[0] ?? '', /holds no claim/);
  });

  it('a sentence may hold a dash of its own, and a claim may say that nothing tests it yet', () => {
    const { claims } = parseClaims(
      '- C-03 Read - and write - stay apart - both are tried\n- C-04 No escape - not yet tested\n',
    );
    assert.deepEqual(claims, [
      { id: 'C-03', sentence: 'Read - and write - stay apart', test: 'both are tried' },
      { id: 'C-04', sentence: 'No escape' },
    ]);
  });
});
