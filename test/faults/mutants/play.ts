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

/** What became of a mutant, `passed` once its quick tests did. A run that ends without a word of mocha, or not at all, is not green either. */
export type Verdict =
  | { readonly outcome: 'killed'; readonly by: string; readonly seconds: number }
  | { readonly outcome: 'passed' | 'survived'; readonly seconds: number };

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

/** Tests that look at a file of the protocol, the likeliest killers first; seconds count as much as likelihood. */
const PREFERRED: Readonly<Record<string, string>> = {
  apply: 'bulk meanwhile capabilities',
  approval: 'approval refusals confirmation',
  approve: 'refusals confirmation',
  capabilities: 'capabilities',
  dispose: 'meanwhile opened journal',
  'folder-times': 'meanwhile cut',
  'go-back': 'meanwhile cut',
  'go-forward': 'bulk cut history meanwhile journal',
  handlers: 'refusals',
  history: 'history resting-place',
  journal: 'cut history journal journal-fuzz',
  'journal-records': 'journal-fuzz',
  lease: 'meanwhile opened journal',
  mark: 'own-folder',
  'own-folder': 'own-folder unfinished journal',
  place: 'meanwhile opened kinds',
  preflight: 'preflight belongings',
  recover: 'origin cut unfinished',
  repair: 'cut journal',
  'resting-place': 'resting-place unfinished cut journal',
  'root-check': 'own-folder refusals',
  stage: 'stage belongings',
  'stage-end': 'own-folder cut meanwhile',
  'stage-plan': 'stage',
  strays: 'meanwhile',
  'take-all-back': 'meanwhile',
  'take-back': 'meanwhile opened cut',
  tree: 'tree meanwhile',
  undo: 'origin undo-confirmation undo',
  'undo-plan': 'origin undo',
};
/** What every mutant of a kind must pass beside those. */
const BESIDE: Readonly<Record<Mutant['kind'], string>> = {
  sync: 'disk errors',
  order: 'disk errors apply',
  check: 'others undo errors every-call races apply',
  flag: 'errors every-call races others',
};

/** Test files for a mutant: quick ones that look at its file, and slow ones that are run where none of those fails. */
export function testsFor({ kind, file }: Mutant): {
  readonly quick: readonly string[];
  readonly slow: readonly string[];
} {
  const sequence = kind === 'sync' || kind === 'order' ? 'sequence ' : '';
  const quick = new Set(`${sequence}${PREFERRED[path.basename(file, '.ts')] ?? 'apply'}`.split(' '));
  const slow = BESIDE[kind].split(' ').filter((name) => !quick.has(name));
  const fileOf = (name: string): string => `test/helpers/promote/${name}.test.ts`;
  return { quick: Array.from(quick, fileOf), slow: slow.map(fileOf) };
}
