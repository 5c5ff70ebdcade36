/*
 * Helpers reach the daemon on inherited listeners, one for each kind, so the listener names the peer. A helper that restarts
 * connects again; there is one connection of a kind at a time.
 */
import net from 'node:net';
import type { Socket } from 'node:net';
import { HelperViolation } from '../actors/helper-client.ts';

/** No helper of that kind is connected now. */
export class PeerAbsent extends Error {
  override readonly name = 'PeerAbsent';
  readonly row: string;

  constructor(row: string) {
    super(`${row} is not connected`);
    this.row = row;
  }
}

/** What a peer must know of a client: that it ends, and how to end it. */
interface Ending {
  readonly isEnded: boolean;
  readonly ended: Promise<Error>;
  close(): void;
}

interface Waiting<Client> {
  readonly resolve: (client: Client) => void;
  readonly timer: NodeJS.Timeout;
}

/** One kind of helper and its connection of the moment. */
export class Peer<Client extends Ending> {
  readonly row: string;
  readonly #connect: (socket: Socket) => Client;
  readonly #violated: (row: string) => void;
  readonly #waiting = new Set<Waiting<Client>>();
  readonly #server: net.Server;
  #client: Client | undefined;
  #connections = 0;

  /** `violated` is called when the helper broke the protocol; the daemon then accepts nothing. */
  constructor(row: string, connect: (socket: Socket) => Client, violated: (row: string) => void) {
    this.row = row;
    this.#connect = connect;
    this.#violated = violated;
    this.#server = net.createServer((socket) => this.#accept(socket));
  }

  /** Serves the inherited listener. */
  listen(descriptor: number): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen({ fd: descriptor }, () => resolve());
    });
  }

  /** The connected helper. Throws PeerAbsent. */
  get client(): Client {
    const live = this.#live;
    if (!live) throw new PeerAbsent(this.row);
    return live;
  }

  get isConnected(): boolean {
    return this.#live !== undefined;
  }

  /** The client of the moment, unless it has ended already: whoever hears of an end asks for the next one before the socket is closed. */
  get #live(): Client | undefined {
    return this.#client?.isEnded === false ? this.#client : undefined;
  }

  /** Times that a helper of this kind came again. */
  get restarts(): number {
    return Math.max(0, this.#connections - 1);
  }

  /** Waits for a connection. Rejects with PeerAbsent after `withinMs`. */
  connected(withinMs: number): Promise<Client> {
    const live = this.#live;
    if (live) return Promise.resolve(live);
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#waiting.delete(waiting);
        reject(new PeerAbsent(this.row));
      }, withinMs);
      const waiting: Waiting<Client> = { resolve, timer };
      this.#waiting.add(waiting);
    });
  }

  /** Stops accepting and ends the connection: the helper ends with it. */
  close(): void {
    this.#server.close();
    this.#client?.close();
  }

  #accept(socket: Socket): void {
    if (this.#live) {
      // THREAT: a second connection beside a live helper is nobody that the supervisor started.
      socket.destroy();
      return;
    }
    socket.setNoDelay(true);
    const client = this.#connect(socket);
    this.#client = client;
    this.#connections += 1;
    void client.ended.then((end) => {
      if (this.#client === client) this.#client = undefined;
      if (end instanceof HelperViolation) this.#violated(this.row);
    });
    for (const waiting of this.#waiting) {
      clearTimeout(waiting.timer);
      waiting.resolve(client);
    }
    this.#waiting.clear();
  }
}
