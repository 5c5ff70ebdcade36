/*
 * One promote at a time: asked for by the slot of its draft, lent for one piece of work, and ended whatever came of it. A process
 * that was refused, or that came too late, is never spoken to again: it holds the draft of another promotion.
 */
import type { PromoteClient } from '../actors/promote.ts';
import type { PromotionId } from '../helpers/protocol/ids.ts';
import type { PromoteReply } from '../helpers/promote/protocol.ts';
import { PeerAbsent } from './peers.ts';
import type { Peer } from './peers.ts';

/** How long a promote that was asked for may take to connect, in ms. */
const START_MS = 3000;
/** While an earlier one is still ending the supervisor refuses another. */
const START_TRIES = 5;
/** No time limit ends an apply or a recovery between two steps; this bounds only a promote that no longer speaks at all. */
export const WORK_MS = 3_600_000;
/** Slot of recovery: an always empty draft folder. */
export const NO_DRAFT = 0;

/** What a promote settled before anything else was asked of it. */
export type Recovered = PromoteReply<'promote.recover'>;

/** Starts promote and ends it. */
export class Promoter {
  readonly #peer: Peer<PromoteClient>;
  readonly #start: (slot: number) => void;

  /** `start` asks the supervisor for a promote whose descriptor 5 is that draft. */
  constructor(peer: Peer<PromoteClient>, start: (slot: number) => void) {
    this.#peer = peer;
    this.#start = start;
  }

  /** The promote that is lent now, if it is connected. */
  get lent(): PromoteClient | undefined {
    return this.#peer.isConnected ? this.#peer.client : undefined;
  }

  /**
   * Starts a promote on a slot, lets it settle what an earlier one left and say which of `promotions` were committed, and lends it.
   * Rejects with PeerAbsent, and as HelperClient does.
   */
  async lend<Result>(
    slot: number,
    promotions: readonly PromotionId[],
    work: (client: PromoteClient, recovered: Recovered) => Promise<Result>,
  ): Promise<Result> {
    for (let asked = 1; asked <= START_TRIES; asked += 1) {
      const client = await this.#started(slot);
      if (!client) continue;
      try {
        const recovered = await client.request(
          'promote.recover',
          { promotions: [...promotions] },
          { withinMs: WORK_MS },
        );
        if (slot === NO_DRAFT || recovered.slot === slot) return await work(client, recovered);
      } finally {
        client.close();
      }
    }
    throw new PeerAbsent(this.#peer.row);
  }

  async #started(slot: number): Promise<PromoteClient | undefined> {
    if (this.#peer.isConnected) {
      const { client } = this.#peer;
      client.close();
      await client.ended;
    }
    this.#start(slot);
    // It did not come in time: it is asked for again, and ended should it still come.
    return this.#peer.connected(START_MS).catch(() => undefined);
  }
}
