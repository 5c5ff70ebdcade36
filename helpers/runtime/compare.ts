import fs from 'node:fs';

import type { Configuration } from './configuration.ts';
import { inodeIn, limitOf, type DescriptorView, type SocketView, type ThreadView } from './kernel-view.ts';
import type { Confinement } from './platform/linux.ts';
import type { Confined, Descriptor, Unconfined } from './privileges.ts';
import { slotName } from './slots.ts';
import { pathBehind } from './sources.ts';
import { userOf } from './users.ts';

type Seen = {
  readonly pid: number;
  readonly threads: readonly ThreadView[];
  readonly descriptors: readonly DescriptorView[];
  readonly environment: readonly string[];
  readonly sockets: readonly SocketView[];
};

type Surroundings = {
  readonly slot: number;
  readonly arguments: readonly string[];
  readonly namespaces: ReadonlyMap<string, string>;
  readonly expectedNamespaces: ReadonlyMap<string, string>;
  readonly children: readonly number[];
};

/** `dev:ino` of a path, or undefined where nothing is. */
function identityOf(at: string): string | undefined {
  const stats = fs.statSync(at, { bigint: true, throwIfNoEntry: false });
  return stats === undefined ? undefined : `${stats.dev}:${stats.ino}`;
}

function threadDifferences(thread: ThreadView, uid: number, gid: number, isRoot: boolean): string[] {
  const { capabilities, uids, gids, groups, noNewPrivileges, seccompMode } = thread;
  const found: string[] = [];
  if (uids.some((value) => value !== uid)) found.push(`uid is ${uids.join(' ')}, expected ${uid}`);
  if (gids.some((value) => value !== gid)) found.push(`gid is ${gids.join(' ')}, expected ${gid}`);
  if (isRoot && groups.length > 0) found.push(`supplementary groups ${groups.join(' ')}`);
  for (const kind of ['inheritable', 'permitted', 'effective', 'ambient'] as const) {
    if (capabilities[kind] !== 0n) found.push(`${kind} capabilities 0x${capabilities[kind].toString(16)}`);
  }
  if (!noNewPrivileges) found.push('may gain privileges by an exec');
  if (seccompMode !== 2) found.push(`seccomp mode ${seccompMode}, expected 2`);
  return found.map((text) => `thread ${thread.thread}: ${text}`);
}

function isAsDeclared(
  declared: Descriptor,
  seen: DescriptorView,
  configuration: Configuration,
  sockets: readonly SocketView[],
  slot: string,
): boolean {
  const socket = sockets.find(({ inode }) => inode === inodeIn(seen.target));
  if (declared.kind === 'log') return true;
  if (declared.kind === 'null') return seen.kind === 'null';
  if (declared.kind === 'channel') return seen.kind === 'socket' && socket?.family === 'unix' && !socket.isListening;
  if (declared.kind === 'listener') return seen.kind === 'socket' && socket?.family === 'unix' && socket.isListening;
  const behind = pathBehind(declared.source, configuration, slot);
  return behind !== undefined && seen.identity === identityOf(behind);
}

/** Descriptors that a row may open by itself: Node's own, files below its folders or of its rules, sockets that it accepts or may make. */
function isOpenedByRow(
  row: Confined,
  seen: DescriptorView,
  all: readonly DescriptorView[],
  socket: SocketView | undefined,
  paths: readonly string[],
): boolean {
  if (seen.kind === 'internal' || seen.kind === 'null') return true;
  // it gives no right: whatever is opened through it is judged by the row's Landlock rules
  if (seen.kind === 'path only') return true;
  // a pipe of Node has both ends here; one end alone would lead to another process
  if (seen.kind === 'pipe') return all.filter(({ target }) => target === seen.target).length >= 2;
  if (seen.kind === 'socket') {
    if (socket === undefined || socket.isListening) return false;
    return socket.family === 'unix' ? row.systemCalls.accept : row.systemCalls.sockets === 'internet';
  }
  return paths.some((at) => seen.target === at || seen.target.startsWith(`${at}/`));
}

