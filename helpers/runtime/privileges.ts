/*
 * What a declaration of privileges is. `helpers/<row>/privileges.ts` is one constant of this type; `helpers/table.ts` lists
 * them; `runtime/launch` applies them; `audit` compares them with the kernel's view; `helpers/PROCESSES.md` prints them.
 *
 * INVARIANT 1  What is not listed is not granted: an empty list grants nothing.
 * INVARIANT 2  Every entry has a reason that a reader can judge without the code.
 * INVARIANT 3  A declaration is data: the same constant gives the same rules on every start.
 */

/** Rows of the table in the order of their numbers; a new row goes to the end. */
export const ROW_NAMES = ['supervisor', 'cli', 'daemon', 'link', 'key-store', 'workspace', 'promote'] as const;
/** A program of the table. */
export type RowName = (typeof ROW_NAMES)[number];

/** Whose uid a row takes when the executor runs as root; as an ordinary user every row keeps that user's uid. */
export type UserPolicy =
  | { readonly as: 'invoker'; readonly reason: string }
  | { readonly as: 'own uid'; readonly offset: number; readonly reason: string }
  | { readonly as: 'owner of the root folder'; readonly reason: string };

/** What stands behind a descriptor when the row starts. */
export type DescriptorKind = 'null' | 'log' | 'channel' | 'folder' | 'listener' | 'file';

/** Where the supervisor takes a descriptor from. */
export type DescriptorSource =
  | 'null device'
  | "supervisor's log"
  | "daemon's listener"
  | 'socket pair with the supervisor'
  | 'listener for link'
  | 'listener for key-store'
  | 'listener for workspace'
  | 'listener for promote'
  | 'listener for cli'
  | 'state/daemon'
  | 'state/key-store'
  | 'state/drafts'
  | 'state/drafts/SLOT'
  | 'state/promote'
  | 'configuration folder'
  | "owner's folder"
  | 'root folder'
  | 'CA file';

/** One descriptor that the row is born with. */
export type Descriptor = {
  readonly number: number;
  readonly kind: DescriptorKind;
  readonly source: DescriptorSource;
  readonly reason: string;
};

/** Named sets of Landlock rights; `platform/linux.ts` lists the rights of each. */
export type PathRights =
  | 'execute'
  | 'read file'
  | 'read and write file'
  | 'read beneath'
  | 'write beneath'
  | 'replace beneath';

/** What a path rule is about: a fixed path, an inherited folder, a file of the installation, what this node loads, or the process's own /proc folder. */
export type PathSubject =
  | { readonly of: 'path'; readonly path: string; readonly mayBeAbsent: boolean }
  | { readonly of: 'descriptor'; readonly number: number }
  | { readonly of: 'installation'; readonly file: InstalledFile }
  | { readonly of: 'program'; readonly part: 'node' | 'loader' | 'libraries' }
  | { readonly of: 'own process' };

/** Files of the installation that a role reads after its start. */
export type InstalledFile = 'own bundle' | 'koffi.node' | 'workspace-worker.mjs';

/** One path that the row may use. */
export type PathRule = { readonly subject: PathSubject; readonly rights: PathRights; readonly reason: string };

/** What the row may do with a network. */
export type Network =
  | { readonly reach: 'nothing'; readonly reason: string }
  | { readonly reach: 'the one origin'; readonly reason: string }
  | { readonly reach: 'unconfined'; readonly reason: string };

/** One environment variable; `value` is fixed, or filled in from the owner's configuration. */
export type EnvironmentEntry = {
  readonly name: string;
  readonly value: string | { readonly from: 'origin' | 'loopback permission' | 'slot' | 'forbidden folders' };
  readonly reason: string;
};

/** One limit, set soft and hard alike; bytes or a count. */
export type Limit = {
  readonly resource: 'core' | 'openFiles' | 'fileSize' | 'memoryLock' | 'messageQueue';
  readonly value: number;
  readonly reason: string;
};

/** What the row's seccomp program leaves open beyond the common list of `platform/linux.ts`. */
export type SystemCalls = {
  readonly sockets: 'none' | 'internet';
  readonly accept: boolean;
  readonly metadata: 'none' | 'by descriptor';
  readonly reason: string;
};

/** A peer of the row and which of the two asks. */
export type Peer = {
  readonly row: RowName | 'server';
  readonly asks: 'this row' | 'the peer' | 'both';
  readonly reason: string;
};

