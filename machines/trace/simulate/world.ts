/*
 * A simulated world: machines and the processes of a control plane, run by the rules that ship, over a modelled network, store and disk,
 * until a time has passed or an invariant did not hold. The same options tell the same story, byte for byte.
 */
import { Computer } from './computer.ts';
import { ControlPlane } from './control-plane.ts';
import { Database } from './database.ts';
import type { Owner } from './database.ts';
import { beginRun, makeExecutor } from './decisions.ts';
import { emptyDisk } from './disk.ts';
import { agentOperations, PROMOTE } from './facts.ts';
import { HOST_MARKER } from './asked.ts';
import { Joining } from './joining.ts';
import type { JoiningDisk } from './joining.ts';
import { Signatures } from './ledger-facts.ts';
import { PairingDesk } from './pairings.ts';
import type { Digester } from '../redact.ts';
import { Random } from './random.ts';
import { shippedRules } from './rules.ts';
import type { Rules } from './rules.ts';
import type { Setting, Weather } from './setting.ts';
import { Sweeps } from './sweeps.ts';
import type { Revision } from './tables.ts';
import { Timeline } from './timeline.ts';
import { textOf, Tracer } from './tracer.ts';
import type { Hear } from './tracer.ts';
import { Watch } from './watch.ts';
import type { Violation } from './watch.ts';

/** What makes a world. */
export interface WorldOptions {
  readonly seed: string;
  /** Processes of the control plane; more than one are simulated only. */
  readonly controlPlanes?: number;
  readonly weather?: Weather;
  readonly rules?: Rules;
  readonly digest: Digester;
  /** Takes each line of the trace. */
  readonly hear?: Hear;
}

/** Weather in which every message arrives. */
export const calm: Weather = { lost: 0, repeated: 0, reordered: 0, slow: 0 };

/** How long after a commit the other processes hear of it, in ms. */
const NOTIFY_MS = { least: 0, most: 20 };
/** ms since the Unix epoch at which every world begins. */
const EPOCH_MS = 1_800_000_000_000;
/** Longest run time that owners permit, in ms. */
const RUNTIME_MS = 20_000;

/** One world. */
export class World {
  readonly setting: Setting;
  readonly database: Database;
  readonly servers: ControlPlane[] = [];
  readonly computers: Computer[] = [];
  readonly #sweeps: Sweeps;
  readonly #pairings: PairingDesk;
  #fresh = 0;
  #servedSince = 0;

