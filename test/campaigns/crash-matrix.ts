/*
 * npm run crash-matrix [-- --only 57:after] [--jobs N]
 *
 * The first level of the crash matrix, whole: an apply of twelve entries of every kind is killed before and after each of its
 * numbered calls, the entries at the top of the root and then below a folder. `--only` plays one case: `57:after`,
 * `below:57:after`, and with a second kill, that of the recovery, `57:after,3:before`. Ends with 1 when a case failed.
 */
import { parseArgs } from 'node:util';

import { Bench } from '../faults/crash/bench.ts';
import { caseFrom, nameOfCase } from '../faults/crash/case.ts';
import type { Case } from '../faults/crash/case.ts';
import { countsOf, Matrix } from '../faults/crash/matrix.ts';
import type { Failure, Running } from '../faults/crash/matrix.ts';
import { nameOf } from '../faults/crash/order.ts';
import { ProgressLine } from './progress.ts';

function usage(why: string): never {
  console.error(
    `${why}\nnpm run crash-matrix [-- --only [below:]NUMBER:before|after[,NUMBER:before|after]] [--jobs N]`,
  );
  process.exit(64);
}

function wishes(): { readonly only: Case | undefined; readonly jobs: number } {
  try {
    const { values } = parseArgs({ options: { only: { type: 'string' }, jobs: { type: 'string', default: '2' } } });
    const jobs = Number(values.jobs);
    if (!Number.isInteger(jobs) || jobs < 1)
      return usage(`--jobs: expected a whole number above 0, got ${values.jobs}`);
    const only = values.only === undefined ? undefined : caseFrom(values.only);
    if (values.only !== undefined && only === undefined) return usage(`--only: ${values.only} is no case`);
    return { only, jobs };
  } catch (error) {
    return usage(error instanceof Error ? error.message : 'unknown arguments');
  }
}

/** What failed, and how to play it alone. */
function sentenceOf({ name, call, message }: Failure): string {
  return `FAILED ${name}, ${call}: ${message}\n  npm run crash-matrix -- --only ${name}`;
}

function unplayable(why: string): never {
  bench.end();
  return usage(why);
}

/** Plays one case; where the recovery is killed, the first kill alone and the numbers of that recovery come before it. */
async function playOnly(played: Case): Promise<void> {
  const known = matrix.cleans.get(played.depth)?.calls.length ?? 0;
  if (played.apply.number > known) return unplayable(`the apply has ${known} numbered calls`);
  await matrix.play([{ ...played, recovery: undefined }], running);
  if (played.recovery === undefined || matrix.progress.failures.length > 0) return;
  await matrix.number(running);
  const second = matrix.second().filter((one) => nameOfCase(one) === nameOfCase(played));
  if (second.length === 0) {
    return unplayable(`the recovery after ${nameOf(played.apply)} has no call ${played.recovery.number}`);
  }
  await matrix.play(second, running);
}

const { only, jobs } = wishes();
const began = performance.now();
const bench = await Bench.begin();
const matrix = await Matrix.begin(bench);
const line = new ProgressLine();
for (const [depth, { calls }] of matrix.cleans) console.log(`entries ${depth}: ${calls.length} numbered calls`);
const running: Running = {
  jobs,
  goesOn: () => true,
  heard(total) {
    const { played, failures } = matrix.progress;
    line.tell(`${Object.keys(played).length + failures.length} of ${total} cases, ${failures.length} failures`);
  },
};
if (only === undefined) await matrix.play(matrix.first(), running);
else await playOnly(only);
line.end();
bench.end();
const { played, states, failures } = matrix.progress;
for (const [what, count] of [...countsOf(matrix.progress)].toSorted(([one], [other]) => one.localeCompare(other))) {
  console.log(`${String(count).padStart(6)}  ${what}`);
}
for (const failure of failures) console.error(sentenceOf(failure));
const seconds = Math.round((performance.now() - began) / 1000);
console.log(`${Object.keys(states).length} distinct states`);
console.log(`${Object.keys(played).length} cases as promised, ${failures.length} failures, ${seconds} s`);
process.exit(failures.length > 0 ? 1 : 0);
