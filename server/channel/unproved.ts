import type { WebSocket } from 'ws';

/** Most connections that may stand without a proof: of all addresses, and of one. */
const UNPROVED_LIMIT = 256;
const UNPROVED_OF_ADDRESS_LIMIT = 16;
/** A connection younger than this is not closed for the sake of another of its own address, in ms. */
const YOUNG_MS = 1000;

interface Waiting {
  readonly address: string;
  readonly since: number;
}

/**
 * Connections of machines that have not proved a key yet.
 *
 * THREAT: anybody who reaches this server opens connections and proves nothing, so that no machine finds room. One address holds a
 * few of them, and where all addresses together hold too many, the oldest makes room: a machine proves itself long before it is
 * the oldest (test/server/channel/unproved.test.ts).
 */
export class Unproved {
  readonly #waiting = new Map<WebSocket, Waiting>();

  /** Takes a new connection of an address at a time (ms), closing an older one where it must. False: this one has no room. */
  admit(socket: WebSocket, address: string, now: number): boolean {
    const own = [...this.#waiting].filter(([, waiting]) => waiting.address === address);
    const oldest = own[0];
    if (oldest && own.length >= UNPROVED_OF_ADDRESS_LIMIT) {
      if (now - oldest[1].since < YOUNG_MS) return false;
      this.#evict(oldest[0]);
    } else if (this.#waiting.size >= UNPROVED_LIMIT) {
      const [first] = this.#waiting.keys();
      if (first) this.#evict(first);
    }
    this.#waiting.set(socket, { address, since: now });
    socket.once('close', () => this.release(socket));
    return true;
  }

  /** The connection proved its key, or it is gone. */
  release(socket: WebSocket): void {
    this.#waiting.delete(socket);
  }

  #evict(socket: WebSocket): void {
    this.release(socket);
    // Whoever proves nothing also answers no closing handshake.
    socket.terminate();
  }
}
