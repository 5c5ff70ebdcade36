/*
 * A whole world to break: the real control plane with its key-store, the real executor with all its roles, one agent with an MCP
 * session, and a proxy between machine and control plane. Every process can be frozen, killed and brought back.
 */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { askDaemon, isDaemonUp } from '../../daemon/cli/owner-client.ts';
import { placesIn } from '../../daemon/cli/places.ts';
import type { Places } from '../../daemon/cli/places.ts';
import { writeSetUp } from '../../daemon/cli/set-up.ts';
import { Agent } from '../../daemon/demo/agent.ts';
import { freePort, startExecutor, startServer, stopChild, until } from '../../daemon/demo/children.ts';
import type { RunningServer } from '../../daemon/demo/children.ts';
import { Person } from '../../daemon/demo/person.ts';
import { confirmDescriptor, giveAccess, pair } from '../../daemon/demo/settle.ts';
import type { DaemonStatus } from '../../daemon/protocol.ts';
import { CuttingProxy } from '../fakes/cutting-proxy.ts';
import { childrenOf, isDead, isFrozen, rowBelow, signal } from './processes.ts';
import { everyProgram } from './programs.ts';
import { StoredRecords } from './records.ts';

export const PASSWORD = 'correct horse battery staple';
const START_MS = 100_000;

/** Every long-lived process of a world. */
export const PROCESSES = [
  'supervisor',
  'daemon',
  'link',
  'key-store',
  'workspace',
  'server',
  'server key-store',
] as const;
export type ProcessName = (typeof PROCESSES)[number] | 'promote';

/** Names and texts of a world that a test chooses. */
export interface WorldWish {
  readonly prepare?: (root: string) => void;
  readonly organisation?: string;
  /** Whether the proxy keeps everything that passes. */
  readonly isRecorded?: boolean;
  /** Environment of both process trees beside this process's own. */
  readonly environment?: Readonly<Record<string, string>>;
}

/** One world; `begin` starts and settles it. */
export class World {
  readonly folder: string;
  readonly root: string;
  readonly places: Places;
  readonly proxy: CuttingProxy;
  readonly person: Person;
  readonly agent: Agent;
  readonly records: StoredRecords;
  readonly executorId: string;
  readonly access: { readonly agent: string; readonly token: string; readonly endpoint: string };
  readonly controlKey: Uint8Array;
  readonly dist: string;
  readonly #port: number;
  #server: RunningServer;
  #executor: ChildProcess;
  readonly #frozen = new Set<number>();

  private constructor(parts: Parts) {
    this.folder = parts.folder;
    this.root = parts.root;
    this.places = parts.places;
    this.proxy = parts.proxy;
    this.person = parts.person;
    this.agent = parts.agent;
    this.records = new StoredRecords(path.join(parts.folder, 'server', 'data'));
    this.executorId = parts.executorId;
    this.access = parts.access;
    this.controlKey = parts.controlKey;
    this.dist = parts.dist;
    this.#port = parts.port;
    this.#server = parts.server;
    this.#executor = parts.executor;
  }

  /** Starts, pairs, confirms and gives one agent access. */
  static async begin(wish: WorldWish = {}): Promise<World> {
    const world = new World(await begin(wish));
    await world.settled();
    return world;
  }

  get origin(): string {
    return this.#server.origin;
  }

  /** Another MCP session of the same agent: a run of its own. */
  async anotherAgent(): Promise<Agent> {
    const agent = new Agent(this.access.endpoint, this.access.token);
    await agent.connect();
    return agent;
  }

  status(): Promise<DaemonStatus> {
    return askDaemon(this.places.stateDir, 'daemon.status', {});
  }

  /** Waits until the machine is online and has its commands from this control plane. */
  async online(): Promise<void> {
    await until('the machine to be online', START_MS, async () => {
      const status = await this.status().catch(() => undefined);
      return status?.state === 'online' && status.standing === 'accepting';
    });
  }

  /** Waits until an agent's call goes the whole way: access that was just given has fenced the connection before it. */
  async settled(): Promise<void> {
    await this.online();
    let last = '';
    try {
      await until('a call to go the whole way', START_MS, async () => {
        const answer = await this.agent.call('file_list', {});
        last = answer.text;
        return !answer.failed;
      });
    } catch (cause) {
      throw new Error(`the last answer was: ${last}`, { cause });
    }
  }

  /** Pid of a process of now; undefined when it does not run. */
  find(name: ProcessName): number | undefined {
    const executor = this.#executor.pid ?? 0;
    const server = this.#server.process.pid ?? 0;
    if (name === 'supervisor') return executor;
    if (name === 'server') return server;
    return name === 'server key-store' ? rowBelow(server, 'key-store') : rowBelow(executor, name);
  }

  pidOf(name: ProcessName): number {
    const pid = this.find(name);
    if (pid === undefined) throw new Error(`${name} does not run`);
    return pid;
  }

