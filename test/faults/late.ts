/*
 * One result whose connection is cut after so many of its bytes: what the control plane thinks then, and what it thinks once the
 * machine has come back with the old chain.
 */
import assert from 'node:assert/strict';
import { until } from '../../daemon/demo/children.ts';
import { judge } from './judge.ts';
import { append, phase } from './steps.ts';
import type { UnderWay } from './steps.ts';
import type { World } from './world.ts';

const STEP_MS = 20_000;

/** What one cut came to. */
export interface CutVerdict {
  readonly bytes: number;
  /** State at the control plane after the cut and before the machine came back. */
  readonly between: string;
  readonly end: string;
}

/** How many bytes go up from the moment that an operation may end until its result is acknowledged. */
export async function resultBytes(world: World): Promise<number> {
  const call = await started(world);
  const before = world.proxy.upBytes;
  world.thaw('workspace');
  await phase(world, call, 'acknowledged');
  const bytes = world.proxy.upBytes - before;
  await judge(world, [call]);
  return bytes;
}

/** Cuts the connection after `bytes` bytes of a result and lets the machine come back. */
export async function cutResult(world: World, bytes: number): Promise<CutVerdict> {
  const call = await started(world);
  const { cuts } = world.proxy;
  world.proxy.cutAfterUp(bytes);
  world.thaw('workspace');
  await until('the cut', STEP_MS, () => world.proxy.cuts > cuts);
  const between = await until('the control plane to see the cut', STEP_MS, () => {
    const state = world.records.command(call.command)?.state;
    return state === 'unknown' || state === 'succeeded' ? state : undefined;
  });
  world.proxy.pass();
  await world.online();
  const [verdict] = await judge(world, [call]);
  assert.ok(verdict);
  assert.equal(verdict.state, 'succeeded', `a result that was cut after ${bytes} bytes`);
  assert.equal(verdict.effects, 1);
  return { bytes, between, end: verdict.state };
}

/** An effect whose start the control plane knows and whose end waits for the workspace. */
async function started(world: World): Promise<UnderWay> {
  await world.freeze('workspace');
  const call = await append(world, world.agent);
  const state = (): string | undefined => world.records.command(call.command)?.state;
  await until('the control plane to know of the start', STEP_MS, () => state() === 'started').catch(
    (cause: unknown) => {
      throw new Error(`the control plane knows ${call.command} as ${state() ?? 'nothing'}, not as started`, { cause });
    },
  );
  return call;
}
