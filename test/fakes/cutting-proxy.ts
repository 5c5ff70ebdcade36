/*
 * A TCP proxy in front of a control plane that loses what a network can lose: it passes bytes until it is told to cut after so
 * many, to swallow what one side says, or to end everything. It sees bytes only; what they mean is the test's knowledge.
 */
import { once } from 'node:events';
import net from 'node:net';

/** Which way bytes go: `up` from the machine to the control plane. */
export type Way = 'up' | 'down';

interface Pair {
  readonly machine: net.Socket;
  readonly plane: net.Socket;
  readonly passed: Record<Way, number>;
}

/** One listening proxy. */
export class CuttingProxy {
  readonly #server: net.Server;
  readonly #pairs = new Set<Pair>();
  #cutAfter: number | undefined;
  #isSwallowing = false;
  #isRefusing = false;
  readonly #accepted = new Map<number, number>();
  /** When each connection was refused, in ms of the steady clock. */
  readonly refused: number[] = [];
  /** Whether `carried` is kept: everything that passes, each way, one entry a connection. */
  isRecording = false;
  readonly carried: { readonly up: Buffer[]; readonly down: Buffer[] }[] = [];
  /** Bytes that came from machines so far. */
  upBytes = 0;
  /** How often a connection was cut by `cutAfterUp`. */
  cuts = 0;

  /** Loopback port that new connections are passed to. */
  target: number;

  constructor(target: number) {
    this.target = target;
    this.#server = net.createServer((machine) => this.#accept(machine, this.target));
  }

  /** Listens on a loopback port and answers the origin. */
  async listen(): Promise<string> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    // A server that listens on TCP has an address of this shape.
    return `http://127.0.0.1:${(this.#server.address() as net.AddressInfo).port}`;
  }

  /** How many connections pass now. */
  get connections(): number {
    return this.#pairs.size;
  }

  /** How many connections were passed to this port. */
  accepted(port: number): number {
    return this.#accepted.get(port) ?? 0;
  }

  /** Passes exactly `bytes` more bytes up, counted over all connections of now, then resets both sides and refuses new ones. */
  cutAfterUp(bytes: number): void {
    this.#cutAfter = bytes;
  }

  /** Keeps back everything that the control plane says, until `cut` or `pass`. */
  swallowDown(): void {
    this.#isSwallowing = true;
  }

  /** Ends every connection of now and lets no new one come about, until `pass`. */
  refuse(): void {
    this.#isRefusing = true;
    this.cut();
  }

  /** Passes again what comes from now on; what was kept back is lost, and its connection with it. */
  pass(): void {
    if (this.#isSwallowing) this.cut();
    this.#isSwallowing = false;
    this.#isRefusing = false;
    this.#cutAfter = undefined;
  }

  /** Ends every connection of now, as a network that fails does. */
  cut(): void {
    for (const pair of this.#pairs) this.#end(pair);
  }

  async close(): Promise<void> {
    this.cut();
    this.#server.close();
    await once(this.#server, 'close');
  }

  #accept(machine: net.Socket, port: number): void {
    if (this.#isRefusing) {
      this.refused.push(performance.now());
      machine.resetAndDestroy();
      return;
    }
    this.#accepted.set(port, this.accepted(port) + 1);
    const plane = net.connect({ host: '127.0.0.1', port });
    for (const socket of [machine, plane]) socket.setNoDelay(true);
    const pair: Pair = { machine, plane, passed: { up: 0, down: 0 } };
    if (this.isRecording) this.#record(pair);
    this.#pairs.add(pair);
    const end = (): void => this.#end(pair);
    for (const socket of [machine, plane]) socket.on('error', end).on('close', end);
    machine.on('data', (bytes: Buffer) => this.#up(pair, bytes));
    plane.on('data', (bytes: Buffer) => {
      if (!this.#isSwallowing) machine.write(bytes);
    });
  }

  #record({ machine, plane }: Pair): void {
    const carried = { up: [] as Buffer[], down: [] as Buffer[] };
    this.carried.push(carried);
    machine.on('data', (bytes: Buffer) => carried.up.push(bytes));
    plane.on('data', (bytes: Buffer) => carried.down.push(bytes));
  }

  #up(pair: Pair, bytes: Buffer): void {
    this.upBytes += bytes.length;
    if (this.#cutAfter === undefined) {
      pair.plane.write(bytes);
      return;
    }
    const passing = bytes.subarray(0, this.#cutAfter);
    this.#cutAfter -= passing.length;
    if (this.#cutAfter > 0) {
      pair.plane.write(passing);
      return;
    }
    this.#cutAfter = undefined;
    this.cuts += 1;
    this.#isRefusing = true;
    // The last bytes leave before the connection goes: else the cut would come earlier than the test said.
    pair.plane.write(passing, () => this.#end(pair));
    pair.machine.pause();
  }

  #end(pair: Pair): void {
    if (!this.#pairs.delete(pair)) return;
    pair.machine.resetAndDestroy();
    pair.plane.destroy();
  }
}
