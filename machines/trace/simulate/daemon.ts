/*
 * One process of a machine's daemon in a simulated world: the daemon's machine as a live actor, with what daemon/executor.ts puts around
 * it. It dies with everything that is not on its disk.
 */
import { createActor } from 'xstate';
import type { Actor, AnyActorRef } from 'xstate';
import { Scheduler } from '../../../daemon/scheduler.ts';
import type { CommandId, RunId } from '../../../helpers/protocol/ids.ts';
import type { OpenLedger, RecoverAnswer } from '../../daemon/types.ts';
import { CONTROL_SILENCE_MS } from '../../daemon/connection.ts';
import { asked } from './asked.ts';
import type { Ask } from './asked.ts';
import type { Channel } from './channel.ts';
import type { Computer } from './computer.ts';
import { Ledger } from './disk.ts';
import { Executions } from './executions.ts';
import type { Told } from './messages.ts';
import { connect } from './connect.ts';
import type { Rules } from './rules.ts';
import type { Setting } from './setting.ts';
import type { Planned } from './timeline.ts';
import { CONTROL_HOLD_MS } from './times.ts';

/** Commands that run at once at most. */
const LIMIT = 4;

type Gave = Ask<{ readonly stopped: number }, undefined>;

/** A running daemon. */
export class Daemon {
  readonly name: string;
  readonly computer: Computer;
  readonly setting: Setting;
  readonly actor: Actor<Rules['daemonMachine']>;
  readonly executions: Executions;
  readonly #scheduler: Scheduler;
  /** Timers of its machine by the number that it knows them by. */
  readonly #timers = new Map<number, Planned>();
  #lastTimer = 0;
  /** Timer of the silence of the control lane, while answers put it off. */
  #parked: { readonly id: number; readonly fire: () => void } | undefined;
  #heardAt = 0;
  /** Whether this process has noticed that nothing is answered any more. */
  #isQuiet = false;
  ledger: Ledger;
  channel: Channel | undefined;
  alive = true;
  /** False after the machine slept: nothing starts before a new session. */
  anchored = false;
  /** Whether the control plane ever stated the time to this process. */
  knowsTime = false;
  #asksWork = false;
  #standing: 'accepting' | 'paused' | 'draining' = 'accepting';

