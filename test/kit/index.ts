/*
 * Package entry `nessie-executor/testing`: replay a recorded trace in a test, or hold one against another.
 *
 *   it('takes the late receipt', () => expectTrace(readFileSync('late.jsonl', 'utf8')));
 *   it('loses nothing in a day of faults', () => assert.deepEqual(simulateWorld({ seed: '1', hours: 24 }).violations, []));
 */
export { replay } from '../../machines/trace/replay.ts';
export type { Difference, Replay } from '../../machines/trace/replay.ts';
export { faultKinds } from '../../machines/trace/simulate/faults.ts';
export type { FaultKind } from '../../machines/trace/simulate/faults.ts';
export type { Scenario as Story, Told } from '../../machines/trace/simulate/scenario.ts';
export type { Violation } from '../../machines/trace/simulate/watch.ts';
export { simulateWorld, tellStory } from './simulate.ts';
export type { SimulatedWorld, WorldWish } from './simulate.ts';
export { expectTrace } from './expect-trace.ts';
export { traceOf } from './trace-of.ts';
export type { Scenario } from './trace-of.ts';
