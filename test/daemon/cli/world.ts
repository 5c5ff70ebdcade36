/*
 * Both sides of a pairing as real processes: the built command line, the control plane with its owner signed in, and one executor.
 * Either side can be killed and started again.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import type { Finding } from '../../../daemon/cli/doctor.ts';
import { isDaemonUp } from '../../../daemon/cli/owner-client.ts';
import { placesIn } from '../../../daemon/cli/places.ts';
import type { Places } from '../../../daemon/cli/places.ts';
import { writeSetUp } from '../../../daemon/cli/set-up.ts';
import { freePort, startServer, stopChild, until } from '../../../daemon/demo/children.ts';
import type { RunningServer } from '../../../daemon/demo/children.ts';
import { Person } from '../../../daemon/demo/person.ts';
import { pair } from '../../../daemon/demo/settle.ts';
import { rowBelow } from '../../faults/processes.ts';
import { CommandLine } from '../../fixtures/command-line.ts';

/** Longest wait for a condition; long, because the machine may be busy with other things. */
export const PATIENCE_MS = 60_000;

/** One control plane and one executor; `begin` starts the former, `pairMachine` the latter. */
export class World {
  readonly cli: CommandLine;
  readonly folder: string;
  readonly places: Places;
  readonly person: Person;
  #server: RunningServer;
  #supervisor: ChildProcess | undefined;

  private constructor(cli: CommandLine, folder: string, server: RunningServer) {
    this.cli = cli;
    this.folder = folder;
    this.places = placesIn(path.join(folder, 'executor'));
    this.person = new Person(server.origin);
    this.#server = server;
  }

  /** Builds everything, starts the control plane and makes its owner; `name` is the beginning of the folder's. */
  static async begin(name: string): Promise<World> {
    const cli = await CommandLine.build(true);
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), `${name}-`));
    fs.chmodSync(folder, 0o755);
    process.env['NESSIE_ALLOW_LOOPBACK_HTTP'] = '1';
    const server = await startServer(cli.dist, path.join(folder, 'server'), await freePort());
    const world = new World(cli, folder, server);
    const facts = { organisation: 'Organisation', team: 'Team', project: 'Project', login: 'owner', name: 'Owner' };
    await world.person.setUp(server.setup ?? '', { ...facts, password: 'correct horse battery staple' });
    return world;
  }

  /** Sets the executor up, starts it and pairs it, both people saying yes. */
  async pairMachine(): Promise<void> {
    const root = path.join(this.folder, 'root');
    fs.mkdirSync(root);
    writeSetUp({ places: this.places, origin: this.#server.origin, root });
    await this.startMachine();
    await pair(this.person, this.places, 'machine');
  }

  get origin(): string {
    return this.#server.origin;
  }

  /** Pid of a running role of the machine. */
  pidOf(row: string): number {
    const pid = rowBelow(this.#supervisor?.pid ?? 0, row);
    if (pid === undefined) throw new Error(`${row} does not run`);
    return pid;
  }

  async startMachine(): Promise<void> {
    const program = path.join(this.cli.dist, 'supervisor.mjs');
    this.#supervisor = spawn(process.execPath, ['--no-warnings', program, this.places.stateDir], {
      stdio: 'ignore',
      env: { NESSIE_ALLOW_LOOPBACK_HTTP: '1' },
    });
    await until('the daemon answers', PATIENCE_MS, () => isDaemonUp(this.places.stateDir));
  }

  /** Kills the supervisor; the kernel kills every role with it. */
  async killMachine(): Promise<void> {
    if (!this.#supervisor) return;
    await kill(this.#supervisor);
    await until('nothing answers', PATIENCE_MS, async () => !(await isDaemonUp(this.places.stateDir)));
  }

  /** Asks the whole machine to end, as a service manager does, and waits for it. */
  async stopMachine(): Promise<void> {
    if (this.#supervisor) await stopChild(this.#supervisor);
  }

  /** Starts the machine again where its tree ended by itself, as a service manager does. */
  async keepUp(): Promise<void> {
    if (this.#supervisor && isGone(this.#supervisor)) await this.startMachine();
  }

  /** Kills the whole machine and starts it again. */
  async cutMachine(): Promise<void> {
    await this.killMachine();
    await this.startMachine();
  }

  /** Kills the control plane and starts it again at the same address. */
  async cutControlPlane(): Promise<void> {
    await kill(this.#server.process);
    const port = Number(new URL(this.#server.origin).port);
    this.#server = await startServer(this.cli.dist, path.join(this.folder, 'server'), port);
  }

  /** Ends everything and removes the folder. */
  async end(): Promise<void> {
    await this.killMachine();
    await stopChild(this.#server.process);
    await this.cli.remove();
    fs.rmSync(this.folder, { recursive: true, force: true });
  }
}

function isGone(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null;
}

async function kill(child: ChildProcess): Promise<void> {
  if (isGone(child)) return;
  const exited = once(child, 'exit');
  child.kill('SIGKILL');
  await exited;
}

/** Checks that `doctor --json` found nothing wrong, and told of the root's file system what it has and what is done for the rest. */
export function assertWell(out: string): void {
  // The command line prints its findings so.
  const { findings } = JSON.parse(out) as { findings: readonly Finding[] };
  assert.deepEqual(
    findings.filter(({ result }) => result === 'failed'),
    [],
  );
  const tried = findings.find(({ check }) => check === 'file system');
  assert.ok(tried?.fileSystem, JSON.stringify(tried));
  const { fileSystem, reflink, ...needed } = tried.fileSystem;
  assert.deepEqual(needed, { exchange: true, noReplace: true, unnamed: true, leases: true });
  assert.equal(
    tried.said,
    `${fileSystem}: ${reflink ? 'nothing is missing' : 'no reflink, so large files are copied'}`,
  );
}
