import path from 'node:path';

import { ROW_NAMES, type RowName } from './privileges.ts';

/** What the starter tells launch, as JSON on descriptor 0. What the row may do is not in it: launch takes that from the table. */
export type LaunchPlan = {
  readonly row: RowName;
  /** The row's own program, or the probe that `audit` starts as its twin. */
  readonly program: 'role' | 'probe';
  /** Absolute folder of the bundles. */
  readonly installation: string;
  /** The starter, which must still be the parent. */
  readonly parent: number;
  /** Name of the daemon's listener in the folder at descriptor 3, or undefined when descriptor 3 is the channel already. */
  readonly connect: string | undefined;
  /** The uid and gid to take, or undefined to keep the starter's. */
  readonly user: { readonly uid: number; readonly gid: number } | undefined;
  readonly slot: number;
  readonly origin: string | undefined;
  /** Whether the owner's environment permits an origin of plain HTTP on a loopback address. */
  readonly loopback: boolean;
  readonly forbiddenFolders: string;
  /** Absolute folder for the launch record, or undefined for a twin. */
  readonly records: string | undefined;
};

/** What launch writes as `PID.json` before it starts the program; `startTicks` is field 22 of `/proc/PID/stat`. */
export type LaunchRecord = {
  readonly version: 1;
  readonly pid: number;
  readonly startTicks: string;
  readonly row: RowName;
  readonly slot: number;
  readonly landlockAbi: number;
  readonly digest: string;
};

function isRowName(value: unknown): value is RowName {
  return ROW_NAMES.some((name) => name === value);
}

function isInteger(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}

function isAbsolute(value: unknown): value is string {
  return typeof value === 'string' && path.isAbsolute(value);
}

function fields(value: unknown): Record<string, unknown> {
  if (typeof value !== 'object' || value === null) throw new Error('expected an object');
  return Object.fromEntries(Object.entries(value));
}

function optional<T>(value: unknown, is: (value: unknown) => value is T): T | undefined {
  if (value === undefined) return undefined;
  if (is(value)) return value;
  throw new Error('an optional field has the wrong type');
}

const isText = (value: unknown): value is string => typeof value === 'string';

/** Reads a plan; throws for anything that is not exactly one. */
export function parsePlan(text: string): LaunchPlan {
  const plan = fields(JSON.parse(text));
  const { row, program, installation, parent, slot, forbiddenFolders, loopback } = plan;
  if (!isRowName(row) || (program !== 'role' && program !== 'probe')) throw new Error('row or program is unknown');
  if (!isAbsolute(installation) || !isInteger(parent) || !isInteger(slot))
    throw new Error('installation, parent or slot is wrong');
  if (typeof forbiddenFolders !== 'string' || typeof loopback !== 'boolean') throw new Error('a value is wrong');
  const connect = optional(plan.connect, isText);
  if (connect !== undefined && !/^[a-z-]+\.sock$/.test(connect)) throw new Error('the listener is no plain name');
  const user = plan.user === undefined ? undefined : fields(plan.user);
  if (user !== undefined && (!isInteger(user.uid) || !isInteger(user.gid))) throw new Error('uid or gid is wrong');
  return {
    row,
    program,
    installation,
    parent,
    slot,
    forbiddenFolders,
    loopback,
    connect,
    user:
      user !== undefined && isInteger(user.uid) && isInteger(user.gid) ? { uid: user.uid, gid: user.gid } : undefined,
    origin: optional(plan.origin, isText),
    records: optional(plan.records, isAbsolute),
  };
}
