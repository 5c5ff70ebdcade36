/*
 * `npm start`: a control plane and one executor on this machine, settled for one person and one agent. A second start resumes
 * what the first one made; `--reset` removes it after asking.
 */
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import fs from 'node:fs';
import { createInterface } from 'node:readline/promises';
import { remove } from 'fs-extra/esm';
import path from 'node:path';
import { parseArgs, promisify } from 'node:util';
import { CliFailure } from './cli/failure.ts';
import { isDaemonUp } from './cli/owner-client.ts';
import { placesIn } from './cli/places.ts';
import type { Places } from './cli/places.ts';
import { writeSetUp } from './cli/set-up.ts';
import { ChildFailed, lastLines, startExecutor, startServer, stopChild, until } from './demo/children.ts';
import type { RunningServer } from './demo/children.ts';
import { bundleHere } from './demo/installation.ts';
import { Person } from './demo/person.ts';
import { confirmDescriptor, giveAccess, pair } from './demo/settle.ts';

const HOME = path.resolve(import.meta.dirname, '..', '.nessie');
const LOGIN = 'owner';
const run = promisify(execFile);

/** What a first start settled, for the next one and for `npm run agent`. */
interface Settled {
  readonly endpoint: string;
  readonly token: string;
  readonly root: string;
  readonly port: number;
}

const usage = `npm start [-- --root FOLDER] [--port N] [--reset]

  --root FOLDER   the folder that the agent works on; default: a small project in .nessie/project
  --port N        port of the page on 127.0.0.1; default 7420
  --reset         remove everything that an earlier start made, after asking`;

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      root: { type: 'string' },
      port: { type: 'string', default: '7420' },
      reset: { type: 'boolean' },
      help: { type: 'boolean', short: 'h' },
    },
  });
  if (values.help) return say(usage);
  if (values.reset) return reset();
  // The page and the executor meet on the loopback interface of this machine: plain http is for that alone.
  process.env['NESSIE_ALLOW_LOOPBACK_HTTP'] = '1';
  if (process.getuid?.() === 0) say('Running as root works; an ordinary user suffices.');
  const before = readSettled();
  const port = before?.port ?? Number(values.port);
  const root = path.resolve(before?.root ?? values.root ?? sampleProject());
  if (before && values.root && path.resolve(values.root) !== root) {
    throw new CliFailure('refused', `an earlier start settled on ${root}; keep it, or say npm start -- --reset first`);
  }
  say('Building …');
  const dist = await bundleHere();
  const server = await startServer(dist, path.join(HOME, 'server'), port);
  const places = placesIn(path.join(HOME, 'executor'));
  if (!before) writeSetUp({ places, origin: server.origin, root, installation: dist });
  const executor = startExecutor(dist, places.stateDir, HOME);
  await until('the executor to answer', 20_000, () => isDaemonUp(places.stateDir));
  const settled = before ?? (await settle(server, places, { root, port }));
  await closingLines(dist, server, settled, before === undefined);
  await Promise.race([
    ended(server.process, 'control plane', 'server/server.log'),
    ended(executor, 'executor', 'executor.log'),
    interrupted(),
  ]);
  say('\nStopping …');
  await stopChild(executor);
  await stopChild(server.process);
  return 0;
}

async function settle(
  server: RunningServer,
  places: Places,
  { root, port }: { root: string; port: number },
): Promise<Settled> {
  if (!server.setup)
    throw new CliFailure(
      'refused',
      'the control plane has an owner but this start is unfinished; say npm start -- --reset',
    );
  say('Pairing this machine …');
  // Known to this process alone and taken away at its end: the person chooses their own on the page.
  const password = randomBytes(24).toString('base64url');
  const person = new Person(server.origin);
  await person.setUp(server.setup, {
    organisation: 'Home',
    team: 'Team',
    project: 'Project',
    login: LOGIN,
    name: 'Owner',
    password,
  });
  const { executor } = await pair(person, places, 'this-machine');
  await confirmDescriptor(person, places, executor, password);
  const { endpoint, token } = await giveAccess(person, executor, 'Helper');
  const settled: Settled = { endpoint, token, root, port };
  fs.writeFileSync(path.join(HOME, 'settled.json'), `${JSON.stringify(settled, undefined, 2)}\n`, { mode: 0o600 });
  return settled;
}

async function closingLines(dist: string, server: RunningServer, settled: Settled, first: boolean): Promise<void> {
  const config = path.join(HOME, 'server', 'server.json');
  const command = first ? 'reset-password' : 'sign-in-link';
  const { stdout } = await run(process.execPath, [path.join(dist, 'server.mjs'), '--config', config, command, LOGIN]);
  // The form in which server/maintain.ts prints an address.
  const { address } = JSON.parse(stdout) as { address: string };
  const block = {
    mcpServers: {
      nessie: { type: 'http', url: settled.endpoint, headers: { Authorization: `Bearer ${settled.token}` } },
    },
  };
  say(`\nThe agent works on ${settled.root}, in drafts; you promote them. Stop with Ctrl-C.\n`);
  say(`Page:   ${address}   (once${first ? '; you choose your password there' : ''})`);
  say(`MCP:    ${JSON.stringify(block)}`);
  say(`Agent:  npm run agent -- "list ."          (in another terminal; say npm run agent -- help)`);
}

function readSettled(): Settled | undefined {
  const file = path.join(HOME, 'settled.json');
  // This file is written by `settle` above, owner-only.
  return fs.existsSync(file) ? (JSON.parse(fs.readFileSync(file, 'utf8')) as Settled) : undefined;
}

function sampleProject(): string {
  const folder = path.join(HOME, 'project');
  if (fs.existsSync(folder)) return folder;
  fs.mkdirSync(folder, { recursive: true });
  fs.writeFileSync(
    path.join(folder, 'README.md'),
    '# A small project\n\nAn agent may draft changes to it; a person promotes them.\n',
  );
  fs.writeFileSync(path.join(folder, 'notes.txt'), 'milk\nbread\n');
  return folder;
}

async function reset(): Promise<number> {
  if (!fs.existsSync(HOME)) return say('There is nothing to remove.');
  const asking = createInterface({ input: process.stdin, output: process.stdout });
  const answer = await asking.question(
    `Remove ${HOME} with its control plane, key, drafts and sample project? Type "remove": `,
  );
  asking.close();
  if (answer.trim() !== 'remove') return say('Nothing was removed.');
  await remove(HOME);
  return say('Removed.');
}

async function ended(child: RunningServer['process'], what: string, log: string): Promise<never> {
  await new Promise((resolve) => child.once('exit', resolve));
  throw new ChildFailed(`the ${what} ended by itself:\n${lastLines(path.join(HOME, log))}`);
}

function interrupted(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve());
  });
}

function say(text: string): 0 {
  console.log(text);
  return 0;
}

try {
  process.exitCode = await main();
} catch (error) {
  console.error(error instanceof Error ? error.message : 'It did not work.');
  process.exitCode = 1;
}
