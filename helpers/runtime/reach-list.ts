import fs from 'node:fs';
import path from 'node:path';

import type { Attempt } from './attempts.ts';
import type { Configuration } from './configuration.ts';
import { execDescriptorOf } from './platform/linux.ts';
import type { Confined, RowName } from './privileges.ts';
import { slotName } from './slots.ts';
import { pathBehind } from './sources.ts';

/** One try of a twin, what must come of it, and what the auditor reads. */
export type Try = { readonly title: string; readonly attempt: Attempt; readonly expected: 'reached' | 'refused' };

/** What the tries aim at beside the executor's own folders: a TCP port, a UDP port and a Unix socket of `audit`, and its own process. */
export type Aims = {
  readonly configuration: Configuration;
  readonly tcpPort: number;
  readonly udpPort: number;
  readonly unixPath: string;
  readonly pid: number;
  readonly scratch: string;
};

type Folder = {
  readonly title: string;
  readonly at: string;
  readonly reachedAs: Partial<Readonly<Record<RowName, number>>>;
  /** Rows that may read a file of it by its name, and not list it. */
  readonly readAs?: Partial<Readonly<Record<RowName, number>>>;
};

/** Folders of the executor, and by which descriptor a row reaches one that is its own. */
function folders({ stateDir, configDir, root }: Configuration): Folder[] {
  const state = (name: string): string => path.join(stateDir, name);
  return [
    { title: "key-store's folder", at: state('key-store'), reachedAs: { 'key-store': 4 } },
    { title: "daemon's folder", at: state('daemon'), reachedAs: { daemon: 4 } },
    { title: 'the drafts', at: state('drafts'), reachedAs: { workspace: 5 } },
    { title: "promote's folder", at: state('promote'), reachedAs: { promote: 6 } },
    { title: 'the configuration folder', at: configDir, reachedAs: { daemon: 5 }, readAs: { promote: 8 } },
    { title: 'the root folder', at: root, reachedAs: { workspace: 4, promote: 4 } },
  ];
}

/** A file directly in a folder, so that a try has something to read; undefined where there is none. */
function someFile(folder: string): string | undefined {
  const entry = fs.readdirSync(folder, { withFileTypes: true }).find((found) => found.isFile());
  return entry === undefined ? undefined : path.join(folder, entry.name);
}

const expectedAt = (number: number | undefined): Try['expected'] => (number === undefined ? 'refused' : 'reached');

function folderTries(row: Confined, folder: Folder): Try[] {
  const listed = folder.reachedAs[row.row];
  const read = listed ?? folder.readAs?.[row.row];
  const at = read === undefined ? folder.at : `/proc/self/fd/${read}`;
  const listing: Attempt = { what: 'list a folder', path: at };
  const tries: Try[] = [{ title: `list ${folder.title}`, attempt: listing, expected: expectedAt(listed) }];
  const file = someFile(folder.at);
  if (file !== undefined) {
    const attempt: Attempt = { what: 'read a file', path: `${at}/${path.basename(file)}` };
    tries.push({ title: `read a file of ${folder.title}`, attempt, expected: expectedAt(read) });
  }
  return tries;
}

/** Changes of the root folder; through its descriptor for the two rows that have one. */
function rootTries(row: Confined, root: string): Try[] {
  const number = row.descriptors.find(({ source }) => source === 'root folder')?.number;
  const at = number === undefined ? root : `/proc/self/fd/${number}`;
  const file = someFile(root);
  const target = file === undefined ? at : `${at}/${path.basename(file)}`;
  const isPromote = row.row === 'promote';
  const changed = isPromote ? 'reached' : 'refused';
  const tries: Try[] = [
    { title: 'make a file in the root folder', attempt: { what: 'make an unnamed file', path: at }, expected: changed },
    {
      title: 'change a mode in the root folder by path',
      attempt: { what: 'set the mode it has', path: target },
      expected: 'refused',
    },
    {
      title: 'change times in the root folder by path',
      attempt: { what: 'set the times it has', path: target },
      expected: 'refused',
    },
    {
      title: 'change a mode in the root folder by descriptor',
      attempt: { what: 'set the mode by descriptor', path: target },
      expected: changed,
    },
  ];
  if (file === undefined) return tries;
  return [
    ...tries,
    {
      title: 'write a file of the root folder',
      attempt: { what: 'open a file for writing', path: target },
      expected: changed,
    },
  ];
}

/** The row's own folder that it may write, as a path inside the row. */
function ownFolder(row: Confined): string | undefined {
  const rule = row.paths.find(({ rights }) => rights === 'write beneath');
  return rule?.subject.of === 'descriptor' ? `/proc/self/fd/${rule.subject.number}` : undefined;
}

function execTries(row: Confined): Try[] {
  const number = execDescriptorOf(row);
  const program = '/bin/true';
  const folder = ownFolder(row);
  const tries: Attempt[] = [
    { what: 'start a child' },
    { what: 'execve a program', path: program, number },
    { what: 'execveat an absolute path', path: program, number },
    { what: 'execveat a memory file', number },
  ];
  if (folder !== undefined) tries.push({ what: 'execveat an own file', folder, number });
  return tries.map((attempt) => ({ title: attempt.what, attempt, expected: 'refused' }));
}

