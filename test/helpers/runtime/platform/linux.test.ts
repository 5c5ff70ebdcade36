import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import { constants } from 'node:os';
import path from 'node:path';

import { LANDLOCK_FLOOR, render, type Circumstances } from '../../../../helpers/runtime/platform/linux.ts';
import { seccompRules } from '../../../../helpers/runtime/platform/linux-calls.ts';
import { assemble, type Rule, type Verdict } from '../../../../helpers/runtime/platform/seccomp.ts';
import type { Confined } from '../../../../helpers/runtime/privileges.ts';
import { syscallNumber, type Architecture } from '../../../../helpers/runtime/syscall-numbers.ts';
import { TABLE } from '../../../../helpers/table.ts';
import { evaluate } from './evaluate.ts';

const rows = Object.values(TABLE).filter((row): row is Confined => row.confined);
const ARCHITECTURES = { x64: 0xc000003e, arm64: 0xc00000b7 } as const;
const PID = 4_194_303;
const KILL = 0x80000000;
const ALLOW = 0x7fff0000;

const circumstances = (landlockAbi: number, architecture: Architecture = 'x64'): Circumstances => ({
  architecture,
  landlockAbi,
  pid: PID,
  places: {
    node: '/usr/bin/node',
    loader: '/lib64/ld-linux.so',
    libraries: ['/lib'],
    ownBundle: '/opt/own.mjs',
    koffi: '/opt/koffi.node',
    worker: '/opt/workspace-worker.mjs',
  },
  values: { origin: 'https://control.example', loopback: false, slot: 7, forbiddenFolders: '1:2' },
});

function valueOf(verdict: Verdict): number {
  if (verdict === 'allow') return ALLOW;
  return verdict === 'kill' ? KILL : 0x50000 | constants.errno[verdict];
}

/** Arguments that meet every condition of a rule, and, where it has one, arguments that miss the first. */
function argumentsFor(rule: Rule): { readonly meeting: bigint[]; readonly missing: bigint[] | undefined } {
  // a value that no condition names
  const other = 1n << 40n;
  const meeting = [other, other, other, other, other, other];
  // of an argument within a mask the kernel itself sees the lower half alone, so a set bit above changes nothing
  for (const { argument, is, value } of rule.when ?? [])
    meeting[argument] = is === 'equal within' ? value | other : value;
  const first = rule.when?.[0];
  if (first === undefined) return { meeting, missing: undefined };
  const missing = [...meeting];
  missing[first.argument] = {
    equal: first.value + (1n << 32n),
    'equal within': first.value + 0x100n,
    'with bits': other,
  }[first.is];
  return { meeting, missing };
}

const handled = (abi: number): bigint[] => {
  const { handledFiles, handledNetwork, scoped } = render(TABLE.daemon as Confined, circumstances(abi));
  return [handledFiles, handledNetwork, scoped];
};

