/* What the kernel tells of processes: /proc alone, read with Node's own calls (proc(5)). Nothing here asks a process. */
import fs from 'node:fs';

/** Credentials and confinement of one thread. */
export type ThreadView = {
  readonly thread: number;
  readonly uids: readonly number[];
  readonly gids: readonly number[];
  readonly groups: readonly number[];
  readonly capabilities: Readonly<Record<'inheritable' | 'permitted' | 'effective' | 'bounding' | 'ambient', bigint>>;
  readonly noNewPrivileges: boolean;
  readonly seccompMode: number;
};

/** What stands behind an open descriptor. */
export type DescriptorView = {
  readonly number: number;
  readonly target: string;
  readonly kind: 'null' | 'folder' | 'file' | 'socket' | 'pipe' | 'internal' | 'device' | 'path only';
  /** `dev:ino` of what is open. */
  readonly identity: string;
};

/** A socket that a process holds. */
export type SocketView = {
  readonly inode: string;
  readonly family: 'unix' | 'tcp' | 'udp' | 'other';
  readonly isListening: boolean;
};

function fieldsOf(status: string): (name: string) => string {
  const fields = new Map<string, string>();
  for (const line of status.split('\n')) {
    const colon = line.indexOf(':');
    if (colon > 0) fields.set(line.slice(0, colon), line.slice(colon + 1).trim());
  }
  return (name) => {
    const value = fields.get(name);
    if (value === undefined) throw new Error(`the kernel does not tell ${name}`);
    return value;
  };
}

const numbers = (text: string): number[] => (text === '' ? [] : text.split(/\s+/).map(Number));

/** Reads one `/proc/PID/task/TID/status`. */
export function parseThread(status: string): ThreadView {
  const field = fieldsOf(status);
  const set = (name: string): bigint => BigInt(`0x${field(name)}`);
  return {
    thread: Number(field('Pid')),
    uids: numbers(field('Uid')),
    gids: numbers(field('Gid')),
    groups: numbers(field('Groups')),
    capabilities: {
      inheritable: set('CapInh'),
      permitted: set('CapPrm'),
      effective: set('CapEff'),
      bounding: set('CapBnd'),
      ambient: set('CapAmb'),
    },
    noNewPrivileges: field('NoNewPrivs') === '1',
    seccompMode: Number(field('Seccomp')),
  };
}

/** A file or folder that may vanish while it is read, because its process or thread ends. */
function ifThere<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code === 'ENOENT' || code === 'ESRCH') return undefined;
    throw error;
  }
}

/** Every thread of a process. */
export function threadsOf(pid: number): ThreadView[] {
  return fs.readdirSync(`/proc/${pid}/task`).flatMap((thread) => {
    const status = ifThere(() => fs.readFileSync(`/proc/${pid}/task/${thread}/status`, 'utf8'));
    return status === undefined ? [] : [parseThread(status)];
  });
}

