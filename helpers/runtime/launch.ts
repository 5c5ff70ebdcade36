/*
 * launch: becomes a row. It is started by the supervisor (a row), the owner's command (a twin) or the control plane (its
 * key-store), reads one plan from descriptor 0, takes the declaration from the table, gives up everything that is not
 * declared, and execs the program. Design section 2 rule 3 gives the order; each step that fails has its own exit code.
 */
import fs from 'node:fs';
import path from 'node:path';

import { TABLE } from '../table.ts';
import { circumstancesOf, twinOf } from './circumstances.ts';
import { RIGHTS_OF_FILES } from './landlock-rights.ts';
import { parsePlan, type LaunchPlan, type LaunchRecord } from './launch-plan.ts';
import { LAUNCH_STEPS, type LaunchStep } from './launch-steps.ts';
import { O_PATH, openat2, AT_FDCWD } from './native-files.ts';
import { duplicate, replaceDescriptor, setClosedOnExec } from './native-locks.ts';
import * as native from './native-process.ts';
import { connectTo, unixSocket } from './native-sockets.ts';
import { LANDLOCK_FLOOR, render, type Confinement, type LandlockRule } from './platform/linux.ts';

const SIGKILL = 9;
const LAST_DESCRIPTOR = 0x7fffffff;

/** Runs one step; a failure ends the process with the step's code. Only the errno is told: a path would be the owner's. */
function step<T>(name: LaunchStep, run: () => T): T {
  try {
    return run();
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'refused';
    fs.writeSync(2, `launch stopped at ${name} (${code}): ${LAUNCH_STEPS[name].meaning}\n`);
    return process.exit(LAUNCH_STEPS[name].code);
  }
}

function refuseRing(): void {
  // THREAT: CVE-2024-22017, a ring keeps the identity that the process had before it gave it up
  const ring = process.env.UV_USE_IO_URING;
  if (ring !== undefined && ring !== '0') throw new Error('ring');
}

function landlockAbi(): number {
  fs.closeSync(openat2(AT_FDCWD, Buffer.from('/'), { flags: O_PATH, resolve: 0 }));
  const abi = native.landlockAbi();
  if (abi < LANDLOCK_FLOOR) throw new Error('Landlock');
  return abi;
}

function confinementOf(plan: LaunchPlan, abi: number): Confinement {
  const row = TABLE[plan.row];
  if (!row.confined) throw new Error('the row is not confined');
  return render(plan.program === 'probe' ? twinOf(row) : row, circumstancesOf(plan, abi, process.pid));
}

/** THREAT: a descriptor that the starter forgot could be one of Node's own by now; each must be of its declared kind. */
function checkDescriptors(plan: LaunchPlan): void {
  const row = TABLE[plan.row];
  for (const { number, kind } of row.confined ? row.descriptors : []) {
    if (kind === 'null' || kind === 'log') continue;
    const status = fs.fstatSync(number);
    const isSocket = kind === 'listener' || (kind === 'channel' && plan.connect === undefined);
    if (isSocket ? !status.isSocket() : kind === 'file' ? status.isDirectory() : !status.isDirectory()) {
      throw new Error(`${number} is no ${kind}`);
    }
  }
}

type OpenRule = { readonly descriptor: number; readonly rights: bigint };

function openRule(rule: LandlockRule): OpenRule[] {
  const { target } = rule;
  if ('descriptor' in target) return [{ descriptor: target.descriptor, rights: rule.rights }];
  try {
    return [{ descriptor: fs.openSync(target.path, O_PATH), rights: rule.rights }];
  } catch (error) {
    if (target.mayBeAbsent && error instanceof Error && 'code' in error && error.code === 'ENOENT') return [];
    throw error;
  }
}

function ruleset(confinement: Confinement, rules: readonly OpenRule[]): number {
  const attributes = Buffer.alloc(24);
  attributes.writeBigUInt64LE(confinement.handledFiles, 0);
  attributes.writeBigUInt64LE(confinement.handledNetwork, 8);
  attributes.writeBigUInt64LE(confinement.scoped, 16);
  // an older kernel refuses bytes that it does not know, even when they are zero at its smaller size only
  const size = confinement.scoped !== 0n ? 24 : confinement.handledNetwork !== 0n ? 16 : 8;
  const made = native.createRuleset(attributes.subarray(0, size));
  for (const { descriptor, rights } of rules) {
    const isFolder = fs.fstatSync(descriptor).isDirectory();
    native.allowBeneath(made, isFolder ? rights : rights & RIGHTS_OF_FILES, descriptor);
  }
  for (const port of confinement.connectPorts) native.allowConnect(made, port);
  return made;
}

