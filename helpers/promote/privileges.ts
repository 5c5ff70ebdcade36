import { COMMON_FLAGS, COMMON_LIMITS, QUIET, type Confined } from '../runtime/privileges.ts';

/** INVARIANT 1: it changes the root only as an approval that it verified itself says, or an undo that the owner confirmed. INVARIANT 2: it uses no path that is not below a descriptor. */
export const promote: Confined = {
  row: 'promote',
  entry: 'helpers/promote/main.ts',
  purpose:
    'applies one approved draft to the root or takes one back, all or nothing, or recovers one that was cut short',
  lifetime: 'one piece of work',
  confined: true,
  user: { as: 'owner of the root folder', reason: 'what it creates belongs to the owner, with no capability' },
  descriptors: [
    ...QUIET,
    {
      number: 3,
      kind: 'channel',
      source: "daemon's listener",
      reason: 'one approval or undo, its progress and its outcome',
    },
    { number: 4, kind: 'folder', source: 'root folder', reason: 'what is changed' },
    { number: 5, kind: 'folder', source: 'state/drafts/SLOT', reason: 'the one approved draft' },
    {
      number: 6,
      kind: 'folder',
      source: 'state/promote',
      reason: 'journal, history, fence mark, used approvals; nobody else writes it',
    },
    {
      number: 7,
      kind: 'folder',
      source: "owner's folder",
      reason: "pin, root identity and the person's confirmations; written by cli alone",
    },
    {
      number: 8,
      kind: 'folder',
      source: 'configuration folder',
      reason: "the owner's policy as it stands when an approval is decided: a file opened before would miss an edit",
    },
  ],
  paths: [
    { subject: { of: 'descriptor', number: 4 }, rights: 'replace beneath', reason: 'what is changed' },
    { subject: { of: 'descriptor', number: 5 }, rights: 'read beneath', reason: 'the one approved draft' },
    { subject: { of: 'descriptor', number: 6 }, rights: 'write beneath', reason: 'journal and history' },
    { subject: { of: 'descriptor', number: 7 }, rights: 'read beneath', reason: 'what the person confirmed' },
    {
      subject: { of: 'descriptor', number: 8 },
      rights: 'read file',
      reason: "the owner's policy, by its name; the folder is not listed",
    },
    { subject: { of: 'installation', file: 'koffi.node' }, rights: 'read file', reason: 'native calls' },
    {
      subject: { of: 'path', path: '/proc/sys/kernel/random/boot_id', mayBeAbsent: false },
      rights: 'read file',
      reason: 'a journal of another boot is told from this one',
    },
  ],
  network: { reach: 'nothing', reason: 'approvals come over its channel' },
  environment: [
    { name: 'NESSIE_SLOT', value: { from: 'slot' }, reason: 'which draft this process was started for' },
    {
      name: 'NESSIE_FORBIDDEN_FOLDERS',
      value: { from: 'forbidden folders' },
      reason: 'device and inode of the folders that a root must not overlap',
    },
  ],
  limits: [...COMMON_LIMITS, { resource: 'openFiles', value: 1024, reason: 'one descriptor a level of a walk' }],
  nodeFlags: [...COMMON_FLAGS, '--jitless', '--max-semi-space-size=1', '--max-old-space-size=256'],
  systemCalls: {
    sockets: 'none',
    accept: false,
    metadata: 'by descriptor',
    reason: 'modes, times and attributes of staged files are set through their descriptor, never by path',
  },
  koffi: 'openat2, renameat2 with exchange, leases, O_TMPFILE publishing and shared blocks: Node has none of them',
  peers: [{ row: 'daemon', asks: 'the peer', reason: 'one promotion, undo or recovery' }],
};
