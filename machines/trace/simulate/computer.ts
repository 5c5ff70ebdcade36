/*
 * One machine of a simulated world: its disk, its clock, its way to the control plane, and the daemon that runs on it. Whoever starts,
 * stops, copies, suspends or damages it does so here.
 */
import type { RecoverAnswer } from '../../daemon/types.ts';
import type { Channel } from './channel.ts';
import type { ControlPlane } from './control-plane.ts';
import { Daemon } from './daemon.ts';
import { copyOf } from './disk.ts';
import type { Durable } from './disk.ts';
import { Link, Way } from './network.ts';
import type { Setting } from './setting.ts';
import type { Revision } from './tables.ts';

/** What a machine meets outside: the processes of the control plane. */
export interface Outside {
  readonly servers: readonly ControlPlane[];
  /** Nothing is heard of a machine from now on. */
  quiet(executor: string): void;
}

/** A sleep longer than this voids what the machine knows of the time, in ms. */
const GAP_MS = 5000;
/** How long the supervisor takes to start a daemon again, in ms. */
const RESTART_MS = { least: 200, most: 3000 };

/** One machine. */
export class Computer {
  readonly name: string;
  readonly executor: string;
  readonly way = new Way();
  readonly #setting: Setting;
  readonly #outside: Outside;
  disk: Durable;
  daemon: Daemon | undefined;
  /** When the owner's file changed last, in ms. */
  policyAt = 0;
  /** ms by which its wall clock is wrong. */
  wallOffset = 0;
  #wakesAt = 0;
  #started = 0;
  /** Its disk is a copy of another machine's. */
  readonly isCopy: boolean;
  /** The owner wants it to run. */
  wanted = true;
  /** It was ended for good: its daemon is not started again. */
  ended = false;
  /** A person is needed before a promotion can be settled. */
  stuck = false;

  constructor(
    setting: Setting,
    outside: Outside,
    own: { readonly name: string; readonly executor: string; readonly disk: Durable; readonly isCopy: boolean },
  ) {
    this.#setting = setting;
    this.#outside = outside;
    this.name = own.name;
    this.executor = own.executor;
    this.disk = own.disk;
    this.isCopy = own.isCopy;
    this.way.onSlow = () => setting.watch.troubled(own.executor);
  }

  /** Remaining time of its sleep, in ms; 0 while it is awake. */
  get wakesIn(): number {
    return Math.max(0, this.#wakesAt - this.#setting.timeline.now);
  }

  /** ms since the Unix epoch. */
  trueNow(): number {
    return this.#setting.epochMs + this.#setting.timeline.now;
  }

  /** ms since the Unix epoch as its daemon believes: the control plane's time once it was told, else its own. */
  clockNow(): number {
    const truth = this.trueNow();
    return this.daemon?.knowsTime === true ? truth : truth + this.wallOffset;
  }

  /** Starts the daemon, where none runs. */
  start(): void {
    if (this.daemon || this.ended || !this.wanted) return;
    this.#started += 1;
    this.daemon = new Daemon(this.#setting, this, `${this.name}.${this.#started}`);
    this.daemon.start();
  }

  /** The daemon dies, and its supervisor starts it again. */
  crash(): void {
    this.daemon?.crash();
  }

  /** The owner asks the daemon to stop, in order. */
  stop(): void {
    this.wanted = false;
    this.daemon?.actor.send({ type: 'daemon.stop' });
  }

  /** The owner starts it again. */
  resume(): void {
    this.wanted = true;
    this.start();
  }

  /** A person repairs what is damaged, and says so. */
  repair(): void {
    this.disk.damaged = false;
    this.disk.repaired = true;
    this.stuck = false;
    this.daemon?.actor.send({ type: 'daemon.repaired' });
  }

  /** A process of the machine broke its protocol. */
  violated(role: string): void {
    this.daemon?.actor.send({ type: 'role.violated', role });
  }

  /** The process of a helper dies under whatever it was doing. */
  breakHelper(): void {
    for (const operation of this.daemon?.executions.running ?? []) operation.breakOff();
  }

  /** The machine sleeps: nothing on it happens, and nothing reaches it. */
  suspend(ms: number): void {
    if (this.wakesIn > 0 || this.way.isCut) return;
    this.#wakesAt = this.#setting.timeline.now + ms;
    if (ms > GAP_MS && this.daemon) this.daemon.anchored = false;
    this.way.cut();
    this.#setting.timeline.after(ms, () => {
      this.way.mend();
      if (ms > GAP_MS) this.daemon?.slept();
    });
  }

  /** The owner writes another policy. */
  setPolicy(policy: Revision): void {
    this.disk.policy = policy;
    this.policyAt = this.#setting.timeline.now;
    this.daemon?.policyChanged();
  }

  /** What is offered is stated as a revision of its own, durable before it is sent. */
  state(): void {
    const { policy, stated } = this.disk;
    if (!policy || stated.at(-1)?.policyDigest === policy.policyDigest) return;
    this.disk.stated = [...stated, { ...policy, revision: (stated.at(-1)?.revision ?? 0) + 1 }];
  }

  /** Puts back what the disk held before: a backup, or another machine's copy. The daemon dies under it. */
  restore(copy: Durable): void {
    this.daemon?.crash();
    this.disk = copyOf(copy);
  }

  /** Settles what an earlier process left of a promotion: forwards from its commit on, else back (N-530); not while one still runs. */
  settleJournal(): RecoverAnswer['answer'] | 'held' {
    if (this.stuck) return 'needs-person';
    if (this.daemon?.executions.running.some(({ promotes }) => promotes)) return 'held';
    const { journal } = this.disk;
    if (journal) this.#setting.watch.recovered(this, journal);
    this.disk.journal = undefined;
    return 'settled';
  }

  /** Its connection is over or not well. */
  quiet(): void {
    this.#outside.quiet(this.executor);
  }

  /** Opens a connection to a process of the control plane that is there; false where nobody answers. */
  dial(channel: Channel): boolean {
    if (this.way.isCut) return false;
    const server = this.#setting.random.pick(this.#outside.servers.filter(({ alive }) => alive));
    if (!server) return false;
    channel.opened(new Link(this.#setting, this.way, channel, server));
    return true;
  }

  /** The daemon's process is over. */
  exited(daemon: Daemon): void {
    if (this.daemon !== daemon) return;
    this.daemon = undefined;
    if (daemon.actor.getSnapshot().status === 'done' && daemon.state === 'revoked') this.ended = true;
    const { timeline, random } = this.#setting;
    timeline.after(random.between(RESTART_MS.least, RESTART_MS.most), () => this.start());
  }
}
