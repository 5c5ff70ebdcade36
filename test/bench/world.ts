/*
 * A settled world for measuring: one real control plane, one real executor, one agent with an open MCP session.
 */
import type { ChildProcess } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { isDaemonUp } from '../../daemon/cli/owner-client.ts';
import { placesIn } from '../../daemon/cli/places.ts';
import type { Places } from '../../daemon/cli/places.ts';
import { writeSetUp } from '../../daemon/cli/set-up.ts';
import { Agent } from '../../daemon/demo/agent.ts';
import { freePort, startExecutor, startServer, stopChild, until } from '../../daemon/demo/children.ts';
import type { RunningServer } from '../../daemon/demo/children.ts';
import { bundleHere } from '../../daemon/demo/installation.ts';
import { Person } from '../../daemon/demo/person.ts';
import { confirmDescriptor, giveAccess, pair } from '../../daemon/demo/settle.ts';

export const PASSWORD = 'correct horse battery staple';

/** Everything that a row measures against. */
export interface World {
  readonly dist: string;
  readonly folder: string;
  readonly root: string;
  readonly places: Places;
  readonly server: RunningServer;
  readonly executor: ChildProcess;
  readonly person: Person;
  readonly executorId: string;
  readonly access: { readonly agent: string; readonly endpoint: string; readonly token: string };
  readonly agent: Agent;
  end(): Promise<void>;
}

/** Starts and settles a world whose root `prepare` fills. */
export async function makeWorld(prepare: (root: string) => void): Promise<World> {
  process.env['NESSIE_ALLOW_LOOPBACK_HTTP'] = '1';
  const dist = await bundleHere();
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'nessie-bench-'));
  fs.chmodSync(folder, 0o755);
  const root = path.join(folder, 'root');
  fs.mkdirSync(root);
  prepare(root);
  const places = placesIn(path.join(folder, 'executor'));
  const server = await startServer(dist, path.join(folder, 'server'), await freePort());
  writeSetUp({ places, origin: server.origin, root });
  const executor = startExecutor(dist, places.stateDir, folder);
  const stop = async (): Promise<void> => {
    await stopChild(executor);
    await stopChild(server.process);
    fs.rmSync(folder, { recursive: true, force: true });
  };
  const parts = { dist, folder, root, places, server, executor };
  try {
    const settled = await settle(parts);
    const end = async (): Promise<void> => {
      await settled.agent.close().catch(() => undefined);
      await stop();
    };
    return { ...parts, ...settled, end };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** From two running programs to an open session: owner, pairing, confirmation, access. */
async function settle({
  places,
  server,
}: Pick<World, 'places' | 'server'>): Promise<Pick<World, 'person' | 'executorId' | 'access' | 'agent'>> {
  await until('the executor to answer', 20_000, () => isDaemonUp(places.stateDir));
  const person = new Person(server.origin);
  const owner = { organisation: 'Bench', team: 'Team', project: 'Project', login: 'owner', name: 'Owner' };
  await person.setUp(server.setup ?? '', { ...owner, password: PASSWORD });
  const { executor: executorId } = await pair(person, places, 'bench');
  await confirmDescriptor(person, places, executorId, PASSWORD);
  const access = await giveAccess(person, executorId, 'Bench');
  const agent = new Agent(access.endpoint, access.token);
  await agent.connect();
  return { person, executorId, access, agent };
}

/** Processes of the executor's tree, supervisor first. */
export function treeOf(world: World): number[] {
  const children = fs
    .readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && parentOf(name) === world.executor.pid);
  return [world.executor.pid ?? 0, ...children.map(Number)];
}

function parentOf(pid: string): number {
  try {
    return Number(/^PPid:\s+(\d+)$/m.exec(fs.readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);
  } catch {
    // It ended while the list was read.
    return 0;
  }
}
