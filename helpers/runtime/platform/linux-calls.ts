import type { SystemCalls } from '../privileges.ts';
import type { SyscallName } from '../syscall-numbers.ts';
import type { Condition, Rule, Verdict } from './seccomp.ts';

const AF_INET = 2n;
const AF_INET6 = 10n;
const CLONE_THREAD = 0x10000n;
const AT_EMPTY_PATH = 0x1000n;

function each(verdict: Verdict, reason: string, calls: readonly SyscallName[]): Rule[] {
  return calls.map((call) => ({ call, verdict, reason }));
}

const equal = (argument: Condition['argument'], value: bigint): Condition => ({ argument, is: 'equal', value });

/** Calls that no row ever makes on its own; whoever does is taken over, and ends. */
const KILLED: readonly Rule[] = [
  ...each('kill', 'looks into or steers another process', [
    'ptrace',
    'process_vm_readv',
    'process_vm_writev',
    'process_madvise',
    'pidfd_getfd',
    'kcmp',
  ]),
  ...each('kill', 'loads code into the kernel or observes it', [
    'bpf',
    'perf_event_open',
    'userfaultfd',
    'init_module',
    'finit_module',
    'create_module',
    'delete_module',
    'kexec_load',
    'kexec_file_load',
    'lookup_dcookie',
    'syslog',
    '_sysctl',
    'nfsservctl',
    'uselib',
  ]),
  ...each('kill', 'works on a ring, and no ring can be made', ['io_uring_enter', 'io_uring_register']),
  ...each('kill', 'changes what names mean', [
    'mount',
    'umount2',
    'pivot_root',
    'chroot',
    'setns',
    'unshare',
    'open_tree',
    'move_mount',
    'fsopen',
    'fsconfig',
    'fsmount',
    'fspick',
    'mount_setattr',
    'name_to_handle_at',
    'open_by_handle_at',
    'fanotify_init',
    'quotactl',
    'swapon',
    'swapoff',
    'acct',
  ]),
  ...each('kill', 'changes the machine', [
    'reboot',
    'sethostname',
    'setdomainname',
    'clock_settime',
    'settimeofday',
    'iopl',
    'ioperm',
    'modify_ldt',
  ]),
  ...each('kill', 'keeps or fetches keys of the kernel', ['add_key', 'request_key', 'keyctl']),
];

const IDENTITY: readonly SyscallName[] = [
  'setuid',
  'setgid',
  'setreuid',
  'setregid',
  'setresuid',
  'setresgid',
  'setfsuid',
  'setfsgid',
  'setgroups',
  'capset',
  'personality',
];

/** Metadata by path: Landlock does not cover it. */
const METADATA_BY_PATH: readonly SyscallName[] = [
  'chmod',
  'fchmodat',
  'fchmodat2',
  'chown',
  'lchown',
  'fchownat',
  'utime',
  'utimes',
  'futimesat',
  'setxattr',
  'lsetxattr',
  'removexattr',
  'lremovexattr',
  'setxattrat',
  'removexattrat',
  'file_setattr',
  'truncate',
  'mknod',
  'mknodat',
];
/** Metadata by descriptor: a descriptor open for reading is enough to change it. */
const METADATA_BY_DESCRIPTOR: readonly SyscallName[] = ['fchmod', 'fchown', 'fsetxattr', 'fremovexattr', 'utimensat'];
const SECOND_NAMES: readonly SyscallName[] = ['link', 'linkat', 'symlink', 'symlinkat'];
/** ioctl requests that set file flags or extended attributes of the file system (linux/fs.h). */
const FLAG_REQUESTS = [0x40086602n, 0x40046602n, 0x401c5820n];

