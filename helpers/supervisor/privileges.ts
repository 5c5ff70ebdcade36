import type { Unconfined } from '../runtime/privileges.ts';

/** INVARIANT 1: it reads no message of the network, the guest or an agent; 32 bytes from `daemon` are all that orders it. */
export const supervisor: Unconfined = {
  row: 'supervisor',
  entry: 'helpers/supervisor/main.ts',
  purpose: 'makes the channels, opens the declared descriptors, starts, watches and ends every other row',
  lifetime: 'long-lived',
  confined: false,
  reason:
    'it starts everything, and nothing confined can start something wider: it holds the union of all rights by necessity',
  capabilities: [
    { name: 'CAP_CHOWN', bit: 0, reason: "gives each row's folders to the row's uid" },
    { name: 'CAP_DAC_READ_SEARCH', bit: 2, reason: 'opens the root folder, whose parents only its owner may walk' },
    { name: 'CAP_KILL', bit: 5, reason: 'ends rows of other uids, by signal and by the parent-death signal' },
    { name: 'CAP_SETGID', bit: 6, reason: "takes a row's gid in launch" },
    { name: 'CAP_SETUID', bit: 7, reason: "takes a row's uid in launch" },
  ],
  peers: [
    {
      row: 'daemon',
      asks: 'the peer',
      reason: 'start or end a row by number, 32 bytes; answers and exits go back in the same form',
    },
  ],
};
