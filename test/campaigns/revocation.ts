/* How long a withdrawal takes while an operation runs: from the press of "access off" to a machine on which nothing runs. */
import fs from 'node:fs';
import path from 'node:path';
import { until } from '../../daemon/demo/children.ts';
import { World } from '../faults/world.ts';
import type { Campaign } from './campaign.ts';

const BUDGET_MS = 1000;
const STEP_MS = 30_000;
/** Files of a tree whose search takes longer than any withdrawal. */
const FILES = 4000;

/** `npm run campaign -- revocation`; a round is one withdrawal. */
export const revocation: Campaign = {
  name: 'revocation',
  rounds: 100,
  async begin() {
    const world = await World.begin({ prepare: manyFiles });
    return { round: () => withdraw(world), end: () => world.end() };
  },
  figures(counts) {
    const all = [...counts].flatMap(([text, count]) => Array.from({ length: count }, () => Number.parseInt(text, 10)));
    const sorted = all.toSorted((one, other) => one - other);
    const at = (share: number): number => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
    return `From the press to nothing running: p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, longest ${sorted.at(-1) ?? 0} ms; the budget is ${BUDGET_MS} ms.`;
  },
};

async function withdraw(world: World): Promise<string> {
  const agent = await world.anotherAgent();
  const access = `/api/page/executors/${world.executorId}/agents/${world.access.agent}`;
  const running = async (): Promise<number> => (await world.status()).running.length;
  const call = agent.call('file_search', { query: '(x+x+)+y', syntax: 'pattern' }).catch(() => undefined);
  await until('the operation to run', STEP_MS, async () => (await running()) > 0);
  const pressed = performance.now();
  await world.person.put(access, { access: 'off' });
  await until('nothing to run', STEP_MS, async () => (await running()) === 0);
  const ms = performance.now() - pressed;
  await call;
  await world.person.put(access, { access: 'on' });
  await agent.close().catch(() => undefined);
  await world.settled();
  if (ms > BUDGET_MS) throw new Error(`${Math.round(ms)} ms until nothing ran`);
  return `${Math.ceil(ms / 10) * 10} ms`;
}

function manyFiles(root: string): void {
  for (let file = 0; file < FILES; file += 1) fs.writeFileSync(path.join(root, `${file}.txt`), 'x'.repeat(20_000));
}