const refused = (title: string, attempt: Attempt): Try => ({ title, attempt, expected: 'refused' });

/** Ways out that lead through what a row has: an inherited folder and its own folder in /proc. */
function wayOutTries(row: Confined): Try[] {
  const folders = row.descriptors.filter(({ kind }) => kind === 'folder');
  return [
    refused('leave by its own root in /proc', { what: 'list a folder', path: '/proc/self/root/etc' }),
    ...folders.map(({ number, source }) =>
      refused(`leave ${source} by ..`, { what: 'list a folder', path: `/proc/self/fd/${number}/..` }),
    ),
  ];
}

/** A setting of the kernel as a number; 0 where the kernel lacks what it is about. */
function kernelSetting(at: string): number {
  try {
    return Number(fs.readFileSync(at, 'utf8'));
  } catch {
    return 0;
  }
}

/** Tries of what a kernel may lack, or have switched off: there nobody can, and a control would fail. */
function optionalTries({ tcpPort }: Aims): Try[] {
  const tries: Try[] = [];
  if (kernelSetting('/proc/sys/net/mptcp/enabled') === 1) {
    const attempt: Attempt = { what: 'connect by multipath TCP', port: tcpPort };
    tries.push(refused('connect by multipath TCP to another port', attempt));
  }
  if ((kernelSetting('/proc/sys/net/ipv4/tcp_fastopen') & 1) === 1) {
    const attempt: Attempt = { what: 'connect by a first send', port: tcpPort };
    tries.push(refused('connect by a first send to another port', attempt));
  }
  if (kernelSetting('/proc/sys/kernel/shmmni') > 0) {
    tries.push(refused('look at shared memory', { what: 'look at shared memory' }));
  }
  return tries;
}

/** Everything that a row's twin tries; execs come last, because a success would end the twin. */
export function triesOf(row: Confined, aims: Aims): Try[] {
  const { configuration, pid, tcpPort, udpPort, unixPath } = aims;
  const shadow =
    process.getuid?.() === 0 ? [refused('read /etc/shadow', { what: 'read a file', path: '/etc/shadow' })] : [];
  return [
    ...folders(configuration).flatMap((folder) => folderTries(row, folder)),
    ...rootTries(row, configuration.root),
    ...wayOutTries(row),
    ...shadow,
    refused('read /etc/passwd', { what: 'read a file', path: '/etc/passwd' }),
    refused("read another process's environment", { what: 'read a file', path: `/proc/${pid}/environ` }),
    refused("list another process's descriptors", { what: 'list a folder', path: `/proc/${pid}/fd` }),
    refused('watch the root folder', { what: 'watch a folder', path: configuration.root }),
    refused('connect over TCP to another port', { what: 'connect over TCP', port: tcpPort }),
    refused('listen on a network', { what: 'listen on a network' }),
    refused('bind a UDP port', { what: 'bind a UDP port' }),
    // no version of Landlock limits datagrams, and the resolver of the C library sends some: so link may, to any port
    {
      title: 'send a datagram to another port',
      attempt: { what: 'send a datagram', port: udpPort },
      expected: row.systemCalls.sockets === 'internet' ? 'reached' : 'refused',
    },
    refused('connect to a Unix socket', { what: 'connect to a Unix socket', path: unixPath }),
    refused('make a socket pair', { what: 'make a socket pair' }),
    refused('signal another process', { what: 'signal a process', pid }),
    refused("signal another process's thread", { what: 'signal a thread', pid }),
    refused('queue a signal to another process', { what: 'queue a signal', pid }),
    ...optionalTries(aims),
    ...execTries(row),
  ];
}

/** First Landlock ABI that has rules for ports (Linux 6.7). */
const PORTS_ABI = 4;

/** What must come of a try on a kernel: without port rules link reaches other ports, and its own connector is all that keeps it from them. */
export function expectedUnder(made: Try, row: Confined, landlockAbi: number | undefined): Try['expected'] {
  const isPort = made.attempt.what === 'connect over TCP' && row.systemCalls.sockets === 'internet';
  return isPort && landlockAbi !== undefined && landlockAbi < PORTS_ABI ? 'reached' : made.expected;
}

/** The same attempt for a process without confinement: descriptors of the row become the paths behind them. */
export function controlOf(attempt: Attempt, row: Confined, aims: Aims): Attempt {
  if (attempt.what === 'execveat an own file') return { ...attempt, folder: aims.scratch };
  if (!('path' in attempt)) return attempt;
  const match = /^\/proc\/self\/fd\/(\d+)/.exec(attempt.path);
  const source = row.descriptors.find(({ number }) => number === Number(match?.[1]))?.source;
  if (match === null || source === undefined) return attempt;
  const at = pathBehind(source, aims.configuration, slotName(0)) ?? '';
  return { ...attempt, path: at + attempt.path.slice(match[0].length) };
}
