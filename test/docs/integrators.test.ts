import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';

import { preparePackage } from '../../helpers/build/package.ts';
import { operations, toolName } from '../../helpers/protocol/operations.ts';

const execute = promisify(execFile);
const top = resolve(import.meta.dirname, '../..');
const modules = join(top, 'node_modules');
const page = await readFile(join(top, 'docs/integrators.md'), 'utf8');

/** Blocks of the page that are whole programs, by the word behind `ts`. */
const programs = new Map(
  [...page.matchAll(/^```ts (\w+)\n([\s\S]*?)^```$/gm)].map(([, name = '', text = '']) => [name, text]),
);

describe('the examples for integrators', function () {
  this.timeout(120_000);
  let project: string;

  before(async () => {
    project = await mkdtemp(join(tmpdir(), 'nessie-docs-'));
    await preparePackage(top, join(project, 'node_modules/nessie-executor'));
    await mkdir(join(project, 'node_modules/@types'));
    for (const name of ['xstate', '@types/node'])
      await symlink(join(modules, name), join(project, 'node_modules', name));
    await writeFile(join(project, 'package.json'), '{ "type": "module" }');
    const compilerOptions = { module: 'nodenext', strict: true, noEmit: true, skipLibCheck: true, types: ['node'] };
    await writeFile(join(project, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['*.ts'] }));
    await cp(join(top, 'test/traces/command/cancelled-while-it-ran.jsonl'), join(project, 'trace.jsonl'));
    for (const [name, text] of programs) await writeFile(join(project, `${name}.ts`), text);
  });
  after(() => rm(project, { recursive: true, force: true }));

  async function outputOf(name: string): Promise<string> {
    const tsx = join(modules, 'tsx/dist/cli.mjs');
    const { stdout } = await execute(process.execPath, [tsx, `${name}.ts`], { cwd: project, timeout: 60_000 });
    return stdout;
  }

  it('type-check in a project of their own', async () => {
    assert.deepEqual([...programs.keys()], ['step', 'replay', 'scenario', 'simulate', 'story', 'walk']);
    await execute(join(modules, '.bin/tsc'), ['-p', '.'], { cwd: project, timeout: 60_000 });
  });

  it('do what the page says', async () => {
    assert.equal(await outputOf('step'), 'revoked true\nSTATE_TRANSITION_INVALID in "revoked"\n');
    assert.equal(await outputOf('replay'), '');
    assert.equal(await outputOf('scenario'), '2\n');
    assert.equal(await outputOf('simulate'), '0 true 64\n');
    assert.equal(await outputOf('story'), '0\n');
    assert.equal(
      await outputOf('walk'),
      [
        'unknown: server.take-late-receipt, server.countersign',
        'connection.lost came (epoch 7): it goes from leased to unknown. It asks for tellWaiter.',
        '3 lines of a trace\n',
      ].join('\n'),
    );
  });

  it('name every tool that an agent can have, and no other', () => {
    const list = /shows what this agent may call now: ([^.]+)\./.exec(page)?.[1] ?? '';
    const named = [...list.matchAll(/`(\w+)`/g)].map(([, name]) => name);
    const tools = operations.filter(({ caller }) => caller === 'agent').map(({ key }) => toolName(key));
    assert.deepEqual(named, tools);
  });
});
