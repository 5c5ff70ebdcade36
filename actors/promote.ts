/*
 * The daemon's view of promote, which lives for one recovery and at most one apply.
 */
import type { Duplex } from 'node:stream';
import { promoteEvents, promoteRefusals, promoteRequests } from '../helpers/promote/protocol.ts';
import { HelperClient } from './helper-client.ts';
import type { HelperEvent } from './helper-client.ts';

const contract = { requests: promoteRequests, events: promoteEvents, refusals: promoteRefusals };

/** A connection to promote. */
export type PromoteClient = HelperClient<typeof contract>;

/** What promote tells unasked: how far it is. */
export type PromoteProgress = HelperEvent<typeof contract>;

/** Speaks to promote over a connected stream. */
export function connectPromote(connection: Duplex, tell: (progress: PromoteProgress) => void): PromoteClient {
  return new HelperClient(connection, contract, tell);
}
