import { addressOf, NativeError, syscall, terminated } from './libc.ts';

/** Commands of prctl(2) that the project uses. */
const PR = {
  SET_PDEATHSIG: 1,
  CAPBSET_DROP: 24,
  SET_NO_NEW_PRIVS: 38,
  CAP_AMBIENT: 47,
} as const;
const CAP_AMBIENT_CLEAR_ALL = 4;
/** Highest capability number that is dropped from the bounding set; the kernel answers EINVAL above its own last one. */
const LAST_CAPABILITY = 63;

/** Asks for a signal when the parent thread ends; a change of uid or an exec with other rights clears it (prctl(2)). */
export function setParentDeathSignal(signal: number): void {
  syscall('prctl', PR.SET_PDEATHSIG, signal, 0, 0, 0);
}

/** No later exec of this thread gains rights; cannot be undone. */
export function setNoNewPrivileges(): void {
  syscall('prctl', PR.SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

/** Empties the ambient set and drops every capability outside `kept` from the bounding set; needs CAP_SETPCAP. */
export function dropCapabilityBounds(kept: bigint): void {
  syscall('prctl', PR.CAP_AMBIENT, CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  for (let capability = 0; capability <= LAST_CAPABILITY; capability += 1) {
    if ((kept & (1n << BigInt(capability))) !== 0n) continue;
    try {
      syscall('prctl', PR.CAPBSET_DROP, capability, 0, 0, 0);
    } catch (error) {
      // prctl(2): EINVAL is the answer to the first number above the kernel's last capability
      if (error instanceof NativeError && error.code === 'EINVAL') return;
      throw error;
    }
  }
}

const CAPABILITY_VERSION_3 = 0x20080522;

/** Sets the effective and permitted capabilities of this thread to the given bits; the inheritable set is emptied. */
export function setCapabilities(bits: bigint): void {
  const header = Buffer.alloc(8);
  header.writeUInt32LE(CAPABILITY_VERSION_3, 0);
  const data = Buffer.alloc(24);
  data.writeUInt32LE(Number(bits & 0xffffffffn), 0);
  data.writeUInt32LE(Number(bits & 0xffffffffn), 4);
  data.writeUInt32LE(Number(bits >> 32n), 12);
  data.writeUInt32LE(Number(bits >> 32n), 16);
  syscall('capset', header, data);
}

/** Takes a uid and gid for good in this thread: no supplementary groups, real, effective and saved ids alike. Needs root. */
export function becomeUser(uid: number, gid: number): void {
  syscall('setgroups', 0, null);
  syscall('setresgid', gid, gid, gid);
  syscall('setresuid', uid, uid, uid);
}

/** Resource numbers of setrlimit(2), alike on x64 and arm64. */
export const RESOURCE = {
  fileSize: 1,
  core: 4,
  processes: 6,
  openFiles: 7,
  memoryLock: 8,
  addressSpace: 9,
  messageQueue: 12,
} as const;
/** A resource that a declaration may limit. */
export type Resource = keyof typeof RESOURCE;

/** Sets soft and hard limit of a resource of this process. */
export function setLimit(resource: Resource, soft: number, hard: number): void {
  const bytes = Buffer.alloc(16);
  bytes.writeBigUInt64LE(BigInt(soft), 0);
  bytes.writeBigUInt64LE(BigInt(hard), 8);
  syscall('prlimit64', 0, RESOURCE[resource], bytes, null);
}

const CLOSE_RANGE_CLOEXEC = 4;

/** Marks every descriptor from `first` to `last`, both included, so that the next exec closes it. */
export function closeRangeOnExec(first: number, last: number): void {
  if (first <= last) syscall('close_range', first, last, CLOSE_RANGE_CLOEXEC);
}

/** Null-ended tables of texts for an exec, and the memory that must stay reachable until the call. */
class ExecTexts {
  readonly #kept: Buffer[] = [];

  pointers(texts: readonly string[]): Buffer {
    const table = Buffer.alloc(8 * (texts.length + 1));
    for (const [index, text] of texts.entries()) {
      const bytes = terminated('execveat', Buffer.from(text));
      this.#kept.push(bytes);
      table.writeBigUInt64LE(addressOf(bytes), 8 * index);
    }
    return table;
  }

  /** Reached only when an exec returned without an error, which it never does. */
  fail(): never {
    throw new Error(`an exec of ${this.#kept.length} texts returned`);
  }
}

const AT_EMPTY_PATH = 0x1000;

/** Replaces this process by the program open at `descriptor`; returns only by throwing NativeError. Close-on-exec of the descriptor holds. */
export function execDescriptor(descriptor: number, argv: readonly string[], environment: readonly string[]): never {
  const texts = new ExecTexts();
  const [words, variables] = [texts.pointers(argv), texts.pointers(environment)];
  syscall('execveat', descriptor, Buffer.from('\0'), words, variables, AT_EMPTY_PATH);
  return texts.fail();
}

/** Replaces this process by the program at an absolute path, by execve or, with a descriptor, by execveat as a row's filter permits it; the probe's attempt. */
export function execPath(descriptor: number | undefined, path: string): never {
  const texts = new ExecTexts();
  const file = Buffer.from(`${path}\0`);
  const [words, variables] = [texts.pointers([path]), texts.pointers([])];
  if (descriptor === undefined) syscall('execve', file, words, variables);
  else syscall('execveat', descriptor, file, words, variables, AT_EMPTY_PATH);
  return texts.fail();
}

/** The kernel's Landlock ABI; throws NativeError ENOSYS or EOPNOTSUPP where Landlock is absent or off. */
export function landlockAbi(): number {
  return syscall('landlock_create_ruleset', null, 0, 1);
}

/** Makes a ruleset from `struct landlock_ruleset_attr` bytes and returns its descriptor. */
export function createRuleset(attributes: Buffer): number {
  return syscall('landlock_create_ruleset', attributes, attributes.length, 0);
}

/** Grants rights below an open file or directory. */
export function allowBeneath(ruleset: number, rights: bigint, descriptor: number): void {
  const bytes = Buffer.alloc(12);
  bytes.writeBigUInt64LE(rights, 0);
  bytes.writeInt32LE(descriptor, 8);
  syscall('landlock_add_rule', ruleset, 1, bytes, 0);
}

/** Grants TCP connect to one port; needs ABI 4. */
export function allowConnect(ruleset: number, port: number): void {
  const bytes = Buffer.alloc(16);
  bytes.writeBigUInt64LE(2n, 0);
  bytes.writeBigUInt64LE(BigInt(port), 8);
  syscall('landlock_add_rule', ruleset, 2, bytes, 0);
}

/** Confines this thread, and what it execs, to a ruleset; cannot be undone. */
export function restrictSelf(ruleset: number): void {
  syscall('landlock_restrict_self', ruleset, 0);
}

const SECCOMP_SET_MODE_FILTER = 1;
const SECCOMP_FILTER_FLAG_TSYNC = 1;

/** Installs a BPF program (array of 8-byte `struct sock_filter`) on all threads; cannot be undone. */
export function installFilter(program: Buffer): void {
  const head = Buffer.alloc(16);
  head.writeUInt16LE(program.length / 8, 0);
  head.writeBigUInt64LE(addressOf(program), 8);
  syscall('seccomp', SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, head);
}

/** Makes an anonymous file; the boundary probe tries to run it. */
export function memfdCreate(name: string): number {
  return syscall('memfd_create', terminated('memfd_create', Buffer.from(name)), 0);
}

const SI_QUEUE = -1;

/** Queues signal 0, which is checked and never delivered, to a process; the probe's attempt. */
export function queueNoSignal(pid: number): void {
  const info = Buffer.alloc(128);
  info.writeInt32LE(SI_QUEUE, 8);
  syscall('rt_sigqueueinfo', pid, 0, info);
}

const SHM_INFO = 14;

/** Asks how much shared memory there is; the probe's attempt. */
export function lookAtSharedMemory(): void {
  syscall('shmctl', 0, SHM_INFO, Buffer.alloc(256));
}
