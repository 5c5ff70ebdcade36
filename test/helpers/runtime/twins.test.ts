import assert from 'node:assert/strict';
import fs from 'node:fs';

import type { Configuration } from '../../../helpers/runtime/configuration.ts';
import type { Installation } from '../../../helpers/runtime/installation.ts';
import { expectedUnder } from '../../../helpers/runtime/reach-list.ts';
import { differs, runTwins, type TwinFinding } from '../../../helpers/runtime/twins.ts';
import { TABLE } from '../../../helpers/table.ts';
import { FIXTURE_ROWS, makeExecutor, runningInstallation, Tree } from '../../fixtures/run-tree.ts';
import { installForTest } from '../../fixtures/start-role.ts';
import { skipBecause } from '../../skip.ts';

/** Where the kernel lacks it or has it switched off nobody can, so it is not tried. */
const OPTIONAL: Readonly<Record<string, string>> = {
  'connect by multipath TCP to another port': '/proc/sys/net/mptcp/enabled',
  'connect by a first send to another port': '/proc/sys/net/ipv4/tcp_fastopen',
  'look at shared memory': '/proc/sys/kernel/shmmni',
};

function isLacking(title: string): boolean {
  const at = OPTIONAL[title];
  return at !== undefined && (!fs.existsSync(at) || ['0', '2'].includes(fs.readFileSync(at, 'utf8').trim()));
}

describe('twins', () => {
  let built: Installation;
  let installation: Installation;
  let removeInstallation: () => void;
  let base: string;
  let configuration: Configuration;
  let findings: readonly TwinFinding[];

  before(async () => {
    ({ installation: built, remove: removeInstallation } = await installForTest(FIXTURE_ROWS));
    installation = runningInstallation(built);
    ({ base, configuration } = makeExecutor());
    const tree = new Tree(built, configuration);
    await tree.ready();
    findings = await runTwins(installation, configuration);
    await tree.stop();
  });
  after(() => {
    removeInstallation();
    fs.rmSync(base, { recursive: true });
  });

  it('every row is tried, every try does what the table says, and every one succeeds without confinement', () => {
    const rows = new Set(findings.map(({ row }) => row));
    for (const { row, confined } of Object.values(TABLE)) assert.equal(rows.has(row), confined, row);
    assert.deepEqual(
      findings.filter(({ isDifference }) => isDifference),
      [],
    );
    assert.deepEqual(
      findings.filter(({ control }) => !control.reached),
      [],
    );
  });

  const refusedEverywhere = [
    'connect over TCP to another port',
    'connect by multipath TCP to another port',
    'connect by a first send to another port',
    'listen on a network',
    'bind a UDP port',
    'connect to a Unix socket',
    'make a socket pair',
    'signal another process',
    "signal another process's thread",
    'queue a signal to another process',
    'look at shared memory',
    "read another process's environment",
    'read /etc/passwd',
    'watch the root folder',
    "list another process's descriptors",
    'start a child',
    'execve a program',
    'execveat an absolute path',
    'execveat a memory file',
    'change a mode in the root folder by path',
    'change times in the root folder by path',
  ];
  for (const title of refusedEverywhere) {
    it(`no row can ${title}`, function () {
      const tried = findings.filter((finding) => finding.title === title);
      if (tried.length === 0 && isLacking(title)) skipBecause(this, `a kernel on which one can ${title}`);
      assert.equal(tried.length, Object.values(TABLE).filter(({ confined }) => confined).length);
      for (const { row, twin } of tried) assert.equal(twin.reached, false, row);
    });
  }

  it('datagrams are not limited by the kernel: link can send one to any port, and no other row can send any', () => {
    const tried = findings.filter(({ title }) => title === 'send a datagram to another port');
    assert.equal(tried.length, Object.values(TABLE).filter(({ confined }) => confined).length);
    for (const { row, expected, twin } of tried) {
      assert.equal(twin.reached, row === 'link', row);
      assert.equal(expected, row === 'link' ? 'reached' : 'refused', row);
    }
  });

  it('no row can run a file that it wrote into its own folder', () => {
    const tried = findings.filter(({ title }) => title === 'execveat an own file');
    assert.deepEqual(
      tried.map(({ row, twin }) => [row, twin]),
      [
        ['daemon', { reached: false, code: 'EACCES' }],
        ['key-store', { reached: false, code: 'EACCES' }],
        ['workspace', { reached: false, code: 'EACCES' }],
        ['promote', { reached: false, code: 'EACCES' }],
      ],
    );
  });

  it('workspace cannot change anything in the root, not even by a descriptor that it may read', () => {
    const tried = findings.filter(
      ({ row, title }) => row === 'workspace' && /(change|make|write).*root folder/.test(title),
    );
    assert.equal(tried.length, 5);
    for (const { title, twin } of tried) assert.equal(twin.reached, false, title);
  });

  const reached = { reached: true } as const;
  const refused = { reached: false, code: 'EACCES' } as const;
  const cases = [
    ['refused as it must be, and let without confinement', 'refused', refused, reached, false],
    ['let where it must be refused', 'refused', reached, reached, true],
    ['refused where it must be let', 'reached', refused, reached, true],
    ['refused without confinement too, so that nothing is shown', 'refused', refused, refused, true],
    ['never tried', 'refused', { reached: false, code: 'NEVER_TRIED' }, reached, true],
  ] as const;
  for (const [title, expected, twin, control, isDifference] of cases) {
    it(`a try that is ${title} is ${isDifference ? 'a' : 'no'} difference`, () => {
      assert.equal(differs(expected, twin, control), isDifference);
    });
  }

  it('without port rules in the kernel link alone is expected to reach another port', () => {
    const made = { title: 'connect', attempt: { what: 'connect over TCP', port: 1 }, expected: 'refused' } as const;
    for (const row of Object.values(TABLE)) {
      if (!row.confined) continue;
      assert.equal(expectedUnder(made, row, 3), row.row === 'link' ? 'reached' : 'refused');
      assert.equal(expectedUnder(made, row, 4), 'refused');
    }
  });
});
