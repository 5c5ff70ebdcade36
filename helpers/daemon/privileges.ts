import { COMMON_FLAGS, COMMON_LIMITS, NO_ADDONS, QUIET, type Confined } from '../runtime/privileges.ts';

/** INVARIANT 1: no network, no exec, no workspace, no key, no folder of promote: what it believes was signed by the pinned key. */
export const daemon: Confined = {
  row: 'daemon',
  entry: 'daemon/main.ts',
  purpose: 'runs the state machines and keeps the ledger; asks every other role and is asked by the owner alone',
  lifetime: 'long-lived',
  confined: true,
  user: { as: 'own uid', offset: 1, reason: 'no other role can read the ledger or signal the daemon' },
  descriptors: [
    ...QUIET.slice(0, 2),
    {
      number: 2,
      kind: 'log',
      source: "supervisor's log",
      reason: "the executor's log; the daemon redacts what it writes",
    },
    {
      number: 3,
      kind: 'channel',
      source: 'socket pair with the supervisor',
      reason: 'asks for rows, is told exits; its end ends the daemon',
    },
    { number: 4, kind: 'folder', source: 'state/daemon', reason: 'ledger, records and snapshots' },
    { number: 5, kind: 'folder', source: 'configuration folder', reason: 'the policy, read again when it changes' },
    { number: 6, kind: 'listener', source: 'listener for link', reason: 'link reaches the daemon here' },
    { number: 7, kind: 'listener', source: 'listener for key-store', reason: 'key-store reaches the daemon here' },
    { number: 8, kind: 'listener', source: 'listener for workspace', reason: 'workspace reaches the daemon here' },
    { number: 9, kind: 'listener', source: 'listener for promote', reason: 'promote reaches the daemon here' },
    { number: 10, kind: 'listener', source: 'listener for cli', reason: "the owner's commands reach the daemon here" },
  ],
  paths: [
    { subject: { of: 'descriptor', number: 4 }, rights: 'write beneath', reason: 'ledger, records and snapshots' },
    {
      subject: { of: 'descriptor', number: 5 },
      rights: 'read beneath',
      reason: 'the policy; it is written by cli alone',
    },
    {
      subject: { of: 'path', path: '/proc/uptime', mayBeAbsent: false },
      rights: 'read file',
      reason: 'boot time, which counts suspend',
    },
    {
      subject: { of: 'path', path: '/proc/sys/kernel/random/boot_id', mayBeAbsent: false },
      rights: 'read file',
      reason: 'boot times of two boots are not compared',
    },
  ],
  network: { reach: 'nothing', reason: 'link alone has a network' },
  environment: [],
  limits: [
    ...COMMON_LIMITS,
    { resource: 'openFiles', value: 512, reason: 'its listeners, their connections and the files of its folder' },
  ],
  // A young generation of 1 MiB costs a command a third of its time in collections; pages that are not used are not resident.
  nodeFlags: [...COMMON_FLAGS, NO_ADDONS, '--max-semi-space-size=8', '--max-old-space-size=256'],
  systemCalls: {
    sockets: 'none',
    accept: true,
    metadata: 'none',
    reason: 'it accepts on inherited listeners and makes no socket of its own',
  },
  koffi: undefined,
  peers: [
    { row: 'supervisor', asks: 'this row', reason: 'start and end rows; exits come back' },
    { row: 'link', asks: 'this row', reason: 'carry bytes to and from the origin' },
    { row: 'key-store', asks: 'this row', reason: 'sign typed statements' },
    { row: 'workspace', asks: 'this row', reason: 'read the root, write drafts' },
    { row: 'promote', asks: 'this row', reason: 'apply one approved draft' },
    { row: 'cli', asks: 'the peer', reason: "the owner's commands" },
  ],
};
