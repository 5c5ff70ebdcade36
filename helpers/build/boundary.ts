/*
 * `npm run test:boundary [-- MOCHA OPTIONS]`: the tests of confined processes, run as an ordinary user. Started as root it
 * copies what they need to a folder that every user can reach, since a clone may lie where only root can, and runs them
 * there by setpriv under an uid that owns nothing else.
 */
import { spawnSync } from 'node:child_process';
import {
  accessSync,
  chmodSync,
  chownSync,
  constants,
  copyFileSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  statSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

import { trackedFiles } from './tree.ts';

/** Who runs them when root asks: nobody on every distribution that CI uses. */
const ordinaryUser = 65_534;
const reportFile = 'dist/test-report-ordinary-user.json';
/** What the kernel and the rights of a user decide; the rest does not depend on who runs it. */
const suites = [
  'test/helpers/{runtime,supervisor,link}/**/*.test.ts',
  'test/helpers/key-store/process.test.ts',
  'test/helpers/workspace/{boundaries,process}.test.ts',
  'test/helpers/promote/{confirmation,refusals}.test.ts',
  'test/daemon/{executor,pairing}.test.ts',
];

function run(command: string, options: readonly string[], cwd: string, env: NodeJS.ProcessEnv): number {
  const { status, signal, error } = spawnSync(command, options, { cwd, env, stdio: ['ignore', 'inherit', 'inherit'] });
  if (error) throw error;
  if (signal !== null) process.stderr.write(`the boundary tests ended by ${signal}\n`);
  return status ?? 1;
}

function mocha(): string[] {
  const reporter = ['--reporter', './helpers/build/report.ts', '--reporter-option', `output=${reportFile}`];
  return ['node_modules/mocha/bin/mocha.js', ...reporter, ...process.argv.slice(2), ...suites];
}

/** The same Node where others may execute it, or a copy in `folder` where only root can. */
function reachableNode(folder: string): string {
  for (let path = process.execPath; path !== '/'; path = dirname(path)) {
    // The last three bits are the rights of everybody else; executing a folder is walking through it.
    if ((statSync(path).mode & 0o001) === 0) {
      const copy = join(folder, 'node');
      copyFileSync(process.execPath, copy);
      chmodSync(copy, 0o755);
      return copy;
    }
  }
  return process.execPath;
}

async function copyTree(root: string, folder: string): Promise<string> {
  const tree = join(folder, 'tree');
  for (const file of await trackedFiles(root)) {
    mkdirSync(dirname(join(tree, file)), { recursive: true });
    copyFileSync(join(root, file), join(tree, file));
  }
  cpSync(join(root, 'node_modules'), join(tree, 'node_modules'), { recursive: true, verbatimSymlinks: true });
  run('chmod', ['-R', 'a+rX', folder], folder, process.env);
  for (const place of [join(tree, 'dist'), join(folder, 'home'), join(folder, 'tmp')]) {
    mkdirSync(place, { recursive: true, mode: 0o700 });
    chownSync(place, ordinaryUser, ordinaryUser);
  }
  return tree;
}

async function asOrdinaryUser(root: string): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'nessie-boundary-'));
  chmodSync(folder, 0o755);
  try {
    const node = reachableNode(folder);
    const tree = await copyTree(root, folder);
    const identity = [
      '--reuid',
      String(ordinaryUser),
      '--regid',
      String(ordinaryUser),
      '--clear-groups',
      '--no-new-privs',
    ];
    const env = {
      PATH: `${dirname(node)}:/usr/local/bin:/usr/bin:/bin`,
      HOME: join(folder, 'home'),
      TMPDIR: join(folder, 'tmp'),
      LANG: 'C.UTF-8',
    };
    const status = run('setpriv', [...identity, node, ...mocha()], tree, {
      ...env,
      ...(process.env['CI'] ? { CI: process.env['CI'] } : {}),
    });
    mkdirSync(join(root, 'dist'), { recursive: true });
    accessSync(join(tree, reportFile), constants.R_OK);
    copyFileSync(join(tree, reportFile), join(root, reportFile));
    return status;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const root = process.cwd();
process.exitCode =
  process.getuid?.() === 0 ? await asOrdinaryUser(root) : run(process.execPath, mocha(), root, process.env);
