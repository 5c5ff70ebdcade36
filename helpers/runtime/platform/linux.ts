/*
 * From a declaration to what the Linux kernel is told: Landlock rules, seccomp program, environment, limits, arguments.
 * Pure: no file is opened and nothing is asked of the machine, so the same input gives the same bytes on any platform.
 */
import { createHash } from 'node:crypto';

import { LANDLOCK_RIGHTS, type LandlockRight } from '../landlock-rights.ts';
import {
  COMMON_ENVIRONMENT,
  COMMON_PATHS,
  type Confined,
  type EnvironmentEntry,
  type Limit,
  type PathRights,
  type PathRule,
} from '../privileges.ts';
import type { Architecture } from '../syscall-numbers.ts';
import { seccompRules } from './linux-calls.ts';
import { assemble, ruleLines } from './seccomp.ts';

/** Oldest Landlock ABI under which a role starts (Linux 6.2). */
export const LANDLOCK_FLOOR = 3;

/** Paths that depend on the machine and the installation; all absolute. */
export type Places = {
  readonly node: string;
  readonly loader: string | undefined;
  readonly libraries: readonly string[];
  readonly ownBundle: string;
  readonly koffi: string;
  readonly worker: string;
};

/** Values that depend on the owner's configuration; `origin` is undefined where the row has none. */
export type Values = {
  readonly origin: string | undefined;
  readonly loopback: boolean;
  readonly slot: number;
  readonly forbiddenFolders: string;
};

/** What a declaration is rendered for. */
export type Circumstances = {
  readonly architecture: Architecture;
  readonly landlockAbi: number;
  /** Pid of launch, which the row keeps. */
  readonly pid: number;
  readonly places: Places;
  readonly values: Values;
};

/** One Landlock rule: rights below a path or an inherited descriptor. */
export type LandlockRule = {
  readonly target: { readonly path: string; readonly mayBeAbsent: boolean } | { readonly descriptor: number };
  readonly names: readonly LandlockRight[];
  readonly rights: bigint;
};

/** All that launch applies, ready for the kernel. */
export type Confinement = {
  readonly handledFiles: bigint;
  readonly handledNetwork: bigint;
  readonly scoped: bigint;
  readonly rules: readonly LandlockRule[];
  readonly connectPorts: readonly number[];
  readonly seccomp: Buffer;
  readonly environment: readonly string[];
  readonly limits: readonly Limit[];
  readonly arguments: readonly string[];
  readonly descriptors: readonly number[];
  /** N of design section 2 rule 3: hard RLIMIT_NOFILE and the number that the program is started from. */
  readonly execDescriptor: number;
  /** The same as lines that a person can read; the digest is over them. */
  readonly lines: readonly string[];
  /** SHA-256 of the lines, hexadecimal. */
  readonly digest: string;
};

const RIGHTS: Readonly<Record<PathRights, readonly LandlockRight[]>> = {
  execute: ['EXECUTE', 'READ_FILE'],
  'read file': ['READ_FILE'],
  'read and write file': ['READ_FILE', 'WRITE_FILE'],
  'read beneath': ['READ_FILE', 'READ_DIR'],
  'write beneath': [
    'READ_FILE',
    'READ_DIR',
    'WRITE_FILE',
    'TRUNCATE',
    'MAKE_REG',
    'MAKE_DIR',
    'REMOVE_FILE',
    'REMOVE_DIR',
    'REFER',
  ],
  'replace beneath': [
    'READ_FILE',
    'READ_DIR',
    'WRITE_FILE',
    'TRUNCATE',
    'MAKE_REG',
    'MAKE_DIR',
    'MAKE_SYM',
    'REMOVE_FILE',
    'REMOVE_DIR',
    'REFER',
  ],
};

const at = (path: string): LandlockRule['target'] => ({ path, mayBeAbsent: false });

function targetsOf(rule: PathRule, places: Places): LandlockRule['target'][] {
  const { subject } = rule;
  if (subject.of === 'path') return [{ path: subject.path, mayBeAbsent: subject.mayBeAbsent }];
  if (subject.of === 'descriptor') return [{ descriptor: subject.number }];
  if (subject.of === 'own process') return [at('/proc/self')];
  if (subject.of === 'installation') {
    const { ownBundle, koffi, worker } = places;
    return [at({ 'own bundle': ownBundle, 'koffi.node': koffi, 'workspace-worker.mjs': worker }[subject.file])];
  }
  if (subject.part === 'node') return [at(places.node)];
  if (subject.part === 'loader') return places.loader === undefined ? [] : [at(places.loader)];
  return places.libraries.map(at);
}