/** The channel stands at 3, the quiet descriptors on the null device; everything else that is not declared is closed by the exec. */
function placeDescriptors(plan: LaunchPlan, confinement: Confinement, channel: number | undefined): void {
  if (channel !== undefined) replaceDescriptor(channel, 3);
  const nothing = fs.openSync('/dev/null', 'r+');
  const row = TABLE[plan.row];
  const declared = row.confined ? row.descriptors : [];
  for (const { number, kind } of declared) if (kind === 'null') replaceDescriptor(nothing, number);
  let next = 0;
  for (const number of confinement.descriptors.toSorted((one, other) => one - other)) {
    native.closeRangeOnExec(next, number - 1);
    setClosedOnExec(number, false);
    next = number + 1;
  }
  native.closeRangeOnExec(next, LAST_DESCRIPTOR);
}

function writeRecord(record: number | undefined, plan: LaunchPlan, abi: number, confinement: Confinement): void {
  if (record === undefined) return;
  const status = fs.readFileSync('/proc/self/stat', 'latin1');
  // the second field is a name that may hold spaces and parentheses: the last ")" ends it
  const startTicks = status.slice(status.lastIndexOf(')') + 2).split(' ')[19] ?? '';
  const { row, slot } = plan;
  const content: LaunchRecord = {
    version: 1,
    pid: process.pid,
    startTicks,
    row,
    slot,
    landlockAbi: abi,
    digest: confinement.digest,
  };
  fs.writeSync(record, JSON.stringify(content));
}

function takeUser(plan: LaunchPlan): void {
  if (plan.user !== undefined) native.becomeUser(plan.user.uid, plan.user.gid);
  native.setCapabilities(0n);
}

function bindToParent(plan: LaunchPlan): void {
  // a change of uid clears the signal, so it comes after; the check covers a parent that ended before it
  native.setParentDeathSignal(SIGKILL);
  if (process.ppid !== plan.parent) throw new Error('the parent ended');
}

function setLimits(confinement: Confinement): void {
  for (const { resource, value } of confinement.limits) native.setLimit(resource, value, value);
}

function launch(): void {
  const plan = step('plan', () => parsePlan(fs.readFileSync(0, 'utf8')));
  step('environment', refuseRing);
  process.umask(0o077);
  const abi = step('kernel', landlockAbi);
  const confinement = step('plan', () => confinementOf(plan, abi));
  step('descriptors', () => checkDescriptors(plan));
  const rules = step('paths', () => confinement.rules.flatMap(openRule));
  const channel = step('connect', () => {
    if (plan.connect === undefined) return undefined;
    const socket = unixSocket();
    connectTo(socket, `/proc/self/fd/3/${plan.connect}`);
    return socket;
  });
  const { records } = plan;
  const record = step('record', () =>
    records === undefined ? undefined : fs.openSync(path.join(records, `${process.pid}.json`), 'wx', 0o600),
  );
  const program = step('descriptors', () => {
    const node = fs.openSync(process.execPath, O_PATH);
    const placed = duplicate(node, confinement.execDescriptor, true);
    if (placed !== confinement.execDescriptor) throw new Error('its number is taken');
    return placed;
  });
  const made = step('landlock', () => ruleset(confinement, rules));
  step('descriptors', () => placeDescriptors(plan, confinement, channel));
  step('record', () => writeRecord(record, plan, abi, confinement));
  step('limits', () => setLimits(confinement));
  step('user', () => takeUser(plan));
  step('parent', () => bindToParent(plan));
  step('landlock', () => {
    native.setNoNewPrivileges();
    native.restrictSelf(made);
  });
  step('seccomp', () => native.installFilter(confinement.seccomp));
  step('exec', () => native.execDescriptor(program, confinement.arguments, confinement.environment));
}

launch();
