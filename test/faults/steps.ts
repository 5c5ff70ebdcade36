/*
 * Brings commands of a real world to an exact step of their receipts and holds them there: a process whose answer the step waits
 * for is frozen, so nothing is a matter of luck.
 */
import { randomBytes } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { askDaemon } from '../../daemon/cli/owner-client.ts';
import type { Agent, ToolAnswer } from '../../daemon/demo/agent.ts';
import { until } from '../../daemon/demo/children.ts';
import type { CommandMemory } from '../../daemon/ledger/memory.ts';
import type { CommandId } from '../../helpers/protocol/ids.ts';
import { inLedger } from './records.ts';
import type { World } from './world.ts';

/** File that every effect appends one line to. */
export const COUNTER = 'counter.txt';
const STEP_MS = 20_000;

/** One effect under way. */
export interface UnderWay {
  readonly line: string;
  readonly command: CommandId;
  /** What the agent was told, or undefined while or because nobody could tell it. */
  readonly told: () => ToolAnswer | undefined;
  /** Resolves when the agent's call ended, however it did. */
  readonly ended: Promise<void>;
}

/** A step at which commands stand; `named` says which step each kill of it covers. */
export interface Step {
  readonly name: string;
  hold(world: World): Promise<readonly UnderWay[]>;
}

/** Steps of the receipts, in their order. */
export const STEPS: readonly Step[] = [
  {
    name: 'before accepted',
    async hold(world) {
      await world.freeze('key-store');
      const call = await append(world, world.agent);
      await until('the daemon to have it', STEP_MS, async () => (await traced(world)).includes(call.command));
      return [call];
    },
  },
  {
    name: 'accepted, started and acknowledged',
    async hold(world) {
      const acknowledged = await append(world, world.agent);
      await phase(world, acknowledged, 'acknowledged');
      await world.freeze('workspace');
      const started = await append(world, world.agent);
      await phase(world, started, 'started');
      const accepted = await append(world, world.agent);
      await phase(world, accepted, 'accepted');
      return [acknowledged, started, accepted];
    },
  },
  {
    name: 'executing, the effect done',
    async hold(world) {
      const call = await startedWith(world, ['workspace']);
      await asked(world, call);
      await world.freeze('daemon');
      world.thaw('workspace');
      await until('the effect', STEP_MS, () => isDrafted(world, call.line));
      return [call];
    },
  },
  {
    name: 'result recorded',
    async hold(world) {
      const call = await startedWith(world, ['workspace']);
      await world.freeze('link');
      world.thaw('workspace');
      await phase(world, call, 'ended');
      return [call];
    },
  },
  {
    name: 'result sent',
    async hold(world) {
      const call = await startedWith(world, ['workspace']);
      world.proxy.swallowDown();
      world.thaw('workspace');
      await until('the control plane to have it', STEP_MS, () => world.records.command(call.command)?.open === 0);
      return [call];
    },
  },
];

/** Asks for one effect; resolves once the control plane has recorded the command. */
export async function append(world: World, agent: Agent): Promise<UnderWay> {
  const line = `effect-${randomBytes(8).toString('hex')}`;
  const before = new Set(world.records.commands().map(({ id }) => id));
  let told: ToolAnswer | undefined;
  const ended = agent.call('file_append', { path: COUNTER, content: `${line}\n` }).then(
    (answer) => {
      told = answer;
    },
    () => undefined,
  );
  const command = await until('the control plane to record the command', STEP_MS, () =>
    world.records.commands().find(({ id, operation }) => !before.has(id) && operation === 'file.append'),
  );
  return { line, command: command.id, told: () => told, ended };
}

/** Waits until the machine's ledger says this of a command. */
export async function phase(world: World, call: UnderWay, wanted: CommandMemory['phase']): Promise<void> {
  await until(`the ledger to say ${wanted}`, STEP_MS, () => {
    return inLedger(world.places.stateDir, call.command)?.phase === wanted;
  });
}

/** Every trace line that the daemon still has. */
export async function traced(world: World): Promise<string> {
  const pieces: string[] = [];
  for (let after = 0; ;) {
    const { lines, next } = await askDaemon(world.places.stateDir, 'daemon.trace', { after, limit: 1000 });
    pieces.push(...lines);
    if (lines.length === 0) return pieces.join('\n');
    after = next;
  }
}

async function startedWith(world: World, frozen: readonly 'workspace'[]): Promise<UnderWay> {
  for (const name of frozen) await world.freeze(name);
  const call = await append(world, world.agent);
  await phase(world, call, 'started');
  return call;
}

/** Waits until the daemon has asked its workspace: it does once the sync of the ledger has returned, after the bytes can be read. */
async function asked(world: World, { command }: UnderWay): Promise<void> {
  await until('the daemon to ask its workspace', STEP_MS, async () => {
    const { running } = await world.status();
    return running.some((one) => one.command === command && one.phase === 'started');
  });
}

/** Whether any file of any draft holds this text. */
export function isDrafted(world: World, text: string): boolean {
  const drafts = path.join(world.places.stateDir, 'drafts');
  return fs
    .readdirSync(drafts, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .some((entry) => readOrEmpty(path.join(entry.parentPath, entry.name)).includes(text));
}

function readOrEmpty(file: string): string {
  try {
    return fs.readFileSync(file, 'latin1');
  } catch {
    // Renamed while the folder was read.
    return '';
  }
}
