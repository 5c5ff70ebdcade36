/*
 * SECURITY.md claims only what a test shows: a line `- C-nn sentence - test title` names the title of an `it`, a line
 * `- C-nn sentence - not yet tested` says so. A title that no test has, or that did not pass in the last run, fails.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

import { readReport, reportFile, type TestReport } from './report.ts';
import { testTitles, type TestTitle } from './titles.ts';

/** One claim of SECURITY.md; `test` is absent where the line says "not yet tested". */
export interface Claim {
  readonly id: string;
  readonly sentence: string;
  readonly test?: string;
}

/** Reads the claims and the lines that look like one and are none. */
export function parseClaims(text: string): { claims: Claim[]; malformed: string[] } {
  const lines = text.split('\n').filter((line) => line.startsWith('- C-'));
  const claims: Claim[] = [];
  const malformed: string[] = [];
  for (const line of lines) {
    const match = /^- (C-\d\d) (.+) - (.+?)$/.exec(line);
    const [, id, sentence, test] = match ?? [];
    if (id === undefined || sentence === undefined || test === undefined) malformed.push(line);
    else claims.push({ id, sentence, ...(test === 'not yet tested' ? {} : { test }) });
  }
  return { claims, malformed };
}

function problemOf(claim: Claim, titles: readonly TestTitle[], report: TestReport | undefined): string | undefined {
  const { id, test } = claim;
  if (test === undefined) return undefined;
  const ran = report?.tests.filter(({ title }) => title === test) ?? [];
  const matches = (title: string): boolean => title.split('…').every((part) => test.includes(part)) && title !== '…';
  if (!titles.some(({ title, kind }) => kind === 'test' && matches(title))) return `${id}: no test is called "${test}"`;
  if (ran.some(({ outcome }) => outcome !== 'passed')) return `${id}: "${test}" did not pass in the last run`;
  return undefined;
}

/**
 * What is wrong with the claims of the tree at `root`, one line each. With `ran`, a claim whose test is absent from the last
 * report is wrong too; without it only a test that ran and did not pass is, since a report may be older than the sources.
 */
export async function checkClaims(root: string, { ran }: { ran: boolean }): Promise<string[]> {
  const { claims, malformed } = parseClaims(await readFile(join(root, 'SECURITY.md'), 'utf8'));
  const report = readReport(join(root, reportFile));
  const titles = await testTitles(root);
  const ids = claims.map(({ id }) => id);
  const notRun = claims.filter(({ test }) => test !== undefined && !report?.tests.some(({ title }) => title === test));
  return [
    ...malformed.map((line) => `expected "- C-nn sentence - test title", found "${line}"`),
    ...ids.filter((id, index) => ids.indexOf(id) !== index).map((id) => `${id} stands twice`),
    ...claims.map((claim) => problemOf(claim, titles, report)).filter((problem) => problem !== undefined),
    ...(ran ? notRun.map(({ id, test }) => `${id}: "${test}" was not in the last run of npm test`) : []),
    ...(claims.length === 0 ? ['SECURITY.md holds no claim'] : []),
  ];
}