  /** Every process of both trees. */
  pids(): number[] {
    const trees = [this.#executor.pid ?? 0, this.#server.process.pid ?? 0];
    return trees.flatMap((top) => [top, ...childrenOf(top).map(({ pid }) => pid)]);
  }

  /** Stops a process where it is; resolves once the kernel says that it stands. */
  async freeze(name: ProcessName): Promise<void> {
    const pid = this.pidOf(name);
    signal(pid, 'SIGSTOP');
    this.#frozen.add(pid);
    await until(`${name} to stand still`, 5000, () => isFrozen(pid) || isDead(pid));
  }

  /** Lets a frozen process go on. */
  thaw(name: ProcessName): void {
    const pid = this.find(name);
    if (pid === undefined) return;
    signal(pid, 'SIGCONT');
    this.#frozen.delete(pid);
  }

  /** Lets everything go on that still lives. */
  thawAll(): void {
    for (const pid of this.#frozen) signal(pid, 'SIGCONT');
    this.#frozen.clear();
    this.proxy.pass();
  }

  /** Kills a process as the kernel would for want of memory, frozen or not; resolves once it is dead and what hangs on it too. */
  async kill(name: ProcessName): Promise<void> {
    const pid = this.pidOf(name);
    signal(pid, 'SIGKILL');
    await until(`${name} to be dead`, 5000, () => isDead(pid));
    this.thawAll();
    if (name === 'server') await exited(this.#server.process);
    // A supervisor ends by itself when its daemon is dead.
    if (name === 'supervisor' || name === 'daemon') await exited(this.#executor);
  }

  /** Starts again whatever does not start itself again, then waits until the machine is online. */
  async recover(): Promise<void> {
    if (isGone(this.#server.process)) await this.startServer();
    if (isGone(this.#executor)) await this.startExecutor();
    await this.online();
  }

  async startServer(): Promise<void> {
    this.#server = await startServer(this.dist, path.join(this.folder, 'server'), this.#port);
  }

  async startExecutor(): Promise<void> {
    this.#executor = startExecutor(this.dist, this.places.stateDir, this.folder);
    await until('the executor to answer', START_MS, () => isDaemonUp(this.places.stateDir));
  }

  async stopExecutor(): Promise<void> {
    await stopChild(this.#executor);
  }

  async stopServer(): Promise<void> {
    await stopChild(this.#server.process);
  }

  /** Ends everything and removes the folder. */
  async end(): Promise<void> {
    this.thawAll();
    await this.agent.disconnect().catch(() => undefined);
    await stopChild(this.#executor);
    await stopChild(this.#server.process);
    await this.proxy.close();
    fs.rmSync(this.folder, { recursive: true, force: true });
  }
}

function isGone(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null;
}

async function exited(child: ChildProcess): Promise<void> {
  if (!isGone(child)) await once(child, 'exit');
}

interface Parts {
  readonly dist: string;
  readonly folder: string;
  readonly root: string;
  readonly places: Places;
  readonly port: number;
  readonly proxy: CuttingProxy;
  readonly server: RunningServer;
  readonly executor: ChildProcess;
  readonly person: Person;
  readonly agent: Agent;
  readonly executorId: string;
  readonly access: World['access'];
  readonly controlKey: Uint8Array;
}

async function begin({
  prepare,
  organisation = 'Faults',
  isRecorded = false,
  environment = {},
}: WorldWish): Promise<Parts> {
  Object.assign(process.env, { NESSIE_ALLOW_LOOPBACK_HTTP: '1', ...environment });
  const dist = await everyProgram();
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'faults-'));
  fs.chmodSync(folder, 0o755);
  const root = path.join(folder, 'root');
  fs.mkdirSync(root);
  prepare?.(root);
  const places = placesIn(path.join(folder, 'executor'));
  const port = await freePort();
  const server = await startServer(dist, path.join(folder, 'server'), port);
  const proxy = new CuttingProxy(port);
  proxy.isRecording = isRecorded;
  writeSetUp({ places, origin: await proxy.listen(), root });
  const executor = startExecutor(dist, places.stateDir, folder);
  await until('the executor to answer', START_MS, () => isDaemonUp(places.stateDir));
  const person = new Person(server.origin);
  const owner = { organisation, team: 'Team', project: 'Project', login: 'owner', name: 'Owner' };
  await person.setUp(server.setup ?? '', { ...owner, password: PASSWORD });
  const { executor: executorId } = await pair(person, places, 'faults');
  await confirmDescriptor(person, places, executorId, PASSWORD);
  const access = await giveAccess(person, executorId, 'Agent');
  const paired = await askDaemon(places.stateDir, 'daemon.pairing', {});
  if (paired.state !== 'paired') throw new Error('the machine is not paired');
  const agent = new Agent(access.endpoint, access.token);
  await agent.connect();
  const controlKey = paired.commandKey;
  return { dist, folder, root, places, port, proxy, server, executor, person, agent, executorId, access, controlKey };
}
