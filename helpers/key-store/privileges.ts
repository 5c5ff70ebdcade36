import { COMMON_FLAGS, COMMON_LIMITS, NO_ADDONS, QUIET, type Confined } from '../runtime/privileges.ts';

/** INVARIANT 1: a private key is in this process and in its folder, and nowhere else. INVARIANT 2: it signs no bytes that it did not build. */
export const keyStore: Confined = {
  row: 'key-store',
  entry: 'helpers/key-store/main.ts',
  purpose: 'keeps one key pair and signs typed statements of a closed list',
  lifetime: 'long-lived',
  confined: true,
  user: { as: 'own uid', offset: 3, reason: 'no other role can open the key' },
  descriptors: [
    ...QUIET,
    { number: 3, kind: 'channel', source: "daemon's listener", reason: 'statements to sign' },
    { number: 4, kind: 'folder', source: 'state/key-store', reason: 'key, next key and guards' },
  ],
  paths: [{ subject: { of: 'descriptor', number: 4 }, rights: 'write beneath', reason: 'key, next key and guards' }],
  network: { reach: 'nothing', reason: 'a key never leaves' },
  environment: [],
  limits: [
    ...COMMON_LIMITS,
    { resource: 'openFiles', value: 64, reason: 'one channel and the files of its folder' },
    { resource: 'fileSize', value: 1_048_576, reason: 'keys and guards are small' },
  ],
  nodeFlags: [...COMMON_FLAGS, NO_ADDONS, '--jitless', '--max-semi-space-size=1', '--max-old-space-size=64'],
  systemCalls: { sockets: 'none', accept: false, metadata: 'none', reason: 'one inherited channel' },
  koffi: undefined,
  peers: [
    { row: 'daemon', asks: 'the peer', reason: 'the only peer on a machine' },
    {
      row: 'server',
      asks: 'the peer',
      reason: "the same program keeps the control plane's command key, in a process of its own",
    },
  ],
};
