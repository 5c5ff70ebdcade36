/*
 * The daemon's view of link: opaque bytes to and from the one origin. Nothing that arrives here is believed unless the pinned
 * key signed it.
 */
import type { Duplex } from 'node:stream';
import { linkEvents, linkRefusals, linkRequests } from '../helpers/link/protocol.ts';
import { HelperClient } from './helper-client.ts';
import type { HelperEvent } from './helper-client.ts';

const contract = { requests: linkRequests, events: linkEvents, refusals: linkRefusals };

/** A connection to link. */
export type LinkClient = HelperClient<typeof contract>;

/** What link tells unasked: bytes that arrived, or that the channel ended. */
export type LinkTold = HelperEvent<typeof contract>;

/** Speaks to link over a connected stream. */
export function connectLink(connection: Duplex, tell: (told: LinkTold) => void): LinkClient {
  return new HelperClient(connection, contract, tell);
}