function descriptorDifferences(
  row: Confined,
  expected: Confinement,
  configuration: Configuration,
  seen: Seen,
  slot: string,
): string[] {
  const found: string[] = [];
  const folders = row.descriptors.flatMap(({ source }) => pathBehind(source, configuration, slot) ?? []);
  const ruled = expected.rules.flatMap(({ target }) =>
    'path' in target ? [target.path.replace('/proc/self', `/proc/${seen.pid}`)] : [],
  );
  const paths = [...folders.filter((at) => fs.existsSync(at)).map((at) => fs.realpathSync(at)), ...ruled];
  for (const declared of row.descriptors) {
    const there = seen.descriptors.find(({ number }) => number === declared.number);
    if (there === undefined) found.push(`descriptor ${declared.number} (${declared.source}) is missing`);
    else if (!isAsDeclared(declared, there, configuration, seen.sockets, slot)) {
      found.push(`descriptor ${declared.number} is a ${there.kind}, expected ${declared.source}`);
    }
  }
  for (const extra of seen.descriptors) {
    if (row.descriptors.some(({ number }) => number === extra.number)) continue;
    const socket = seen.sockets.find(({ inode }) => inode === inodeIn(extra.target));
    if (!isOpenedByRow(row, extra, seen.descriptors, socket, paths))
      found.push(`descriptor ${extra.number} is an undeclared ${extra.kind}`);
  }
  return found;
}

const LIMIT_LINES = {
  core: 'Max core file size',
  openFiles: 'Max open files',
  fileSize: 'Max file size',
  memoryLock: 'Max locked memory',
  messageQueue: 'Max msgqueue size',
} as const;

function listDifference(what: string, seen: readonly string[], expected: readonly string[]): string[] {
  const extra = seen.filter((name) => !expected.includes(name));
  const missing = expected.filter((name) => !seen.includes(name));
  return [
    ...extra.map((name) => `${what} ${name} is not declared`),
    ...missing.map((name) => `${what} ${name} is missing`),
  ];
}

/** Every way in which a running row is not as its declaration says; sentences without paths. */
export function compareProcess(
  row: Confined,
  expected: Confinement,
  configuration: Configuration,
  seen: Seen,
  around: Surroundings,
): string[] {
  const isRoot = process.getuid?.() === 0;
  const root = fs.openSync(configuration.root, 'r');
  const user = userOf(row, root) ?? { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 };
  fs.closeSync(root);
  const slot = slotName(around.slot);
  const namespaces = [...around.expectedNamespaces].filter(([kind, name]) => around.namespaces.get(kind) !== name);
  const limits = row.limits.filter(({ resource, value }) =>
    limitOf(seen.pid, LIMIT_LINES[resource]).some((text) => text !== String(value)),
  );
  return [
    ...seen.threads.flatMap((thread) => threadDifferences(thread, user.uid, user.gid, isRoot)),
    ...descriptorDifferences(row, expected, configuration, seen, slot),
    ...listDifference(
      'environment variable',
      seen.environment,
      expected.environment.map((entry) => entry.slice(0, entry.indexOf('='))),
    ),
    ...(around.arguments.join('\0') === expected.arguments.join('\0') ? [] : ['arguments are not the declared ones']),
    ...namespaces.map(([kind]) => `namespace ${kind} is not the supervisor's`),
    ...limits.map(({ resource }) => `limit ${resource} is not the declared one`),
    ...around.children.map(() => 'it has a child'),
    ...seen.sockets
      .filter(({ family, isListening }) => isListening && family !== 'unix')
      .map(() => 'it listens on a network'),
  ];
}

/** Ways in which the supervisor holds more than it declares: capabilities under root, listening sockets. */
export function compareSupervisor(declaration: Unconfined, seen: Seen): string[] {
  const mask = declaration.capabilities.reduce((bits, { bit }) => bits | (1n << BigInt(bit)), 0n);
  const wider = seen.threads.filter(({ capabilities }) => (capabilities.permitted & ~mask) !== 0n);
  return [
    ...wider.map(({ thread }) => `thread ${thread}: capabilities beyond the declared ones`),
    ...seen.sockets.filter(({ isListening }) => isListening).map(() => 'it listens'),
  ];
}