/** Processes that any thread of a process started. */
export function childrenOf(pid: number): number[] {
  return fs
    .readdirSync(`/proc/${pid}/task`)
    .flatMap((thread) =>
      numbers(ifThere(() => fs.readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8'))?.trim() ?? ''),
    );
}

/** Start time of a process in clock ticks since boot, or undefined when it has ended: with the pid it names one process. */
export function startTicksOf(pid: number): string | undefined {
  const status = ifThere(() => fs.readFileSync(`/proc/${pid}/stat`, 'latin1'));
  return status?.slice(status.lastIndexOf(')') + 2).split(' ')[19];
}

/** O_PATH in `flags` of `/proc/PID/fdinfo/N`, which is octal: such a descriptor can be asked what it is, and no more. */
const PATH_ONLY = 0o10000000;

function kindOf(target: string, stats: fs.BigIntStats, information: string): DescriptorView['kind'] {
  const flags = Number.parseInt(/^flags:\s*(\d+)/m.exec(information)?.[1] ?? '0', 8);
  if ((flags & PATH_ONLY) !== 0) return 'path only';
  if (target === '/dev/null') return 'null';
  if (target.startsWith('socket:')) return 'socket';
  if (target.startsWith('pipe:')) return 'pipe';
  if (target.startsWith('anon_inode:')) return 'internal';
  if (stats.isDirectory()) return 'folder';
  return stats.isFile() ? 'file' : 'device';
}

/** Every open descriptor of a process. */
export function descriptorsOf(pid: number): DescriptorView[] {
  return fs.readdirSync(`/proc/${pid}/fd`).flatMap((name) => {
    const at = `/proc/${pid}/fd/${name}`;
    const found = ifThere(() => ({
      target: fs.readlinkSync(at),
      stats: fs.statSync(at, { bigint: true }),
      information: fs.readFileSync(`/proc/${pid}/fdinfo/${name}`, 'utf8'),
    }));
    if (found === undefined) return [];
    const { target, stats, information } = found;
    return [
      { number: Number(name), target, kind: kindOf(target, stats, information), identity: `${stats.dev}:${stats.ino}` },
    ];
  });
}

/** Names of the environment that a process was started with. */
export function environmentOf(pid: number): string[] {
  const entries = fs
    .readFileSync(`/proc/${pid}/environ`, 'utf8')
    .split('\0')
    .filter((entry) => entry !== '');
  return entries.map((entry) => entry.slice(0, entry.indexOf('=')));
}

/** Arguments that a process was started with. */
export function argumentsOf(pid: number): string[] {
  return fs.readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').slice(0, -1);
}

/** Namespaces of a process by kind, as `net:[inode]`. */
export function namespacesOf(pid: number): ReadonlyMap<string, string> {
  const kinds = ['cgroup', 'ipc', 'mnt', 'net', 'pid', 'time', 'user', 'uts'];
  return new Map(kinds.map((kind) => [kind, fs.readlinkSync(`/proc/${pid}/ns/${kind}`)] as const));
}

/** Soft and hard value of one line of `/proc/PID/limits`, as text. */
export function limitOf(pid: number, line: string): readonly string[] {
  const found = fs
    .readFileSync(`/proc/${pid}/limits`, 'utf8')
    .split('\n')
    .find((text) => text.startsWith(line));
  return found?.slice(line.length).trim().split(/\s+/).slice(0, 2) ?? [];
}

const TCP_LISTEN = '0A';
const UNIX_LISTENS = 0x10000;

/** Sockets of a process's network namespace by inode. */
export function socketsSeenBy(pid: number): ReadonlyMap<string, SocketView> {
  const sockets = new Map<string, SocketView>();
  const rows = (table: string): string[][] => {
    const text = ifThere(() => fs.readFileSync(`/proc/${pid}/net/${table}`, 'utf8')) ?? '';
    return text
      .split('\n')
      .slice(1)
      .map((line) => line.trim().split(/\s+/));
  };
  for (const family of ['tcp', 'udp'] as const) {
    for (const row of [...rows(family), ...rows(`${family}6`)]) {
      const inode = row[9];
      if (inode !== undefined)
        sockets.set(inode, { inode, family, isListening: family === 'tcp' && row[3] === TCP_LISTEN });
    }
  }
  for (const row of rows('unix')) {
    const [inode, flags] = [row[6], row[3]];
    if (inode === undefined || flags === undefined) continue;
    sockets.set(inode, { inode, family: 'unix', isListening: (Number.parseInt(flags, 16) & UNIX_LISTENS) !== 0 });
  }
  return sockets;
}

/** Inode number inside `socket:[N]` or `pipe:[N]`. */
export function inodeIn(target: string): string {
  return /\[(\d+)\]/.exec(target)?.[1] ?? '';
}

/** The process that holds the exclusive flock of a file, or undefined (proc_locks(5)). */
export function lockHolder(file: string): number | undefined {
  const inode = ifThere(() => fs.statSync(file).ino);
  const line = fs
    .readFileSync('/proc/locks', 'utf8')
    .split('\n')
    .find((text) => {
      const fields = text.trim().split(/\s+/);
      return fields[1] === 'FLOCK' && fields[3] === 'WRITE' && fields[5]?.endsWith(`:${inode}`) === true;
    });
  const pid = Number(line?.trim().split(/\s+/)[4]);
  return Number.isInteger(pid) && pid > 0 ? pid : undefined;
}