  constructor(setting: Setting, computer: Computer, name: string) {
    this.setting = setting;
    this.computer = computer;
    this.name = name;
    this.ledger = new Ledger(setting, computer.disk);
    this.executions = new Executions(this);
    this.#scheduler = new Scheduler(
      () => LIMIT,
      (commandId) => this.actor.send({ type: 'work.turn', commandId }),
    );
    const inspect = setting.tracer.inspector(name);
    this.actor = createActor(this.#machine(), {
      id: 'daemon',
      input: { executorId: computer.executor },
      clock: {
        // xstate hands back whatever this gives to the clock that gave it.
        setTimeout: (fire, ms) => this.#plan(fire, ms),
        clearTimeout: (id: number) => this.#unplan(id),
      },
      inspect: (event) => {
        // What a machine spawns or invokes is an actor of this system, with id, events and an end.
        if (event.type === '@xstate.actor') this.#follow(event.actorRef as AnyActorRef);
        inspect(event);
      },
    });
    this.actor.on('daemon.work-refused', ({ commandId, code }) => this.executions.refuseHeld(commandId, code));
    this.actor.on('daemon.work-repeated', ({ commandId }) => this.executions.tell(commandId));
    this.actor.on('daemon.faulted', () => this.#closeChannel(false));
    this.actor.subscribe({ complete: () => this.#exit() });
  }

  start(): void {
    this.actor.start();
  }

  /** The process dies; what it held of the disk's queue may have reached it in part. */
  crash(): void {
    if (!this.alive) return;
    this.ledger.crash();
    this.#exit();
  }

  /** Name of the state that its machine is in. */
  get state(): string {
    const { value } = this.actor.getSnapshot();
    return typeof value === 'string' ? value : (Object.keys(value)[0] ?? '');
  }

  /** Time since the last answer of the control lane, in ms. */
  get silentFor(): number {
    if (this.channel?.isHealthy === true) return 0;
    const since = this.channel && !this.#isQuiet ? this.channel.troubledAt : this.#heardAt;
    return this.setting.timeline.now - (since ?? this.setting.timeline.now);
  }

  /** Whether the owner permits an operation, by the confirmed policy and the one of this moment. */
  permits(operation: string): boolean {
    const { policy, stated, confirmedRevision } = this.computer.disk;
    const confirmed = stated.find(({ revision }) => revision === confirmedRevision);
    return policy?.operations.includes(operation) === true && confirmed?.operations.includes(operation) === true;
  }

  /** Does something after a time, unless the process is gone then; a machine that sleeps does it when it wakes. */
  later(ms: number, then: () => void): void {
    this.setting.timeline.after(ms, () => {
      if (!this.alive) return;
      if (this.computer.wakesIn > 0) this.later(this.computer.wakesIn, then);
      else then();
    });
  }

  /** The machine slept: its time stood still, and what it was told then is late. */
  slept(): void {
    // The control lane finds that out with its next answer, and a new session states the time.
    this.setting.timeline.after(CONTROL_HOLD_MS, () => this.channel?.end());
  }

  /** The owner's file changed: it is stated anew. */
  policyChanged(): void {
    this.computer.state();
    if (this.channel?.isHealthy === true) this.#submit();
  }

  /** What the control lane told. */
  hear(told: Told): void {
    const { disk } = this.computer;
    if (disk.stated.some(({ revision }) => revision === told.confirmedRevision))
      disk.confirmedRevision = told.confirmedRevision;
    for (const commandId of told.cancel) this.actor.send({ type: 'control.cancel', commandId });
    if (told.standing === 'revoked') this.actor.send({ type: 'control.revoked' });
    else if (told.standing === 'fenced' || told.epoch !== this.channel?.epoch)
      this.actor.send({ type: 'control.fenced' });
    else {
      this.#standing = told.standing;
      this.actor.send({ type: 'control.answered', standing: told.standing });
    }
    this.#askControl();
  }

  /** Asks for work while there is room for it. */
  askWork(): void {
    const { channel } = this;
    const capacity = Math.min(64, LIMIT * 2 - this.#scheduler.held);
    if (this.#asksWork || capacity <= 0 || channel === undefined || channel.isOver) return;
    this.#asksWork = true;
    channel.ask({ ask: 'work', capacity }, (answer) => {
      this.#asksWork = false;
      if (answer.answer !== 'work') return channel.end();
      for (const frame of answer.frames) this.executions.deliver(frame);
      this.askWork();
    });
  }

  #machine(): Rules['daemonMachine'] {
    const { rules, random } = this.setting;
    const soon = (then: () => void): void => this.later(random.between(1, 5), then);
    return rules.daemonMachine.provide({
      delays: {
        backoff: ({ context }) =>
          Math.round(Math.min(30_000, 250 * 2 ** Math.min(context.attempt, 7)) * (0.75 + random.next() / 2)),
      },
      actors: {
        execution: this.executions.machine(),
        recoverPromotion: asked((ask: Ask<RecoverAnswer, undefined>) =>
          soon(() => {
            const answer = this.computer.settleJournal();
            if (answer === 'held') ask.reject();
            else ask.resolve({ answer });
          }),
        ),
        openLedger: asked((ask: Ask<OpenLedger['output'], OpenLedger['input']>) => soon(() => this.#openLedger(ask))),
        connect: asked((ask) => connect(this, ask)),
        stopGuests: asked((ask: Gave) => soon(() => ask.resolve({ stopped: 0 }))),
        reportFault: asked((ask) =>
          soon(() => {
            this.#closeChannel(false);
            ask.resolve({ told: true });
          }),
        ),
        releaseLease: asked((ask) => {
          this.#closeChannel(true);
          soon(() => ask.resolve({ released: true }));
        }),
      },
    });
  }

  #openLedger(ask: Ask<OpenLedger['output'], OpenLedger['input']>): void {
    if (this.computer.disk.damaged) return ask.reject();
    this.ledger = new Ledger(this.setting, this.computer.disk, () => this.#damaged());
    ask.resolve({ open: this.executions.recall() });
  }

  /** A session stands: the lanes begin. */
  connected(channel: Channel): void {
    this.channel = channel;
    this.#isQuiet = false;
    this.#asksWork = false;
    this.#submit();
    this.#askControl();
    this.askWork();
  }

  /** The connection is over, however it ended. */
  disconnected(channel: Channel): void {
    if (this.channel !== channel) return;
    this.channel = undefined;
    this.#quiet(channel);
    this.#arm();
    if (this.alive) this.actor.send({ type: 'connection.lost' });
  }

  /** Nothing passes on the connection any more: from the last answer on there is silence. */
  troubled(): void {
    if (this.channel) this.#quiet(this.channel);
    this.#arm();
  }

  /** It passes again, and the lane is answered as before. */
  mended(): void {
    const standing = this.#standing;
    this.later(this.setting.random.between(1, CONTROL_HOLD_MS), () => {
      if (this.channel?.isHealthy !== true) return;
      this.#isQuiet = false;
      this.actor.send({ type: 'control.answered', standing });
    });
  }

  #damaged(): void {
    if (this.alive) this.actor.send({ type: 'ledger.damaged' });
  }

  /** Nothing is heard any more: the last answer came at most a hold before that. */
  #quiet(channel: Channel): void {
    const { timeline, random, watch } = this.setting;
    // A lane that is quiet already was heard last when that began.
    if (!this.#isQuiet) this.#heardAt = (channel.troubledAt ?? timeline.now) - random.below(CONTROL_HOLD_MS);
    this.#isQuiet = true;
    this.computer.quiet();
    watch.silent(this);
  }

  #submit(): void {
    const { stated, confirmedRevision } = this.computer.disk;
    const newest = stated.at(-1);
    if (newest && newest.revision !== confirmedRevision)
      this.channel?.ask({ ask: 'descriptor', revision: newest }, () => undefined);
  }

  #askControl(): void {
    const { channel } = this;
    channel?.ask({ ask: 'control' }, (answer) => {
      if (!this.alive || channel !== this.channel) return;
      if (answer.answer === 'control') this.hear(answer.told);
      else channel.end();
    });
  }

  #closeChannel(goodbye: boolean): void {
    this.channel?.end(goodbye);
  }

  /** Follows the machine of one command: its turn is asked for when it is accepted and given back when it ends. */
  #follow(actor: AnyActorRef): void {
    if (!actor.id.startsWith('command-')) return;
    // Ids of this world are its own.
    const command = actor.id.slice('command-'.length) as CommandId;
    const run = this.executions.runOf(command);
    if (run === undefined) return;
    actor.on('execution.phase', ({ phase }: { phase?: unknown }) => {
      if (phase === 'accepted-pending') this.#scheduler.enqueue(run, command);
    });
    const closed = (): void => this.#closed(run, command);
    actor.subscribe({ complete: closed, error: closed });
  }

  #closed(run: RunId, command: CommandId): void {
    this.executions.release(command);
    this.#scheduler.release(run, command);
    this.askWork();
  }

  /** The process is over: its connection breaks, its timers are gone, nobody waits for it. */
  #exit(): void {
    if (!this.alive) return;
    this.alive = false;
    this.executions.die();
    for (const planned of this.#timers.values()) this.setting.timeline.drop(planned);
    this.#parked = undefined;
    const { channel } = this;
    this.channel = undefined;
    channel?.end();
    this.setting.tracer.forget(this.name);
    this.computer.exited(this);
  }

  /** A timer of the machine. Answers of the control lane put off the one of its silence: while the lane is well it is not planned at all. */
  #plan(fire: () => void, ms: number): number {
    this.#lastTimer += 1;
    const id = this.#lastTimer;
    if (ms === CONTROL_SILENCE_MS) {
      this.#parked = { id, fire };
      this.#heardAt = this.setting.timeline.now;
      if (this.channel?.isHealthy !== true && this.channel !== undefined) this.#arm();
    } else this.#at(id, ms, fire);
    return id;
  }

  #unplan(id: number): void {
    if (this.#parked?.id === id) this.#parked = undefined;
    this.setting.timeline.drop(this.#timers.get(id));
    this.#timers.delete(id);
  }

  #arm(): void {
    const parked = this.#parked;
    if (!parked) return;
    this.#parked = undefined;
    const left = this.#heardAt + CONTROL_SILENCE_MS - this.setting.timeline.now;
    this.#at(parked.id, left, parked.fire);
  }

  #at(id: number, ms: number, fire: () => void): void {
    const planned = this.setting.timeline.after(ms, () => {
      this.#timers.delete(id);
      if (!this.alive) return;
      // A machine that sleeps has no timers; they go on when it wakes.
      if (this.computer.wakesIn > 0) return this.#at(id, this.computer.wakesIn, fire);
      fire();
    });
    this.#timers.set(id, planned);
  }
}