/** The Landlock rules of a declaration, common paths first, in the order of the declaration. */
function landlockRules(row: Confined, places: Places): LandlockRule[] {
  return [...COMMON_PATHS, ...row.paths].flatMap((rule) => {
    const names = RIGHTS[rule.rights];
    const rights = names.reduce((bits, name) => bits | LANDLOCK_RIGHTS[name].bit, 0n);
    return targetsOf(rule, places).map((target) => ({ target, names, rights }));
  });
}

function handledFiles(abi: number): bigint {
  return Object.values(LANDLOCK_RIGHTS)
    .filter((right) => right.since <= abi)
    .reduce((bits, right) => bits | right.bit, 0n);
}

function valueOf(entry: EnvironmentEntry, values: Values): string | undefined {
  if (typeof entry.value === 'string') return entry.value;
  if (entry.value.from === 'origin') return values.origin;
  if (entry.value.from === 'loopback permission') return values.loopback ? '1' : '';
  return entry.value.from === 'slot' ? String(values.slot) : values.forbiddenFolders;
}

function environment(row: Confined, values: Values): string[] {
  return [...COMMON_ENVIRONMENT, ...row.environment].flatMap((entry) => {
    const value = valueOf(entry, values);
    return value === undefined ? [] : [`${entry.name}=${value}`];
  });
}

/** Port of an origin such as `https://host:8443`; throws TypeError for what is no URL. */
function portOf(origin: string): number {
  const url = new URL(origin);
  if (url.port !== '') return Number(url.port);
  return url.protocol === 'https:' ? 443 : 80;
}

const NAME_SERVER_PORT = 53;

/** The number of open files a row may have; every confined row declares it. */
export function execDescriptorOf(row: Confined): number {
  const limit = row.limits.find(({ resource }) => resource === 'openFiles');
  if (limit === undefined) throw new Error(`${row.row} declares no limit of open files`);
  return limit.value;
}

function ruleLine({ target, names }: LandlockRule): string {
  const what = 'path' in target ? target.path : `descriptor ${target.descriptor}`;
  return `landlock ${what}: ${names.join(' ')}`;
}

/** Renders a declaration; throws where a declaration is incomplete. */
export function render(row: Confined, circumstances: Circumstances): Confinement {
  const { architecture, landlockAbi: abi, places, values } = circumstances;
  const execDescriptor = execDescriptorOf(row);
  const rules = landlockRules(row, places);
  const ports =
    row.network.reach === 'the one origin' && values.origin !== undefined
      ? [portOf(values.origin), NAME_SERVER_PORT]
      : [];
  const calls = seccompRules(row.systemCalls, execDescriptor, circumstances.pid);
  const rendered = {
    handledFiles: handledFiles(abi),
    handledNetwork: abi >= 4 ? 3n : 0n,
    scoped: abi >= 6 ? 3n : 0n,
    rules,
    connectPorts: abi >= 4 ? ports : [],
    environment: environment(row, values),
    limits: row.limits,
    arguments: ['node', ...row.nodeFlags, places.ownBundle],
    descriptors: row.descriptors.map(({ number }) => number),
    execDescriptor,
  };
  const lines = [
    `row ${row.row} on ${architecture}, Landlock ABI ${abi}`,
    `landlock handles files 0x${rendered.handledFiles.toString(16)}, network 0x${rendered.handledNetwork.toString(16)}, scope 0x${rendered.scoped.toString(16)}`,
    ...rules.map(ruleLine),
    ...rendered.connectPorts.map((port) => `landlock connect to port ${port}`),
    ...ruleLines(calls).map((line) => `seccomp ${line}`),
    ...row.limits.map(({ resource, value }) => `limit ${resource} ${value}`),
    ...rendered.environment.map((line) => `environment ${line}`),
    ...row.descriptors.map(({ number, kind, source }) => `descriptor ${number}: ${kind}, ${source}`),
    `arguments ${rendered.arguments.join(' ')}`,
  ];
  const digest = createHash('sha256').update(lines.join('\n')).digest('hex');
  return { ...rendered, seccomp: assemble(architecture, calls), lines, digest };
}
