import type { Unconfined } from '../runtime/privileges.ts';

/** INVARIANT 1: it is started by a person and by nothing else. INVARIANT 2: it acts on no byte that came from a network or a guest. */
export const cli: Unconfined = {
  row: 'cli',
  entry: 'daemon/cli/main.ts',
  purpose: "carries out one command of the machine's owner",
  lifetime: 'one command',
  confined: false,
  reason: "it is the owner's own hand: it writes the pin, the policy and the confirmations, and starts the supervisor",
  capabilities: [],
  peers: [{ row: 'daemon', asks: 'this row', reason: 'status, drafts, policy and stop, over the owner-only listener' }],
};
