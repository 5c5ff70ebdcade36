import { COMMON_FLAGS, COMMON_LIMITS, NO_ADDONS, QUIET, type Confined, type PathRule } from '../runtime/privileges.ts';

const resolverFile = (path: string): PathRule => ({
  subject: { of: 'path', path, mayBeAbsent: true },
  rights: 'read file',
  reason: 'the system resolver reads it',
});

/** INVARIANT 1: it reads nothing that is worth stealing and writes nothing. INVARIANT 2: over TCP it connects to no port but the origin's and a name server's. */
export const link: Confined = {
  row: 'link',
  entry: 'helpers/link/main.ts',
  purpose: 'carries opaque signed bytes between daemon and the one API origin',
  lifetime: 'long-lived',
  confined: true,
  user: { as: 'own uid', offset: 2, reason: 'a taken-over link owns no file and can signal nobody' },
  descriptors: [
    ...QUIET,
    { number: 3, kind: 'channel', source: "daemon's listener", reason: 'bytes up and down' },
    {
      number: 4,
      kind: 'file',
      source: 'CA file',
      reason: 'the one trust for the origin where the owner names one; the null device where not',
    },
  ],
  paths: [
    resolverFile('/etc/resolv.conf'),
    resolverFile('/etc/hosts'),
    resolverFile('/etc/nsswitch.conf'),
    resolverFile('/etc/host.conf'),
  ],
  network: {
    reach: 'the one origin',
    reason:
      "over TCP the origin's port, and port 53 for long answers of a name server; the address, and all of a datagram, is link's own check, not the kernel's",
  },
  environment: [
    {
      name: 'NESSIE_ORIGIN',
      value: { from: 'origin' },
      reason: 'the one origin, from the configuration, never from a request',
    },
    {
      name: 'NESSIE_ALLOW_LOOPBACK_HTTP',
      value: { from: 'loopback permission' },
      reason: "the owner's exception for plain HTTP on loopback",
    },
  ],
  limits: [
    ...COMMON_LIMITS,
    { resource: 'openFiles', value: 128, reason: 'one control channel, a few pairing calls, resolver sockets' },
    { resource: 'fileSize', value: 0, reason: 'it writes no file' },
  ],
  nodeFlags: [...COMMON_FLAGS, NO_ADDONS, '--max-semi-space-size=4', '--max-old-space-size=128'],
  systemCalls: {
    sockets: 'internet',
    accept: false,
    metadata: 'none',
    reason: 'streams to the origin and datagrams to name servers; no Unix socket, no port of its own, no listening',
  },
  koffi: undefined,
  peers: [{ row: 'daemon', asks: 'the peer', reason: 'what to send; what arrived is told by event' }],
};
