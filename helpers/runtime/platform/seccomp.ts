/*
 * A seccomp program from a list of rules, as text for people and as bytes for the kernel (seccomp(2), linux/filter.h).
 * Pure: the same rules give the same bytes.
 */
import { constants } from 'node:os';

import { syscallNumber, type Architecture, type SyscallName } from '../syscall-numbers.ts';

/** What the kernel does with a call: EPERM or EACCES or ENOSYS as its result, or the end of the process by SIGSYS, which is reported as a policy violation. */
export type Verdict = 'allow' | 'EPERM' | 'EACCES' | 'ENOSYS' | 'kill';

type Argument = 0 | 1 | 2 | 3 | 4 | 5;

/**
 * One condition on an argument: all 64 bits equal, all bits of a mask set, or equal within a mask of 32 bits.
 * THREAT: where the kernel takes an int it ignores the upper half, so a refusal by `equal` is passed by setting a bit there.
 */
export type Condition =
  | { readonly argument: Argument; readonly is: 'equal' | 'with bits'; readonly value: bigint }
  | { readonly argument: Argument; readonly is: 'equal within'; readonly value: bigint; readonly mask: bigint };

/** A verdict for a call when every condition holds; rules are tried in order and the first match decides, else the call is allowed. */
export type Rule = {
  readonly call: SyscallName;
  readonly when?: readonly Condition[];
  readonly verdict: Verdict;
  readonly reason: string;
};

const LOAD = 0x20;
const JUMP_EQUAL = 0x15;
const JUMP_AT_LEAST = 0x35;
const AND = 0x54;
const RETURN = 0x06;
const ALLOW = 0x7fff0000;
const KILL_PROCESS = 0x80000000;
const ERRNO = 0x00050000;
const X32_BIT = 0x40000000;
const AUDIT_ARCHITECTURE: Readonly<Record<Architecture, number>> = { x64: 0xc000003e, arm64: 0xc00000b7 };

function instruction(code: number, ifTrue: number, ifFalse: number, operand: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeUInt16LE(code, 0);
  bytes.writeUInt8(ifTrue, 2);
  bytes.writeUInt8(ifFalse, 3);
  bytes.writeUInt32LE(operand >>> 0, 4);
  return bytes;
}

function returnValue(verdict: Verdict): number {
  if (verdict === 'allow') return ALLOW;
  if (verdict === 'kill') return KILL_PROCESS;
  return ERRNO | constants.errno[verdict];
}

/** Instructions that fall through when the condition holds and jump `over` more instructions past themselves when not. */
function conditionInstructions(condition: Condition, over: number): Buffer[] {
  const low = 16 + 8 * condition.argument;
  const high = low + 4;
  const lowValue = Number(condition.value & 0xffffffffn);
  const highValue = Number(condition.value >> 32n);
  if (condition.is === 'equal') {
    return [
      instruction(LOAD, 0, 0, low),
      instruction(JUMP_EQUAL, 0, over + 2, lowValue),
      instruction(LOAD, 0, 0, high),
      instruction(JUMP_EQUAL, 0, over, highValue),
    ];
  }
  // TRUST: masks of this project fit in 32 bits; asserted in `assertRule`
  const mask = condition.is === 'equal within' ? Number(condition.mask) : lowValue;
  return [instruction(LOAD, 0, 0, low), instruction(AND, 0, 0, mask), instruction(JUMP_EQUAL, 0, over, lowValue)];
}

function assertRule(rule: Rule): void {
  for (const condition of rule.when ?? []) {
    if (condition.is === 'equal') continue;
    const mask = condition.is === 'equal within' ? condition.mask : condition.value;
    if ((mask | condition.value) >> 32n !== 0n) throw new Error(`${rule.call}: mask above 32 bits`);
  }
}

function ruleInstructions(rule: Rule, number: number): Buffer[] {
  assertRule(rule);
  let body: Buffer[] = [instruction(RETURN, 0, 0, returnValue(rule.verdict))];
  for (const condition of (rule.when ?? []).toReversed()) {
    body = [...conditionInstructions(condition, body.length), ...body];
  }
  // a condition leaves an argument in the accumulator, so the number is loaded again for each rule
  return [instruction(LOAD, 0, 0, 0), instruction(JUMP_EQUAL, 0, body.length, number), ...body];
}

/**
 * The program of `struct sock_filter` entries, 8 bytes each. Another architecture and x32 numbers end the process.
 * Rules for calls that the architecture does not have are left out.
 */
export function assemble(architecture: Architecture, rules: readonly Rule[]): Buffer {
  const head = [
    instruction(LOAD, 0, 0, 4),
    instruction(JUMP_EQUAL, 1, 0, AUDIT_ARCHITECTURE[architecture]),
    instruction(RETURN, 0, 0, KILL_PROCESS),
    instruction(LOAD, 0, 0, 0),
    instruction(JUMP_AT_LEAST, 0, 1, X32_BIT),
    instruction(RETURN, 0, 0, KILL_PROCESS),
  ];
  const body = rules.flatMap((rule) => {
    const number = syscallNumber(architecture, rule.call);
    return number === undefined ? [] : ruleInstructions(rule, number);
  });
  return Buffer.concat([...head, ...body, instruction(RETURN, 0, 0, ALLOW)]);
}

function conditionText(condition: Condition): string {
  const { argument, is, value } = condition;
  if (is !== 'equal within') return `argument ${argument} ${is} 0x${value.toString(16)}`;
  return `argument ${argument} & 0x${condition.mask.toString(16)} equal 0x${value.toString(16)}`;
}

/** One line a rule, as `audit` and the tests print it. */
export function ruleLines(rules: readonly Rule[]): string[] {
  return rules.map((rule) => {
    const conditions = (rule.when ?? []).map(conditionText);
    const when = conditions.length === 0 ? '' : ` when ${conditions.join(' and ')}`;
    return `${rule.call}${when}: ${rule.verdict}, ${rule.reason}`;
  });
}
