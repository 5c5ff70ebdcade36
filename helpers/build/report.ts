/*
 * The mocha reporter of `npm test`: prints as `spec` does, says why a test was skipped, ends with
 * `N passed, N failed, N skipped`, and writes what ran to the file named by the option `output`.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

import Mocha from 'mocha';

/** One test of the last run. */
export interface TestRecord {
  /** The test's own title, as written in `it(...)`. */
  readonly title: string;
  /** The titles of its suites and its own, joined by a space. */
  readonly fullTitle: string;
  readonly outcome: 'passed' | 'failed' | 'skipped';
  /** What was missing, for a skipped test. */
  readonly missing?: string;
}

/** What the last run wrote. */
export interface TestReport {
  readonly node: string;
  readonly uid: number;
  readonly tests: readonly TestRecord[];
}

/** Where `npm test` leaves its report, relative to the root. */
export const reportFile = 'node_modules/.cache/nessie/test-report.json';

/** The report at `path`, or undefined where no run has written one. Throws SyntaxError for a damaged one. */
export function readReport(path: string): TestReport | undefined {
  try {
    // TRUST: written by the reporter below on this machine; a damaged file fails in the parser.
    return JSON.parse(readFileSync(path, 'utf8')) as TestReport;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
}

function missingOf(test: Mocha.Test): string | undefined {
  if ('missing' in test) return String(test.missing);
  for (let suite = test.parent; suite; suite = suite.parent) if ('missing' in suite) return String(suite.missing);
  return undefined;
}

/** Mocha's `spec` with the record and the closing line. */
export default class Report extends Mocha.reporters.Spec {
  readonly #tests: TestRecord[] = [];

  constructor(runner: Mocha.Runner, options: Mocha.MochaOptions) {
    super(runner, options);
    const { EVENT_TEST_PASS, EVENT_TEST_FAIL, EVENT_TEST_PENDING, EVENT_RUN_END } = Mocha.Runner.constants;
    const tests = this.#tests;
    const record = (test: Mocha.Test, outcome: TestRecord['outcome'], missing?: string): void => {
      tests.push({
        title: test.title,
        fullTitle: test.fullTitle(),
        outcome,
        ...(missing === undefined ? {} : { missing }),
      });
    };
    runner.on(EVENT_TEST_PASS, (test) => record(test, 'passed'));
    runner.on(EVENT_TEST_FAIL, (test) => record(test, 'failed'));
    runner.on(EVENT_TEST_PENDING, (test) => record(test, 'skipped', missingOf(test) ?? 'no reason given'));
    runner.once(EVENT_RUN_END, () => {
      // mocha types reporter options as `any`; only this project's scripts set them.
      const { output } = (options.reporterOptions ?? {}) as { output?: string };
      if (output !== undefined) {
        mkdirSync(dirname(output), { recursive: true });
        const report: TestReport = { node: process.version, uid: process.getuid?.() ?? -1, tests };
        writeFileSync(output, `${JSON.stringify(report, undefined, 1)}\n`);
      }
    });
  }

  override epilogue(): void {
    super.epilogue();
    for (const { fullTitle, missing } of this.#tests) {
      if (missing !== undefined) process.stdout.write(`skipped: ${fullTitle}: ${missing}\n`);
    }
    const { passes, failures, pending } = this.stats;
    process.stdout.write(`${passes} passed, ${failures} failed, ${pending} skipped\n`);
  }
}
