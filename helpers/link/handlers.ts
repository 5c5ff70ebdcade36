/*
 * What each request does. An origin that is not permitted refuses every request, so that the asker can tell its owner.
 */
import { caller } from './call.ts';
import type { Call } from './call.ts';
import { openChannel } from './channel.ts';
import type { Channel } from './channel.ts';
import { connector } from './connector.ts';
import type { Connect } from './connector.ts';
import { OriginRefused, readOrigin } from '../protocol/origin.ts';
import type { Origin } from '../protocol/origin.ts';
import type { Served } from '../runtime/serve.ts';
import { linkEvents, linkRefusals, linkRequests } from './protocol.ts';
import type { LinkBody, LinkEventBody, LinkReply, LinkRequest } from './protocol.ts';
import { LinkRefused, linkRefusedBecause } from './refused.ts';

/** One function for each request of protocol.ts; rejects with LinkRefused. */
export type LinkHandlers = {
  readonly [Type in LinkRequest]: (body: LinkBody<Type>) => Promise<LinkReply<Type>>;
};

/** Facts that the launch fixes; no request changes them. */
export interface LinkFacts {
  readonly origin: string;
  /** NESSIE_ALLOW_LOOPBACK_HTTP is 1. */
  readonly loopbackHttp: boolean;
  /** PEM of the only trusted authorities, undefined for the ones that Node ships. */
  readonly authorities: string | undefined;
}

/** What link answers and tells. */
export const linkContract = { requests: linkRequests, events: linkEvents, refusals: linkRefusals };

/** Tells the asker one event. */
export type Tell = Served<typeof linkContract, string>['tell'];

interface Ready {
  readonly origin: Origin;
  readonly connect: Connect;
  readonly call: Call;
}

/** Prepares what answers; nothing is resolved or connected before the first request. */
export function openLink(facts: LinkFacts, tell: Tell): LinkHandlers {
  const ready = prepare(facts);
  const slot = new ChannelSlot(tell);
  const orRefused = (): Ready => {
    if (ready instanceof LinkRefused) throw ready;
    return ready;
  };
  return {
    'link.call': async ({ call, bytes }) => orRefused().call(call, bytes),
    'link.open': async () => ({ connection: await slot.open(orRefused()) }),
    'link.send': async ({ connection, bytes }) => {
      await slot.channelOf(connection).send(bytes);
      return {};
    },
    'link.close': async ({ connection }) => {
      slot.close(connection);
      return {};
    },
  };
}

function prepare({ origin: text, loopbackHttp, authorities }: LinkFacts): Ready | LinkRefused {
  try {
    const origin = readOrigin(text, loopbackHttp);
    const connect = connector({ origin, authorities });
    return { origin, connect, call: caller(origin, connect) };
  } catch (error) {
    if (error instanceof LinkRefused || error instanceof OriginRefused) return linkRefusedBecause(error);
    throw error;
  }
}

/** The one channel: its number, and whether it is being opened, open or gone. */
class ChannelSlot {
  readonly #tell: Tell;
  #connection = 0;
  #isOpening = false;
  #channel: Channel | undefined;

  constructor(tell: Tell) {
    this.#tell = tell;
  }

  async open({ origin, connect }: Ready): Promise<number> {
    if (this.#isOpening || this.#channel) throw new LinkRefused('CHANNEL_OPEN', 'one channel is open already');
    this.#isOpening = true;
    const connection = this.#connection + 1;
    let isTold = false;
    let isOver = false;
    try {
      const channel = await openChannel(origin, connect, {
        message: (bytes) => this.#tell('link.message', { connection, bytes }),
        closed: (reason) => {
          isOver = true;
          if (isTold) this.#ended(connection, reason);
        },
      });
      if (isOver) throw new LinkRefused('CHANNEL_CLOSED', 'the channel closed as soon as it was open');
      isTold = true;
      this.#connection = connection;
      this.#channel = channel;
      return connection;
    } finally {
      this.#isOpening = false;
    }
  }

  channelOf(connection: number): Channel {
    if (!this.#channel || connection !== this.#connection)
      throw new LinkRefused('CHANNEL_CLOSED', 'this channel is closed');
    return this.#channel;
  }

  close(connection: number): void {
    if (connection !== this.#connection) return;
    this.#channel?.close();
    this.#channel = undefined;
  }

  #ended(connection: number, reason: LinkEventBody<'link.closed'>['reason']): void {
    this.#channel = undefined;
    this.#tell('link.closed', { connection, reason });
  }
}
