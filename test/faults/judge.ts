/*
 * What must hold of a world after a fault, whatever the fault was: an effect at most once, no success without one, and both
 * sides' records whole and of one mind.
 */
import assert from 'node:assert/strict';
import type { Agent } from '../../daemon/demo/agent.ts';
import { until } from '../../daemon/demo/children.ts';
import { inLedger, readLedger } from './records.ts';
import type { StoredCommand } from './records.ts';
import { COUNTER } from './steps.ts';
import type { UnderWay } from './steps.ts';
import type { World } from './world.ts';

const SETTLE_MS = 45_000;
const LINE = /effect-[0-9a-f]{16}/g;

/** How one command ended after a fault. */
export interface Verdict {
  readonly line: string;
  readonly state: string;
  readonly effects: number;
}

/** Waits until nothing about these commands can change any more without a new event, then holds them against the invariants. */
export async function judge(world: World, calls: readonly UnderWay[]): Promise<Verdict[]> {
  for (const call of calls) {
    await until(`command to rest; ${describe(world, call)}`, SETTLE_MS, () => isAtRest(world, call)).catch(() => {
      throw new assert.AssertionError({ message: `the command never came to rest: ${describe(world, call)}` });
    });
  }
  const counts = await countLines(world.agent);
  const verdicts = calls.map((call) => judgeOne(world, call, counts.get(call.line) ?? 0));
  for (const [line, count] of counts) assert.ok(count <= 1, `line ${line} was written ${count} times`);
  assert.equal((await world.status()).ledger.state, 'whole');
  // Throws where the chain of records does not hold.
  readLedger(world.places.stateDir);
  return verdicts;
}

function judgeOne(world: World, call: UnderWay, effects: number): Verdict {
  const stored = storedOf(world, call);
  const state = stored.outcome ?? stored.state;
  const about = describe(world, call);
  assert.ok(effects <= 1, `more than one effect: ${about}`);
  if (state === 'succeeded') assert.equal(effects, 1, `success without effect: ${about}`);
  if (['refused', 'cancelled', 'expired', 'failed'].includes(state)) {
    assert.equal(effects, 0, `an effect that was called ${state}: ${about}`);
  }
  const told = call.told();
  if (told && !told.failed) assert.equal(effects, 1, `the agent was told of a success without effect: ${about}`);
  const verdict = world.records.verdictOf(call.command, world.controlKey);
  assert.ok(verdict === undefined || verdict.ok, `receipts do not verify: ${JSON.stringify(verdict)} ${about}`);
  const machine = inLedger(world.places.stateDir, call.command);
  if (machine?.phase === 'acknowledged') {
    assert.equal(machine.ended?.outcome, stored.outcome, `the two sides know different endings: ${about}`);
    assert.ok(verdict?.ok && verdict.complete, `acknowledged, and the receipts are not complete: ${about}`);
  }
  return { line: call.line, state, effects };
}

/** Settled on both sides, or unknown on both sides, or never given to the machine. */
export async function isAtRest(world: World, call: UnderWay): Promise<boolean> {
  const stored = storedOf(world, call);
  if (stored.open === 1) return false;
  const machine = inLedger(world.places.stateDir, call.command);
  if (!machine) return true;
  if (machine.phase === 'acknowledged') return stored.state !== 'unknown';
  if (stored.state !== 'unknown') return false;
  if (machine.ended?.outcome === 'unknown') return true;
  // A machine that could not even record that it does not know holds the command no longer.
  const { running } = await world.status();
  return !machine.ended && !running.some(({ command }) => command === call.command);
}

function storedOf(world: World, call: UnderWay): StoredCommand {
  const stored = world.records.command(call.command);
  if (!stored) throw new Error('the control plane lost a command that it had recorded');
  return stored;
}

function describe(world: World, call: UnderWay): string {
  const stored = storedOf(world, call);
  const machine = inLedger(world.places.stateDir, call.command);
  const there = machine ? `${machine.phase}/${machine.ended?.outcome ?? '-'}` : 'nothing';
  return `control plane ${stored.state}/${stored.outcome ?? '-'}/${stored.code ?? '-'}, machine ${there}`;
}

/** How often each line stands in the counter as the agent's run sees it. */
export async function countLines(agent: Agent): Promise<Map<string, number>> {
  const counts = new Map<string, number>();
  const answer = await until('the counter to be read', SETTLE_MS, async () => {
    // A role that was killed is being started again, and a call that comes first is told so.
    const read = await agent.call('file_read', { path: COUNTER, maxBytes: 262_144 }).catch(() => undefined);
    return read?.failed === false ? read : undefined;
  });
  for (const line of answer.text.match(LINE) ?? []) counts.set(line, (counts.get(line) ?? 0) + 1);
  return counts;
}
