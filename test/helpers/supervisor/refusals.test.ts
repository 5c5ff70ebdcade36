import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';

import type { Configuration } from '../../../helpers/runtime/configuration.ts';
import type { Installation } from '../../../helpers/runtime/installation.ts';
import { FIXTURE_ROWS, makeExecutor, Tree } from '../../fixtures/run-tree.ts';
import { installForTest } from '../../fixtures/start-role.ts';
import { until } from '../../fixtures/until.ts';

describe('a supervisor that must not start', () => {
  let built: Installation;
  let remove: () => void;
  let base: string;
  let state: string;

  before(async () => {
    ({ installation: built, remove } = await installForTest(FIXTURE_ROWS));
  });
  after(() => remove());
  beforeEach(() => {
    const made = makeExecutor();
    ({ base } = made);
    state = made.configuration.stateDir;
  });
  afterEach(() => fs.rmSync(base, { recursive: true }));

  /** Only root can make what belongs to another user. */
  const foreign: readonly (readonly [string, string, () => void])[] =
    process.getuid?.() === 0
      ? [
          [
            'as root with a configuration folder of another user',
            'CONFIGURATION_UNSAFE',
            () => fs.chownSync(path.join(base, 'config'), 65534, 65534),
          ],
          [
            'as root with a configuration of another user',
            'CONFIGURATION_INVALID',
            () => fs.chownSync(path.join(state, 'supervisor.json'), 65534, 65534),
          ],
        ]
      : [];

  const cases: readonly (readonly [string, string, () => void])[] = [
    ['without configuration', 'NOT_PAIRED', () => fs.rmSync(path.join(state, 'supervisor.json'))],
    [
      'with a configuration that is no JSON',
      'CONFIGURATION_INVALID',
      () => fs.writeFileSync(path.join(state, 'supervisor.json'), '{'),
    ],
    ['with a configuration of another state folder', 'CONFIGURATION_INVALID', () => moveState()],
    ['with a state folder that others may read', 'STATE_FOLDER_MODE', () => fs.chmodSync(state, 0o755)],
    [
      'with a folder of a row that others may read',
      'STATE_FOLDER_MODE',
      () => fs.mkdirSync(path.join(state, 'audit'), { mode: 0o755 }),
    ],
    [
      'with a lock that is a link',
      'STATE_FOLDER_UNREADABLE',
      () => fs.symlinkSync('/dev/null', path.join(state, 'lock')),
    ],
    [
      'with a folder of a row that is a link',
      'STATE_FOLDER_UNREADABLE',
      () => fs.symlinkSync(base, path.join(state, 'run')),
    ],
    ['without the root folder', 'ROOT_UNREADABLE', () => fs.rmSync(path.join(base, 'root'), { recursive: true })],
    ['with a root folder that is a link', 'ROOT_UNREADABLE', () => linkInstead('root')],
    [
      "without the owner's folder",
      'OWNER_FOLDER_UNREADABLE',
      () => fs.rmSync(path.join(base, 'config/owner'), { recursive: true }),
    ],
    [
      'with a configuration that others may write',
      'CONFIGURATION_INVALID',
      () => fs.chmodSync(path.join(state, 'supervisor.json'), 0o666),
    ],
    ['with a configuration that is a link', 'NOT_PAIRED', () => linkInstead('state/supervisor.json')],
    [
      'with a configuration folder that others may write',
      'CONFIGURATION_UNSAFE',
      () => fs.chmodSync(path.join(base, 'config'), 0o777),
    ],
    [
      "with an owner's folder that others may write",
      'CONFIGURATION_UNSAFE',
      () => fs.chmodSync(path.join(base, 'config/owner'), 0o770),
    ],
    ...foreign,
  ];

  const overlaps: readonly (readonly [string, string, () => void])[] = [
    ['with a root folder that holds the state folder', 'ROOT_OVERLAPS', () => closeIn('state', (inner) => inner)],
    [
      'with a root folder below the state folder',
      'ROOT_OVERLAPS',
      () => closeIn('state', () => path.join(state, 'root')),
    ],
    ['with a root folder below the configuration', 'ROOT_OVERLAPS', () => closeIn('config', () => configured('root'))],
    ['with the whole machine as root folder', 'ROOT_OVERLAPS', () => configure({ root: '/' })],
    ['with the programs in the root folder', 'ROOT_OVERLAPS', () => configure({ root: path.dirname(built.folder) })],
  ];

  /** Changes what the owner chose, as a hand in the file would. */
  function configure(changes: Partial<Configuration>): void {
    const file = path.join(state, 'supervisor.json');
    const configuration = JSON.parse(fs.readFileSync(file, 'utf8')) as Configuration;
    fs.writeFileSync(file, JSON.stringify({ ...configuration, ...changes }));
  }

  function configured(name: string): string {
    const { configDir } = JSON.parse(fs.readFileSync(path.join(state, 'supervisor.json'), 'utf8')) as Configuration;
    return path.join(configDir, name);
  }

  /** Moves a folder of the executor below one that the root's owner may not search, and puts the root where it is told. */
  function closeIn(name: 'state' | 'config', rootOf: (inner: string) => string): void {
    const closed = path.join(base, 'closed');
    const inner = path.join(closed, 'inner');
    fs.mkdirSync(inner, { recursive: true });
    fs.chmodSync(closed, 0o700);
    const moved = path.join(inner, name);
    fs.renameSync(path.join(base, name), moved);
    if (name === 'state') state = moved;
    configure(name === 'state' ? { stateDir: moved } : { configDir: moved });
    const root = rootOf(inner);
    fs.mkdirSync(root, { recursive: true });
    if (process.getuid?.() === 0) fs.chownSync(root, 65534, 65534);
    configure({ root });
  }

  function moveState(): void {
    fs.renameSync(state, `${state}-moved`);
    state = `${state}-moved`;
    fs.mkdirSync(path.join(base, 'state'));
  }

  function linkInstead(name: string): void {
    fs.renameSync(path.join(base, name), path.join(base, 'elsewhere'));
    fs.symlinkSync('elsewhere', path.join(base, name));
  }

  for (const [title, code, cause] of [...cases, ...overlaps]) {
    it(`${title} says ${code} with a remedy and no path, and starts nothing`, () => {
      cause();
      const { status, stderr } = spawnSync(process.execPath, [path.join(built.folder, 'supervisor.mjs'), state], {
        encoding: 'utf8',
        timeout: 10_000,
      });
      assert.equal(status, 78, stderr);
      assert.match(
        stderr,
        new RegExp(`^supervisor: ${code}: .*: run \`nessie-executor|^supervisor: ${code}: .*; run \`nessie-executor`),
      );
      assert.ok(!stderr.includes(base) && !stderr.includes(' at '));
    });
  }

  it('of several that start at once exactly one serves, and the others say so', async () => {
    const { configuration } = makeExecutor();
    const trees = [1, 2, 3, 4].map(() => new Tree(built, configuration));
    const ended = await until('three have ended', () => {
      const found = trees.filter(({ process: { exitCode } }) => exitCode !== null);
      return found.length === 3 ? found : undefined;
    });
    for (const {
      process: { exitCode },
      log,
    } of ended) {
      assert.equal(exitCode, 75);
      assert.match(log, /DAEMON_ALREADY_RUNNING/);
    }
    const winner = trees.find((tree) => !ended.includes(tree));
    await winner?.ready();
    assert.equal(await winner?.stop(), 0);
    fs.rmSync(path.dirname(configuration.stateDir), { recursive: true });
  });
});
