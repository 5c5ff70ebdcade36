import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, readFile, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';

import { packPackage, preparePackage } from '../../helpers/build/package.ts';

const execute = promisify(execFile);
const top = resolve(import.meta.dirname, '../..');
const modules = join(top, 'node_modules');

/** Runs a program in the outside project; answers its exit status and all it said. */
async function run(program: string, options: readonly string[], cwd: string): Promise<{ code: number; said: string }> {
  const env = { PATH: process.env['PATH'] ?? '', HOME: cwd };
  try {
    const { stdout, stderr } = await execute(program, options, { cwd, env, timeout: 60_000 });
    return { code: 0, said: stdout + stderr };
  } catch (error) {
    const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string };
    return { code, said: `${stdout}${stderr}` };
  }
}

const SPEC = `import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createActor } from 'xstate';
import { begin, executorMachine, executionMachine, step } from 'nessie-executor/machines';
import { expectTrace, replay, simulateWorld, tellStory, traceOf } from 'nessie-executor/testing';
import type { Scenario, Story } from 'nessie-executor/testing';

const text = readFileSync('trace.jsonl', 'utf8');

describe('a project outside', () => {
  it('replays a recorded trace', () => {
    expectTrace(text);
    const outcome = replay(text);
    assert.ok(outcome.ok && outcome.lines > 3);
  });

  it('steps a machine by its types', () => {
    const { stored } = begin(executorMachine, { executorId: 'exec-1' });
    const epoch: number = stored.context.epoch;
    const next = step(executorMachine, stored, { type: 'executor.delete' });
    assert.ok(next.ok && next.stored.context.epoch > epoch);
  });

  it('runs a machine on its own xstate', () => {
    const input = {
      commandId: 'cmd-1', runId: 'run-1', operation: 'file.read', envelopeDigest: 'e', epoch: 1, maximumRuntimeMs: 1,
      phase: 'received', ended: null, replaced: false, cancelled: false,
    } as const;
    const actor = createActor(executionMachine, { input });
    assert.equal(actor.getSnapshot().value, 'received');
  });

  it('makes a trace of its own', () => {
    const scenario: Scenario = { machine: 'executor', actor: 'a', input: { executorId: 'exec-1' }, events: [{ type: 'executor.delete' }] };
    expectTrace(traceOf(scenario));
  });

  it('simulates a revocation in the middle of a command, and is told where a state is another one', () => {
    const story: Story = {
      tells: 'A machine is disconnected while it writes.',
      seed: '1', machines: 1, controlPlanes: 1, settles: 60_000,
      steps: [
        { at: 0, do: 'call', operation: 'file.write', as: 'write', for: 15_000 },
        { at: 2000, do: 'disconnect' },
      ],
      expect: [{ machine: 1, is: ['revoked'] }, { command: 'write', ends: ['unknown', 'cancelled'] }],
    };
    assert.deepEqual(tellStory(story).unmet, []);
    const wrong = tellStory({ ...story, expect: [{ machine: 1, is: ['online'] }] });
    assert.deepEqual(wrong.unmet, ['machine 1: expected online, got revoked']);
  });

  it('simulates hours of faults', () => {
    const { violations, traceDigest } = simulateWorld({ seed: '1', executors: 2, hours: 1 });
    assert.deepEqual(violations, []);
    assert.match(traceDigest, /^[0-9a-f]{64}$/);
  });
});
`;

describe('the package for other projects', function () {
  this.timeout(120_000);
  let outside: string;
  let packed: string;

  before(async () => {
    outside = await mkdtemp(join(tmpdir(), 'nessie-package-'));
    const folder = join(outside, 'prepared');
    await preparePackage(top, folder);
    const tarball = await packPackage(folder, outside);
    packed = join(outside, 'project/node_modules/nessie-executor');
    await mkdir(packed, { recursive: true });
    await execute('tar', ['-xzf', tarball, '-C', packed, '--strip-components=1']);
    await mkdir(join(outside, 'project/node_modules/@types'));
    for (const name of ['xstate', '@types/node', '@types/mocha']) {
      await symlink(join(modules, name), join(outside, 'project/node_modules', name));
    }
    await cp(join(top, 'test/traces/command/cancelled-while-it-ran.jsonl'), join(outside, 'project/trace.jsonl'));
    await writeFile(join(outside, 'project/package.json'), JSON.stringify({ name: 'outside', type: 'module' }));
    await writeFile(join(outside, 'project/outside.spec.ts'), SPEC);
  });

  after(async () => {
    await rm(outside, { recursive: true, force: true });
  });

  it('holds its two entries, their types, a licence and nothing else', async () => {
    const names = (await readdir(packed)).toSorted();
    assert.deepEqual(names, ['LICENSE', 'README.md', 'js', 'package.json', 'types']);
    const manifest: unknown = JSON.parse(await readFile(join(packed, 'package.json'), 'utf8'));
    const { exports, peerDependencies } = manifest as { exports: object; peerDependencies: object };
    assert.deepEqual(Object.keys(exports), ['./machines', './testing']);
    assert.deepEqual(Object.keys(peerDependencies), ['xstate']);
  });

  it('imports nothing but xstate, node and itself, and names no place of the machine that built it', async () => {
    const files = await readdir(packed, { recursive: true, withFileTypes: true });
    for (const file of files.filter((entry) => entry.isFile())) {
      const text = await readFile(join(file.parentPath, file.name), 'utf8');
      assert.ok(!text.includes(top), file.name);
      if (!file.name.endsWith('.js')) continue;
      const sources = [...text.matchAll(/^(?:import|export)\b[^;]*?from\s*"([^"]+)"/gms)].map(([, source]) => source!);
      for (const source of sources) assert.match(source, /^(xstate|node:|\.\/)/, file.name);
    }
  });

  it('type-checks, replays a trace, steps a machine and simulates a revocation in a project outside under mocha', async () => {
    const project = join(outside, 'project');
    const options = [
      '--target',
      'es2022',
      '--module',
      'nodenext',
      '--moduleResolution',
      'nodenext',
      '--strict',
      '--skipLibCheck',
    ];
    const emit = ['--exactOptionalPropertyTypes', '--types', 'node,mocha', '--outDir', '.', 'outside.spec.ts'];
    const compiled = await run(join(modules, '.bin/tsc'), [...options, ...emit], project);
    assert.deepEqual(compiled, { code: 0, said: '' });
    const tested = await run(process.execPath, [join(modules, 'mocha/bin/mocha.js'), 'outside.spec.js'], project);
    assert.match(tested.said, /6 passing/);
    assert.equal(tested.code, 0);
  });

  it('tells a project outside at which line a trace differs, and why', async () => {
    const project = join(outside, 'project');
    const text = await readFile(join(project, 'trace.jsonl'), 'utf8');
    await writeFile(join(project, 'altered.jsonl'), text.replace('"value":"started"', '"value":"unknown"'));
    const script = `import { readFileSync } from 'node:fs'
      import { expectTrace } from 'nessie-executor/testing'
      expectTrace(readFileSync('altered.jsonl', 'utf8'))`;
    await writeFile(join(project, 'altered.mjs'), script);
    const told = await run(process.execPath, ['altered.mjs'], project);
    assert.notEqual(told.code, 0);
    assert.match(told.said, /line 8, command: receipt.started leads to started, the trace has unknown/);
  });
});