describe('the rendering for Linux', () => {
  for (const row of rows) {
    for (const [name, architecture] of Object.entries(ARCHITECTURES)) {
      it(`S-022 each rule of ${row.row} on ${name} gives its verdict for its arguments, the next matching rule's outside them, and the same bytes again`, () => {
        const rules = seccompRules(row.systemCalls, 100, PID);
        // the keys of ARCHITECTURES are the architectures
        const program = assemble(name as Architecture, rules);
        for (const [index, rule] of rules.entries()) {
          const number = syscallNumber(name as Architecture, rule.call);
          if (number === undefined) continue;
          const { meeting, missing } = argumentsFor(rule);
          const earlier = rules.slice(0, index).some(({ call, when }) => call === rule.call && when === undefined);
          assert.equal(earlier, false, `${rule.call} is decided before`);
          assert.equal(evaluate(program, { architecture, number, args: meeting }), valueOf(rule.verdict), rule.call);
          if (missing === undefined) continue;
          const later = rules.slice(index + 1).find(({ call, when }) => call === rule.call && when === undefined);
          assert.equal(
            evaluate(program, { architecture, number, args: missing }),
            valueOf(later?.verdict ?? 'allow'),
            rule.call,
          );
        }
        assert.deepEqual(assemble(name as Architecture, rules), program);
      });
    }

    it(`${row.row}: another architecture and x32 numbers end the process, a call without rule is allowed`, () => {
      const program = assemble('x64', seccompRules(row.systemCalls, 100, PID));
      const args: bigint[] = [];
      assert.equal(evaluate(program, { architecture: ARCHITECTURES.arm64, number: 0, args }), KILL);
      assert.equal(evaluate(program, { architecture: 0x40000003, number: 0, args }), KILL);
      assert.equal(evaluate(program, { architecture: ARCHITECTURES.x64, number: 0x40000000, args }), KILL);
      assert.equal(evaluate(program, { architecture: ARCHITECTURES.x64, number: 0, args }), ALLOW);
    });
  }

  const socketCases = [
    ['TCP', 1n, 0n, true],
    ['TCP by name, not blocking, closed on exec', 1n | 0x80800n, 6n, true],
    ['UDP', 2n, 17n, true],
    ['UDP of the other family, closed on exec', 2n | 0x80000n, 0n, true],
    ['multipath TCP', 1n, 262n, false],
    ['SMC', 1n, 256n, false],
    ['SCTP by its default protocol', 5n, 0n, false],
    ['a raw socket', 3n, 6n, false],
    ['DCCP', 6n, 0n, false],
    ['ICMP', 2n, 1n, false],
  ] as const;
  for (const [title, type, protocol, isAllowed] of socketCases) {
    it(`link ${isAllowed ? 'may' : 'may not'} make a socket of ${title}`, () => {
      for (const [name, architecture] of Object.entries(ARCHITECTURES)) {
        // the keys of ARCHITECTURES are the architectures
        const program = assemble(name as Architecture, seccompRules((TABLE.link as Confined).systemCalls, 100, PID));
        const number = syscallNumber(name as Architecture, 'socket') ?? -1;
        for (const family of [2n, 10n]) {
          const verdict = evaluate(program, { architecture, number, args: [family, type, protocol] });
          assert.equal(verdict, isAllowed ? ALLOW : valueOf('EACCES'));
        }
        const unix = evaluate(program, { architecture, number, args: [1n, type, protocol] });
        assert.equal(unix, valueOf('EACCES'));
      }
    });
  }

  it('a refusal by an argument of 32 bits holds whatever stands in its upper half', () => {
    for (const row of rows) {
      for (const { call, when, verdict } of seccompRules(row.systemCalls, 100, PID)) {
        if (verdict !== 'allow') assert.ok(!when?.some(({ is }) => is === 'equal'), `${row.row} ${call}`);
      }
    }
  });

  it('a row may signal its own threads and no other process', () => {
    const architecture = ARCHITECTURES.x64;
    for (const row of rows) {
      const program = assemble('x64', seccompRules(row.systemCalls, 100, PID));
      const number = syscallNumber('x64', 'tgkill') ?? -1;
      assert.equal(evaluate(program, { architecture, number, args: [BigInt(PID), 1n, 6n] }), ALLOW);
      assert.equal(evaluate(program, { architecture, number, args: [BigInt(PID - 1), 1n, 6n] }), valueOf('EPERM'));
    }
  });

  it('every kernel at or above the floor has every right handled that its ABI knows, ports from 4 on and signals from 6 on', () => {
    assert.deepEqual(handled(LANDLOCK_FLOOR), [0x7fffn, 0n, 0n]);
    assert.deepEqual(handled(4), [0x7fffn, 3n, 0n]);
    assert.deepEqual(handled(5), [0xffffn, 3n, 0n]);
    assert.deepEqual(handled(7), [0xffffn, 3n, 3n]);
  });

  it('link alone may connect, to the port of its origin and to name servers', () => {
    for (const row of rows) {
      const { connectPorts } = render(row, circumstances(7));
      assert.deepEqual(connectPorts, row.row === 'link' ? [443, 53] : [], row.row);
    }
  });

  it('no rule but those for the program and its loader permits an exec, and no rule permits making a device or a socket', () => {
    for (const row of rows) {
      for (const { target, names } of render(row, circumstances(7)).rules) {
        const isProgram = 'path' in target && ['/usr/bin/node', '/lib64/ld-linux.so'].includes(target.path);
        assert.equal(names.includes('EXECUTE'), isProgram, row.row);
        for (const right of ['MAKE_CHAR', 'MAKE_BLOCK', 'MAKE_SOCK', 'MAKE_FIFO', 'IOCTL_DEV'] as const) {
          assert.equal(names.includes(right), false, row.row);
        }
      }
    }
  });

  it('the text and the program of each row are the recorded ones', () => {
    const file = path.join(import.meta.dirname, 'rendered.json');
    const rendered = Object.fromEntries(
      rows.flatMap((row) =>
        (['x64', 'arm64'] as const).map((architecture) => {
          const { digest, seccomp, lines } = render(row, circumstances(7, architecture));
          const program = createHash('sha256').update(seccomp).digest('hex');
          return [`${row.row} ${architecture}`, { lines: lines.length, digest, program }];
        }),
      ),
    );
    if (process.env['RECORD'] === '1') fs.writeFileSync(file, `${JSON.stringify(rendered, null, 2)}\n`);
    assert.deepEqual(rendered, JSON.parse(fs.readFileSync(file, 'utf8')));
  });
});