  constructor(options: WorldOptions) {
    const timeline = new Timeline();
    const hear: Hear = (line, at) => {
      if (textOf(line).includes(HOST_MARKER))
        this.setting.watch.broken('7 absent', `line ${line.seq} names something of a host`);
      options.hear?.(line, at);
    };
    const tracer = new Tracer(() => timeline.now, options.digest, hear);
    const watch = new Watch({
      now: () => timeline.now,
      deciding: () => tracer.deciding,
      later: (ms, then) => void timeline.after(ms, then),
      servedFor: () => (this.servers.some(({ alive }) => alive) ? timeline.now - this.#servedSince : 0),
      row: (table, id) => this.database.get(table, id),
      isHeard: (executor) =>
        this.servers.some((server) => server.alive && server.laneOf(executor)?.link.isPrompt === true),
    });
    this.setting = {
      timeline,
      tracer,
      watch,
      random: new Random(options.seed),
      rules: options.rules ?? shippedRules,
      signatures: new Signatures(),
      weather: options.weather ?? calm,
      silentUntil: 0,
      durations: new Map(),
      epochMs: EPOCH_MS,
      fresh: (prefix) => {
        this.#fresh += 1;
        return `${prefix}-${this.#fresh}`;
      },
    };
    this.database = new Database(this.setting, (executor, by) => this.#notify(executor, by));
    this.#sweeps = new Sweeps(this.setting, this.database, () => this.servers);
    this.#pairings = new PairingDesk(this.setting, this.database, () => this.servers.some(({ alive }) => alive));
    for (let at = 0; at < (options.controlPlanes ?? 1); at += 1) this.#startServer(`server-${at + 1}`, at);
  }

  /** ms from the start. */
  get now(): number {
    return this.setting.timeline.now;
  }

  /** What did not hold so far. */
  get violations(): readonly Violation[] {
    const { watch, tracer, timeline } = this.setting;
    // Where a machine was replaced, the recorder's own is another one.
    const disagreements = (this.setting.rules === shippedRules ? tracer.disagreements : []).map((says) => {
      return { invariant: 'machine', says, at: timeline.now, after: tracer.deciding };
    });
    return [...watch.violations, ...disagreements];
  }

  /** A process of the control plane that is there. */
  get server(): ControlPlane | undefined {
    return this.setting.random.pick(this.servers.filter(({ alive }) => alive));
  }

  /** Lets time pass until then, in ms from the start; false where an invariant did not hold on the way. */
  runUntil(until: number): boolean {
    const { timeline, watch, tracer } = this.setting;
    while (timeline.step(until)) {
      const disagrees = tracer.disagreements.length > 0 && this.violations.length > 0;
      if (watch.violations.length > 0 || disagrees) return false;
    }
    return true;
  }

  /** A paired machine that starts, with a run for its agent. */
  addComputer(): Computer {
    const executor = this.setting.fresh('executor');
    const disk = emptyDisk(this.policy([...agentOperations, PROMOTE]));
    const computer = this.#computer(executor, disk);
    computer.state();
    const { server } = this;
    if (server) makeExecutor(server, executor);
    this.setting.timeline.after(10, () => computer.start());
    return computer;
  }

  /** A machine that pairs by the eight-digit flow, as often as that takes, and starts then; `ready` hears of it. */
  pairComputer(
    ready: (computer: Computer) => void,
    disk: JoiningDisk = { prepared: null, executor: undefined },
  ): Joining {
    return new Joining(this.setting, this.#pairings, disk, (executor) => {
      const { timeline, random } = this.setting;
      if (executor === undefined)
        return void timeline.after(random.between(1000, 20_000), () => this.pairComputer(ready));
      const computer = this.#computer(executor, emptyDisk(this.policy([...agentOperations, PROMOTE])));
      computer.state();
      timeline.after(10, () => computer.start());
      ready(computer);
    });
  }

  /** Another machine with a copy of this one's disk. */
  clone(computer: Computer): Computer {
    const copy = this.#computer(computer.executor, emptyDisk(this.policy([])), true);
    copy.restore(computer.disk);
    copy.start();
    return copy;
  }

  /** What an owner permits, as a policy of its own. */
  policy(operations: readonly string[]): Revision {
    return { revision: 0, operations, runtimeMs: RUNTIME_MS, policyDigest: `policy of ${operations.join(', ')}` };
  }

  /** Begins a run; its name. */
  beginRun(executor: string): string | undefined {
    const { server } = this;
    if (!server) return undefined;
    const id = this.setting.fresh('run');
    beginRun(server, executor, id);
    return id;
  }

  /** A process of the control plane dies, and another one takes its place after a time, in ms. */
  crashServer(at: number, restartsAfter: number): void {
    const server = this.servers[at];
    if (!server?.alive) return;
    server.crash();
    this.setting.timeline.after(restartsAfter, () => this.#startServer(server.name, at));
  }

  /** A commit is told to the processes that did not make it. */
  #notify(executor: string, by: Owner): void {
    const { timeline, random } = this.setting;
    for (const server of this.servers)
      if (server !== by)
        timeline.after(random.between(NOTIFY_MS.least, NOTIFY_MS.most), () => server.changed(executor));
  }

  #computer(executor: string, disk: Computer['disk'], isCopy = false): Computer {
    const name = `machine-${this.computers.length + 1}`;
    const outside = { servers: this.servers, quiet: (id: string) => this.#sweeps.quiet(id) };
    const computer = new Computer(this.setting, outside, { name, executor, disk, isCopy });
    this.computers.push(computer);
    return computer;
  }

  /** No connection outlives its process: what a machine was given then is unknown until it reports (R61). */
  #startServer(name: string, at: number): void {
    const shared = { setting: this.setting, database: this.database, sweeps: this.#sweeps };
    if (!this.servers.some(({ alive }) => alive)) this.#servedSince = this.setting.timeline.now;
    const server = new ControlPlane(name, shared, this.servers);
    this.servers[at] = server;
    server.settleLeftovers([...new Set(this.computers.map(({ executor }) => executor))]);
  }
}
