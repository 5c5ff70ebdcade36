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
/** For an argument that the kernel takes as 32 bits. */
const word = (argument: Condition['argument'], value: bigint, mask = 0xffffffffn): Condition => ({
  argument,
  is: 'equal within',
  value,
  mask,
});
const withBits = (argument: Condition['argument'], value: bigint): Condition => ({ argument, is: 'with bits', value });

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
      when: [withBits(0, CLONE_THREAD)],
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

/** SOCK_NONBLOCK and SOCK_CLOEXEC are flags beside the type of a socket. */
const TYPE_MASK = 0xffffffffn & ~0x80800n;
const STREAM = 1n;
const DATAGRAM = 2n;
const [DEFAULT_PROTOCOL, TCP, UDP] = [0n, 6n, 17n];
const MSG_FASTOPEN = 0x20000000n;
const TCP_FASTOPEN_CONNECT = 30n;

/**
 * Sockets of the row that connects.
 * THREAT: Landlock's rules of ports hold for connect(2) on TCP alone. Multipath TCP (262), SMC (256) and SCTP are other
 * protocols to it, and a send with MSG_FASTOPEN connects without connect(2) (test/helpers/runtime/twins.test.ts).
 * Datagrams are limited by nothing: the C library's resolver needs them, the port stands in memory that no filter reads, and
 * a taken-over row may send some to any port and address. It cannot bind a port where others would look for it.
 */
function internet(): Rule[] {
  const kinds = [
    [STREAM, DEFAULT_PROTOCOL],
    [STREAM, TCP],
    [DATAGRAM, DEFAULT_PROTOCOL],
    [DATAGRAM, UDP],
  ] as const;
  const made = [AF_INET, AF_INET6].flatMap((family) =>
    kinds.map(([type, protocol]): Rule => ({
      call: 'socket',
      when: [word(0, family), word(1, type, TYPE_MASK), word(2, protocol)],
      verdict: 'allow',
      reason: 'TCP to the origin, UDP or TCP to name servers',
    })),
  );
  const reason = 'a send that connects is outside the rules of ports';
  return [
    ...made,
    { call: 'sendto', when: [withBits(3, MSG_FASTOPEN)], verdict: 'EACCES', reason },
    { call: 'sendmsg', when: [withBits(2, MSG_FASTOPEN)], verdict: 'EACCES', reason },
    { call: 'sendmmsg', when: [withBits(3, MSG_FASTOPEN)], verdict: 'EACCES', reason },
    { call: 'setsockopt', when: [word(1, TCP), word(2, TCP_FASTOPEN_CONNECT)], verdict: 'EACCES', reason },
  ];
}

function sockets(calls: SystemCalls): Rule[] {
  const open = calls.sockets === 'internet' ? internet() : [];
  const connecting: readonly SyscallName[] =
    calls.sockets === 'internet' ? [] : ['connect', 'sendmsg', 'sendmmsg', 'recvmsg', 'recvmmsg'];
  return [
    ...open,
    ...each('EACCES', 'peers are given at the start; no row makes another', ['socket', 'socketpair', ...connecting]),
    // who connects needs no port of its choice: neither Node nor a resolver binds before it connects
    ...each('EACCES', 'nobody is to look for a row at a port', ['bind']),
    // a row that accepts also listens: Node does so again on an inherited listener, and no other socket is at hand
    ...(calls.accept ? [] : each('EACCES', 'no listener is inherited', ['listen', 'accept', 'accept4'])),
  ];
}

/** What could observe, slow, starve or outlive another process of the same uid. */
const OTHERS: readonly Rule[] = [
  { call: 'prlimit64', when: [equal(0, 0n)], verdict: 'allow', reason: 'limits of the row itself' },
  { call: 'prlimit64', verdict: 'EPERM', reason: 'limits of another process' },
  { call: 'prctl', when: [word(0, 1n)], verdict: 'EPERM', reason: 'a row ends with its starter' },
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
    when: [word(1, request)],
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

/** Requests of fcntl(2) and ioctl(2) that name whom the kernel signals about a descriptor. */
const SET_OWNER = [
  ['fcntl', 8n],
  ['fcntl', 10n],
  ['fcntl', 15n],
  ['ioctl', 0x8901n],
  ['ioctl', 0x8902n],
] as const;

/** Signals to others, at any Landlock ABI: its scope keeps them from ABI 6 on only. */
function signals(pid: number): Rule[] {
  const reason = 'a row signals nobody';
  return [
    { call: 'tgkill', when: [word(0, BigInt(pid))], verdict: 'allow', reason: 'threads of the row itself, by its pid' },
    ...each('EPERM', reason, [
      'tgkill',
      'kill',
      'tkill',
      'rt_sigqueueinfo',
      'rt_tgsigqueueinfo',
      'pidfd_open',
      'pidfd_send_signal',
    ]),
    ...SET_OWNER.map(([call, request]): Rule => ({ call, when: [word(1, request)], verdict: 'EPERM', reason })),
  ];
}

/** Objects with a number or a name that every process of the same uid reaches. */
const SHARED_BY_NUMBER: readonly SyscallName[] = [
  'shmget',
  'shmat',
  'shmctl',
  'shmdt',
  'msgget',
  'msgsnd',
  'msgrcv',
  'msgctl',
  'semget',
  'semop',
  'semtimedop',
  'semctl',
  'mq_open',
  'mq_unlink',
];

/**
 * All seccomp rules of a row, in the order in which the kernel tries them. `execDescriptor` is N of design section 2 rule 3;
 * `pid` is that of launch, which the row keeps; 0, which no process has, stands for it in what is printed of no process.
 */
export function seccompRules(calls: SystemCalls, execDescriptor: number, pid = 0): Rule[] {
  return [
    ...execution(execDescriptor),
    ...sockets(calls),
    ...metadata(calls),
    ...OTHERS,
    ...each('EPERM', 'a row keeps the identity that launch gave it', IDENTITY),
    ...signals(pid),
    ...each('EPERM', 'no memory, queue or lock is shared by number or name', SHARED_BY_NUMBER),
    {
      call: 'io_uring_setup',
      verdict: 'ENOSYS',
      reason: 'a ring performs calls outside this filter; Node 22 and later ask for one at their start and do without',
    },
    ...KILLED,
  ];
}