/** How long a row lives: with the executor and restarted, or for one piece of work and never restarted. */
export type Lifetime = 'long-lived' | 'one piece of work' | 'one command';

type Common = {
  readonly row: RowName;
  /** Source file of the program, from the top of the tree. */
  readonly entry: string;
  /** One sentence for the auditor. */
  readonly purpose: string;
  readonly lifetime: Lifetime;
  readonly peers: readonly Peer[];
};

/** A row that runs with its starter's rights, and why that cannot be otherwise. */
export type Unconfined = Common & {
  readonly confined: false;
  readonly reason: string;
  readonly capabilities: readonly { readonly name: string; readonly bit: number; readonly reason: string }[];
};

/** A row that is confined before its first own line. */
export type Confined = Common & {
  readonly confined: true;
  readonly user: UserPolicy;
  readonly descriptors: readonly Descriptor[];
  readonly paths: readonly PathRule[];
  readonly network: Network;
  readonly environment: readonly EnvironmentEntry[];
  readonly limits: readonly Limit[];
  readonly nodeFlags: readonly string[];
  readonly systemCalls: SystemCalls;
  /** Why the program may load koffi, or undefined where it may not. */
  readonly koffi: string | undefined;
};

/** A declaration of one row. */
export type Privileges = Unconfined | Confined;

/** First uid and gid of the range that rows take under root; a row's own uid is this plus its offset. */
export const UID_BASE = 64_100;

/** Path rules of every confined row: without them Node does not start, or a row cannot see itself. */
export const COMMON_PATHS: readonly PathRule[] = [
  { subject: { of: 'program', part: 'node' }, rights: 'execute', reason: 'the program that the row is' },
  {
    subject: { of: 'program', part: 'loader' },
    rights: 'execute',
    reason: 'the kernel starts the program through its loader',
  },
  {
    subject: { of: 'program', part: 'libraries' },
    rights: 'read file',
    reason: 'shared libraries that the program is linked with',
  },
  { subject: { of: 'installation', file: 'own bundle' }, rights: 'read file', reason: "the row's own code" },
  {
    subject: { of: 'path', path: '/etc/ld.so.cache', mayBeAbsent: true },
    rights: 'read file',
    reason: 'where the loader finds libraries',
  },
  {
    subject: { of: 'path', path: '/dev/null', mayBeAbsent: false },
    rights: 'read and write file',
    reason: 'Node aborts at its start without it',
  },
  {
    subject: { of: 'own process' },
    rights: 'read beneath',
    reason: 'the row checks its own confinement and memory use',
  },
];

/** Environment of every confined row. */
export const COMMON_ENVIRONMENT: readonly EnvironmentEntry[] = [
  { name: 'UV_THREADPOOL_SIZE', value: '2', reason: 'fewer threads at rest' },
  { name: 'UV_USE_IO_URING', value: '0', reason: 'no ring that performs calls outside the filter' },
  {
    name: 'MSGPACKR_NATIVE_ACCELERATION_DISABLED',
    value: 'true',
    reason: 'one codec on every machine, no second native library',
  },
  { name: 'MALLOC_ARENA_MAX', value: '1', reason: 'less memory at rest' },
  {
    name: 'OPENSSL_CONF',
    value: '/dev/null',
    reason:
      'no provider or setting from a file of the machine; Node ends at its start when it may not read the default one',
  },
  { name: 'LANG', value: 'C.UTF-8', reason: 'no behaviour from the locale of the starter' },
];

/** Limits of every confined row; the count of open files is the row's own. */
export const COMMON_LIMITS: readonly Limit[] = [
  { resource: 'core', value: 0, reason: 'no memory image of a crashed row reaches a disk' },
  { resource: 'messageQueue', value: 0, reason: 'no message queue is used' },
];

/** Flags of node that every confined row runs with. */
export const COMMON_FLAGS: readonly string[] = [
  '--disallow-code-generation-from-strings',
  '--disable-proto=delete',
  '--v8-pool-size=0',
  '--no-warnings',
];

/** Flag of every row without native calls: a file that it wrote itself is not loaded as code of the machine. */
export const NO_ADDONS = '--no-addons';

/** Descriptors 0 to 2 of every confined row but the one that keeps the log. */
export const QUIET: readonly Descriptor[] = [
  { number: 0, kind: 'null', source: 'null device', reason: 'no input but frames' },
  { number: 1, kind: 'null', source: 'null device', reason: 'no output but frames' },
  { number: 2, kind: 'null', source: 'null device', reason: 'what a row prints is never in a log' },
];
