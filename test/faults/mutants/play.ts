/*
 * Plays mutants: the tree is copied once, one file of the copy is replaced, the tests of the promotion run there until one fails, and
 * the file is put back. The work tree is never touched.
 */
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

import { mutated } from './mutant.ts';
import type { Mutant } from './mutant.ts';
import { readSource, TOP } from './source.ts';

/** What became of a mutant. A run that ends without a word of mocha, or not at all, is not green either. */
export type Verdict =
  | { readonly outcome: 'killed'; readonly by: string; readonly seconds: number }
  | { readonly outcome: 'survived'; readonly seconds: number };

/** A test that failed, as mocha reports it. */
interface Failure {
  readonly fullTitle: string;
  readonly err: { readonly message?: string };
}

/** What bin/mocha.js would start as a process of its own, which would outlive a kill. */
const MOCHA = path.join(TOP, 'node_modules/mocha/lib/cli/cli.js');
/** A mutant that hangs is ended after this long. */
const LIMIT_MS = 400_000;
const COPIED = 'actors daemon docs guest helpers machines server test package.json tsconfig.json .mocharc.json'.split(
  ' ',
);

/** A copy of the tree. */
export class Copy {
  readonly #folder = fs.mkdtempSync(path.join(os.tmpdir(), 'mutants-'));

  constructor() {
    // Roles of the tests run as other users.
    fs.chmodSync(this.#folder, 0o755);
    for (const name of COPIED) {
      const from = path.join(TOP, name);
      if (fs.existsSync(from)) fs.cpSync(from, path.join(this.#folder, name), { recursive: true });
    }
    fs.symlinkSync(path.join(TOP, 'node_modules'), path.join(this.#folder, 'node_modules'));
  }

  remove(): void {
    fs.rmSync(this.#folder, { recursive: true });
  }

  /** Runs these test files in order against a mutant, until a test fails. */
  async play(mutant: Mutant, tests: readonly string[]): Promise<Verdict> {
    const file = path.join(this.#folder, mutant.file);
    fs.writeFileSync(file, mutated(mutant));
    const began = performance.now();
    try {
      const by = await this.#run(tests);
      const seconds = Math.round((performance.now() - began) / 100) / 10;
      return by === undefined ? { outcome: 'survived', seconds } : { outcome: 'killed', by, seconds };
    } finally {
      fs.writeFileSync(file, readSource(mutant.file));
    }
  }

  /** Title of the first test that failed, or what happened instead; undefined where all passed. */
  async #run(tests: readonly string[]): Promise<string | undefined> {
    const report = path.join(this.#folder, 'report.json');
    fs.rmSync(report, { force: true });
    const reporting = ['--bail', '--exit', '--reporter', 'json', '--reporter-option', `output=${report}`];
    const child = spawn(process.execPath, ['--import', 'tsx', MOCHA, ...reporting, ...tests], {
      cwd: this.#folder,
      stdio: 'ignore',
      env: { ...process.env, NESSIE_TEST_SEED: '1' },
    });
    const limit = setTimeout(() => child.kill('SIGKILL'), LIMIT_MS);
    const code = await new Promise<number | null>((resolve) => void child.once('exit', (ended) => resolve(ended)));
    clearTimeout(limit);
    if (!fs.existsSync(report)) return 'the program that runs the tests, which ended';
    // Written by mocha, with the titles of what failed.
    const { failures } = JSON.parse(fs.readFileSync(report, 'utf8')) as { failures: Failure[] };
    const [first] = failures;
    if (first === undefined) return code === 0 ? undefined : `a run that ended with ${code}`;
    return `${first.fullTitle}: ${first.err.message?.split('\n', 1).join('') ?? 'no message'}`;
  }
}

const PREFERRED: Readonly<Record<string, readonly string[]>> = {
  apply: ['meanwhile', 'bulk'],
  approval: ['refusals', 'confirmation'],
  approve: ['refusals', 'confirmation'],
  dispose: ['meanwhile', 'errors', 'others', 'journal'],
  handlers: ['errors', 'refusals'],
  lease: ['meanwhile', 'others', 'errors'],
  'go-back': ['meanwhile', 'errors', 'disk', 'others'],
  'go-forward': ['bulk', 'errors', 'disk', 'others'],
  journal: ['journal-fuzz', 'errors', 'disk'],
  'own-folder': ['journal-fuzz', 'journal', 'unfinished'],
  place: ['meanwhile', 'races', 'others', 'kinds', 'refusals', 'errors'],
  preflight: ['refusals', 'kinds'],
  recover: ['journal-fuzz', 'races'],
  history: ['resting-place'],
  'resting-place': ['resting-place', 'unfinished', 'journal-fuzz', 'journal'],
  stage: ['errors', 'apply', 'refusals'],
  'stage-end': ['errors', 'journal-fuzz'],
  strays: ['disk', 'errors'],
  'take-back': ['meanwhile', 'errors', 'others', 'races'],
  tree: ['meanwhile', 'errors', 'races', 'kinds'],
};
/** What every mutant of a kind must pass beside those. */
const BESIDE: Readonly<Record<Mutant['kind'], readonly string[]>> = {
  sync: ['meanwhile', 'disk', 'errors'],
  order: ['meanwhile', 'disk', 'errors', 'apply'],
  check: ['errors', 'apply'],
  flag: ['errors', 'others', 'races'],
};

/** Tests of a second or two, which come first wherever they are wanted. */
const FAST: readonly string[] = ['meanwhile', 'resting-place', 'bulk', 'unfinished', 'kinds'];

/** Test files for a mutant: those that look at its file and those for its kind, the likeliest killers first. */
export function testsFor({ kind, file }: Mutant): readonly string[] {
  const preferred = PREFERRED[path.basename(file, '.ts')] ?? [];
  const names = kind === 'check' || kind === 'flag' ? [...preferred, ...BESIDE[kind]] : [...BESIDE[kind], ...preferred];
  const inOrder = [...FAST.filter((test) => names.includes(test)), ...names];
  return [...new Set(inOrder)].map((test) => `test/helpers/promote/${test}.test.ts`);
}