function execution(descriptor: number): Rule[] {
  return [
    {
      call: 'execveat',
      when: [equal(0, BigInt(descriptor)), equal(4, AT_EMPTY_PATH)],
      verdict: 'allow',
      reason: 'launch starts the role by it; the descriptor is closed by that and its number cannot be opened again',
    },
    ...each('EPERM', 'no row starts a program', [
      'execve',
      'execveat',
      'fork',
      'vfork',
      'memfd_create',
      'memfd_secret',
    ]),
    {
      call: 'clone',
      when: [{ argument: 0, is: 'with bits', value: CLONE_THREAD }],
      verdict: 'allow',
      reason: 'threads of the row itself',
    },
    { call: 'clone', verdict: 'EPERM', reason: 'no row starts a process' },
    {
      call: 'clone3',
      verdict: 'ENOSYS',
      reason: 'its flags are out of sight of a filter; the C library falls back to clone',
    },
  ];
}

function sockets(calls: SystemCalls): Rule[] {
  const open: Rule[] = [];
  if (calls.sockets === 'internet') {
    open.push(
      { call: 'socket', when: [equal(0, AF_INET)], verdict: 'allow', reason: 'the origin and name servers' },
      { call: 'socket', when: [equal(0, AF_INET6)], verdict: 'allow', reason: 'the origin and name servers' },
    );
  }
  const connecting: readonly SyscallName[] =
    calls.sockets === 'internet' ? [] : ['connect', 'bind', 'sendmsg', 'sendmmsg', 'recvmsg', 'recvmmsg'];
  return [
    ...open,
    ...each('EACCES', 'peers are given at the start; no row makes another', ['socket', 'socketpair', ...connecting]),
    // a row that accepts also listens: Node does so again on an inherited listener, and no other socket is at hand
    ...(calls.accept ? [] : each('EACCES', 'no listener is inherited', ['listen', 'accept', 'accept4'])),
  ];
}

/** What could observe, slow, starve or outlive another process of the same uid. */
const OTHERS: readonly Rule[] = [
  { call: 'prlimit64', when: [equal(0, 0n)], verdict: 'allow', reason: 'limits of the row itself' },
  { call: 'prlimit64', verdict: 'EPERM', reason: 'limits of another process' },
  { call: 'prctl', when: [equal(0, 1n)], verdict: 'EPERM', reason: 'a row ends with its starter' },
  ...each('EPERM', 'a watch tells names and changes of whatever the uid may read, whatever Landlock says', [
    'inotify_init',
    'inotify_init1',
    'inotify_add_watch',
  ]),
  ...each('EPERM', 'a row schedules nobody', [
    'setpriority',
    'ioprio_set',
    'sched_setaffinity',
    'sched_setattr',
    'sched_setparam',
    'sched_setscheduler',
  ]),
];

function metadata(calls: SystemCalls): Rule[] {
  const reason = 'metadata of files is outside Landlock';
  const byPath = each('EPERM', reason, METADATA_BY_PATH);
  const flags = FLAG_REQUESTS.map((request): Rule => ({
    call: 'ioctl',
    when: [equal(1, request)],
    verdict: 'EPERM',
    reason,
  }));
  if (calls.metadata === 'none')
    return [...byPath, ...flags, ...each('EPERM', reason, [...METADATA_BY_DESCRIPTOR, ...SECOND_NAMES])];
  return [
    ...byPath,
    ...flags,
    { call: 'utimensat', when: [equal(1, 0n)], verdict: 'allow', reason: 'times of an open file' },
    { call: 'utimensat', verdict: 'EPERM', reason },
  ];
}

/** All seccomp rules of a row, in the order in which the kernel tries them. `execDescriptor` is N of design section 2 rule 3. */
export function seccompRules(calls: SystemCalls, execDescriptor: number): Rule[] {
  return [
    ...execution(execDescriptor),
    ...sockets(calls),
    ...metadata(calls),
    ...OTHERS,
    ...each('EPERM', 'a row keeps the identity that launch gave it', IDENTITY),
    ...each('EPERM', 'a row signals nobody', ['kill', 'tkill', 'pidfd_open', 'pidfd_send_signal']),
    ...each('EPERM', 'no memory is shared by name', ['shmget', 'msgget', 'semget', 'mq_open']),
    {
      call: 'io_uring_setup',
      verdict: 'ENOSYS',
      reason: 'a ring performs calls outside this filter; Node 22 and later ask for one at their start and do without',
    },
    ...KILLED,
  ];
}
