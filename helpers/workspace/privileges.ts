import { COMMON_FLAGS, COMMON_LIMITS, QUIET, type Confined } from '../runtime/privileges.ts';

/** INVARIANT 1: nothing it does changes the root, not even a mode, a time or an attribute. INVARIANT 2: it writes below drafts alone. */
export const workspace: Confined = {
  row: 'workspace',
  entry: 'helpers/workspace/main.ts',
  purpose: 'reads below the root and writes drafts',
  lifetime: 'long-lived',
  confined: true,
  user: { as: 'owner of the root folder', reason: 'it reads what the owner can read, with no capability' },
  descriptors: [
    ...QUIET,
    { number: 3, kind: 'channel', source: "daemon's listener", reason: 'operations to run' },
    { number: 4, kind: 'folder', source: 'root folder', reason: 'what agents read' },
    { number: 5, kind: 'folder', source: 'state/drafts', reason: 'what agents write' },
  ],
  paths: [
    { subject: { of: 'descriptor', number: 4 }, rights: 'read beneath', reason: 'what agents read' },
    { subject: { of: 'descriptor', number: 5 }, rights: 'write beneath', reason: 'what agents write' },
    {
      subject: { of: 'installation', file: 'workspace-worker.mjs' },
      rights: 'read file',
      reason: 'its pool hashes, compares and searches off the main loop',
    },
    { subject: { of: 'installation', file: 'koffi.node' }, rights: 'read file', reason: 'native calls' },
  ],
  network: { reach: 'nothing', reason: 'what it reads stays on the machine until daemon has bounded it' },
  environment: [
    {
      name: 'NESSIE_FORBIDDEN_FOLDERS',
      value: { from: 'forbidden folders' },
      reason: 'device and inode of the folders that a root must not overlap',
    },
  ],
  limits: [
    ...COMMON_LIMITS,
    { resource: 'openFiles', value: 1024, reason: 'deep walks hold one descriptor a level' },
    { resource: 'fileSize', value: 4_294_967_296, reason: 'a draft file is at most 4 GiB' },
  ],
  nodeFlags: [...COMMON_FLAGS, '--max-semi-space-size=4', '--max-old-space-size=256'],
  systemCalls: {
    sockets: 'none',
    accept: false,
    metadata: 'none',
    reason: 'Landlock does not cover metadata: mode, owner, time, attributes and links are refused by number',
  },
  koffi: 'openat2 with BENEATH and NO_SYMLINKS: Node has no walk that cannot leave the root',
  peers: [{ row: 'daemon', asks: 'the peer', reason: 'operations of a verified run' }],
};
