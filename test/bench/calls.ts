/*
 * Rows about calls: an agent's call to its result with all receipts durable, the wait until a machine has a command, and how
 * long a withdrawal takes to reach it.
 */
import fs from 'node:fs';
import path from 'node:path';
import { Agent } from '../../daemon/demo/agent.ts';
import { until } from '../../daemon/demo/children.ts';
import type { World } from './world.ts';

const FILE = 'four-kib.txt';

/** Fills a root for these rows. */
export function prepareCalls(root: string): void {
  fs.writeFileSync(path.join(root, FILE), 'x'.repeat(4096));
}

/** ms of each of `count` calls of file.read of 4 KiB through MCP, one after another. */
export async function roundtrips(world: World, count: number): Promise<number[]> {
  const samples: number[] = [];
  for (let call = 0; call < count; call += 1) {
    const started = performance.now();
    const answer = await world.agent.call('file_read', { path: FILE, maxBytes: 4096 });
    samples.push(performance.now() - started);
    if (answer.failed) throw new Error(`file.read failed: ${answer.text}`);
  }
  return samples;
}

/** Commands a second with `sessions` MCP sessions that call side by side. */
export async function sustained(world: World, sessions: number, seconds: number): Promise<number> {
  const agents = await Promise.all(
    Array.from({ length: sessions }, async () => {
      const agent = new Agent(world.access.endpoint, world.access.token);
      await agent.connect();
      return agent;
    }),
  );
  const deadline = performance.now() + seconds * 1000;
  const started = performance.now();
  const counts = await Promise.all(agents.map((agent) => callUntil(agent, deadline)));
  const passed = (performance.now() - started) / 1000;
  await Promise.all(agents.map((agent) => agent.close()));
  return counts.reduce((sum, count) => sum + count, 0) / passed;
}

async function callUntil(agent: Agent, deadline: number): Promise<number> {
  let count = 0;
  while (performance.now() < deadline) {
    const answer = await agent.call('file_read', { path: FILE, maxBytes: 4096 });
    if (answer.failed) throw new Error(`file.read failed: ${answer.text}`);
    count += 1;
  }
  return count;
}

/** ms from queued to delivered of the newest commands, as the control plane recorded them. */
export async function pickups(world: World): Promise<number[]> {
  const { runs } = await world.person.get<{ runs: { run: string }[] }>('/api/page/runs');
  const details = await Promise.all(
    runs.slice(0, 4).map(({ run }) => world.person.get<RunDetail>(`/api/page/runs/${run}`)),
  );
  return details.flatMap(({ commands }) =>
    commands.flatMap(({ createdAt, leasedAt }) => (leasedAt === null ? [] : [leasedAt - createdAt])),
  );
}

interface RunDetail {
  readonly commands: readonly { readonly createdAt: number; readonly leasedAt: number | null }[];
}

/** ms from the press of "access off" to a machine on which nothing runs, while an operation runs there. */
export async function revocations(world: World, count: number): Promise<number[]> {
  const samples: number[] = [];
  const access = `/api/page/executors/${world.executorId}/agents/${world.access.agent}`;
  const { askDaemon } = await import('../../daemon/cli/owner-client.ts');
  const running = async (): Promise<number> =>
    (await askDaemon(world.places.stateDir, 'daemon.status', {})).running.length;
  for (let trial = 0; trial < count; trial += 1) {
    const call = world.agent.call('file_search', { query: '(x+x+)+y', syntax: 'pattern' }).catch(() => undefined);
    await until('the operation to run', 5000, async () => (await running()) > 0);
    const started = performance.now();
    await world.person.put(access, { access: 'off' });
    await until('nothing to run', 5000, async () => (await running()) === 0);
    samples.push(performance.now() - started);
    await call;
    await world.person.put(access, { access: 'on' });
  }
  return samples;
}
