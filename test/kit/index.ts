/*
 * Package entry `nessie-executor/testing`: replay a recorded trace in a test, or hold one against another.
 *
 *   it('takes the late receipt', () => expectTrace(readFileSync('late.jsonl', 'utf8')));
 */
export { replay } from '../../machines/trace/replay.ts';
export type { Difference, Replay } from '../../machines/trace/replay.ts';
export { expectTrace } from './expect-trace.ts';
export { traceOf } from './trace-of.ts';
export type { Scenario } from './trace-of.ts';
