/*
 * `npm run requirements [-- --json | --write]`: joins test/requirements.json with the titles of tests that passed in the last
 * run. A state is `shown` (a passing test carries the id), `partly: what is and what is not`, or `not yet: later work; reason`.
 * A title carries an id only where its test shows the whole statement.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

import { checkClaims } from './claims.ts';
import { readReport, reportFile, type TestReport } from './report.ts';
import { testTitles } from './titles.ts';

/** One line of test/requirements.json: our wording of the requirement and how far it is shown. */
export interface Requirement {
  readonly line: string;
  readonly state: string;
}

/** All of them by id, in the order of the file. */
export type Requirements = Readonly<Record<string, Requirement>>;

const requirementsFile = 'test/requirements.json';
const idPattern = /\b(?:N-\d{3}|S-\d{3}|F-\d{2}|R\d{1,2})\b/g;
const statePattern = /^(shown|partly: .+|not yet: .+)$/;

/** The requirement ids in a title, in order. */
export function idsIn(title: string): string[] {
  return title.match(idPattern) ?? [];
}

/** The requirements of the tree at `root`. Throws SyntaxError for a file that is no JSON. */
export async function readRequirements(root: string): Promise<Requirements> {
  // The check below refuses entries of another shape; nothing else believes this type.
  return JSON.parse(await readFile(join(root, requirementsFile), 'utf8')) as Requirements;
}

/** Ids that tests carry, each with the titles of the tests. */
function carried(titles: readonly string[]): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const title of titles) for (const id of idsIn(title)) found.set(id, [...(found.get(id) ?? []), title]);
  return found;
}

/** What is wrong between the list and the sources' titles, one line each; nothing is run for it. */
export function compare(requirements: Requirements, titles: readonly string[]): string[] {
  const inTitles = carried(titles);
  const problems = [...inTitles].flatMap(([id, [title]]) =>
    requirements[id] ? [] : [`${id} in the title "${title ?? ''}" is no requirement of ${requirementsFile}`],
  );
  for (const [id, { line, state }] of Object.entries(requirements)) {
    if (!statePattern.test(state) || line.trim() === '')
      problems.push(`${id}: expected a line and a state, found "${state}"`);
    else if (state === 'shown' && !inTitles.has(id)) problems.push(`${id} is "shown", but no test title carries it`);
    else if (state !== 'shown' && inTitles.has(id))
      problems.push(`${id} has a test and its state is "${state}": npm run requirements -- --write`);
  }
  return problems;
}

/** Every problem of the tree at `root` that can be seen without running a test. */
export async function checkRequirements(root: string): Promise<string[]> {
  return compare(
    await readRequirements(root),
    (await testTitles(root)).map(({ title }) => title),
  );
}

function notPassed(requirements: Requirements, report: TestReport): string[] {
  const failed = carried(report.tests.filter(({ outcome }) => outcome !== 'passed').map(({ fullTitle }) => fullTitle));
  const passed = carried(report.tests.filter(({ outcome }) => outcome === 'passed').map(({ fullTitle }) => fullTitle));
  return Object.entries(requirements).flatMap(([id, { state }]) => {
    if (state !== 'shown') return [];
    if (failed.has(id)) return [`${id} is "shown", but "${failed.get(id)?.[0] ?? ''}" did not pass`];
    return passed.has(id) ? [] : [`${id} is "shown", but no test of the last run carries it`];
  });
}

const kindOf = (state: string): string => /^(shown|partly|not yet)/.exec(state)?.[0] ?? 'unknown';

function countsOf(requirements: Requirements): Record<string, Record<string, number>> {
  const counts: Record<string, Record<string, number>> = {};
  for (const [id, { state }] of Object.entries(requirements)) {
    const family = id.slice(0, 1);
    const row = (counts[family] ??= { shown: 0, partly: 0, 'not yet': 0 });
    row[kindOf(state)] = (row[kindOf(state)] ?? 0) + 1;
  }
  return counts;
}

function laterWork(requirements: Requirements): Record<string, string[]> {
  const work: Record<string, string[]> = {};
  for (const [id, { state }] of Object.entries(requirements)) {
    const reason = /^not yet: ([^;]+)/.exec(state)?.[1];
    if (reason !== undefined) (work[reason] ??= []).push(id);
  }
  return work;
}

const print = (line: string): boolean => process.stdout.write(`${line}\n`);

function printTable(requirements: Requirements, shownBy: ReadonlyMap<string, readonly string[]>): void {
  print('     shown  partly  not yet');
  for (const [family, row] of Object.entries(countsOf(requirements))) {
    print(
      `${family}  ${String(row['shown']).padStart(8)}${String(row['partly']).padStart(8)}${String(row['not yet']).padStart(9)}`,
    );
  }
  for (const [id, { line, state }] of Object.entries(requirements)) {
    if (state === 'shown') print(`\n${id} ${line}\n  shown by: ${(shownBy.get(id) ?? []).join('\n            ')}`);
    if (state.startsWith('partly')) print(`\n${id} ${line}\n  ${state}`);
  }
  for (const [work, ids] of Object.entries(laterWork(requirements)))
    print(`\nnot yet: ${work} (${ids.length})\n  ${ids.join(' ')}`);
}

/** Sets the state of every id that a test title carries to `shown`; nothing else is touched. */
async function write(root: string): Promise<void> {
  const requirements = await readRequirements(root);
  const inTitles = carried((await testTitles(root)).map(({ title }) => title));
  const lines = Object.entries(requirements).map(([id, { line, state }]) => {
    const next = inTitles.has(id) ? 'shown' : state;
    return `  ${JSON.stringify(id)}: { "line": ${JSON.stringify(line)}, "state": ${JSON.stringify(next)} }`;
  });
  await writeFile(join(root, requirementsFile), `{\n${lines.join(',\n')}\n}\n`);
}

async function main(root: string, options: readonly string[]): Promise<void> {
  if (options.includes('--write')) await write(root);
  const requirements = await readRequirements(root);
  const report = readReport(join(root, reportFile));
  const problems = await checkRequirements(root);
  if (report) problems.push(...notPassed(requirements, report), ...(await checkClaims(root, { ran: true })));
  else problems.push(`no test has run yet: npm test writes ${reportFile}`);
  const shownBy = carried(
    (report?.tests ?? []).filter(({ outcome }) => outcome === 'passed').map(({ fullTitle }) => fullTitle),
  );
  if (options.includes('--json')) {
    const summary = {
      counts: countsOf(requirements),
      notYet: laterWork(requirements),
      shownBy: Object.fromEntries(shownBy),
      problems,
    };
    process.stdout.write(`${JSON.stringify(summary)}\n`);
  } else printTable(requirements, shownBy);
  for (const problem of problems) process.stderr.write(`${problem}\n`);
  process.exitCode = problems.length > 0 ? 1 : 0;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) await main(process.cwd(), process.argv.slice(2));
