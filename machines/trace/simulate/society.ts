/*
 * Who uses a simulated world: agents that call, people who decide, owners at their machines. What each does and when is drawn from a
 * stream of its own.
 */
import type { Computer } from './computer.ts';
import type { ControlPlane } from './control-plane.ts';
import { stateName } from '../../../server/commands/rules.ts';
import {
  administer,
  approve,
  call,
  cancel,
  cancelPromotion,
  decide,
  endRun,
  grant,
  prepare,
  review,
} from './decisions.ts';
import { agentOperations, PROMOTE } from './facts.ts';
import type { Joining, JoiningDisk } from './joining.ts';
import type { Random } from './random.ts';
import type { World } from './world.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/** Mean times between what people and agents do on one machine, in ms. */
export interface Pace {
  /** Between two bursts of an agent. */
  readonly bursts: number;
  /** Between two calls of a burst. */
  readonly calls: number;
  /** Between two decisions about access and lifecycle. */
  readonly decisions: number;
  /** Between two changes by the machine's owner. */
  readonly owner: number;
  /** How often somebody decides in the very moment of a call. */
  readonly clashes: number;
  /** Until somebody looks at the page and at the machine. */
  readonly looks: number;
  /** How much more often than on an ordinary day something goes wrong. */
  readonly trouble: number;
}

/** A day with pauses, as a team has it. */
export const ordinary: Pace = {
  bursts: 20 * MINUTE,
  calls: 4 * SECOND,
  decisions: 3 * HOUR,
  owner: 4 * HOUR,
  clashes: 0,
  looks: 3 * MINUTE,
  trouble: 1,
};

/** Everything at once: what a year brings within hours, to meet the states that are rare. */
export const dense: Pace = {
  bursts: 20 * SECOND,
  calls: 700,
  decisions: 2 * MINUTE,
  owner: 4 * MINUTE,
  clashes: 0.08,
  looks: 25 * SECOND,
  trouble: 60,
};

/** Paces by the name that a command line knows. */
export const paces: Readonly<Record<string, Pace>> = { ordinary, dense };

/** One place where a machine stands, with everybody around it; a machine that was ended makes room for the next. */
export class Desk {
  readonly #world: World;
  readonly #random: Random;
  readonly #pace: Pace;
  computer: Computer;
  #run: string | undefined;
  #pairing = false;
  readonly #disk: JoiningDisk = { prepared: null, executor: undefined };

  constructor(world: World, index: number, pace: Pace) {
    this.#world = world;
    this.#random = world.setting.random.branch(`desk ${index}`);
    this.#pace = pace;
    this.computer = world.addComputer();
    this.#every(pace.bursts, () => this.#burst());
    this.#every(pace.decisions, () => this.#decision());
    this.#every(pace.owner, () => this.#ownerActs());
    this.#every(pace.looks, () => this.#look());
  }

  #every(mean: number, act: () => void): void {
    this.#world.setting.timeline.after(this.#random.around(mean), () => {
      act();
      this.#every(mean, act);
    });
  }

  #with(act: (server: ControlPlane, executor: string) => void): void {
    const { server } = this.#world;
    if (server) act(server, this.computer.executor);
  }

  /** An agent works for a while: calls, some of them cancelled, a review and perhaps a promotion at the end. */
  #burst(): void {
    const random = this.#random;
    if (this.#run === undefined || random.chance(0.3)) {
      const ended = this.#run;
      if (ended !== undefined) this.#with((server, executor) => endRun(server, executor, ended));
      this.#run = this.#world.beginRun(this.computer.executor);
    }
    const run = this.#run;
    if (run === undefined) return;
    let at = 0;
    for (let left = 1 + random.below(12); left > 0; left -= 1) {
      at += random.around(this.#pace.calls);
      const operation = random.pick(agentOperations) ?? 'file.read';
      this.#later(at, () => this.#call(run, operation));
    }
    if (random.chance(0.5)) this.#later(at + 10 * SECOND, () => this.#promote(run));
  }

  #call(run: string, operation: string): void {
    this.#with((server, executor) => call(server, executor, { run, operation }));
    if (this.#random.chance(this.#pace.clashes))
      this.#later(this.#random.below(8), () => (this.#random.chance(0.3) ? this.#ownerActs() : this.#decision()));
    if (!this.#random.chance(0.08)) return;
    this.#later(this.#random.around(400), () =>
      this.#with((server, executor) => {
        const open = this.#world.database.unsettled(executor).at(-1);
        if (open !== undefined) cancel(server, executor, open);
      }),
    );
  }

  #promote(run: string): void {
    const random = this.#random;
    this.#with((server, executor) =>
      prepare(server, executor, run, (promotion) => {
        this.#later(random.between(SECOND, 40 * SECOND), () => {
          if (random.chance(0.1)) return this.#with((plane) => cancelPromotion(plane, promotion));
          this.#with((plane) => approve(plane, promotion));
          if (random.chance(0.1)) this.#with((plane) => approve(plane, promotion));
          if (random.chance(0.15))
            this.#later(random.around(1500), () => this.#with((plane) => cancelPromotion(plane, promotion)));
        });
      }),
    );
  }

  #decision(): void {
    const random = this.#random;
    const operation = random.pick(agentOperations) ?? 'file.read';
    const person = random.pick(['owner', 'second']) ?? 'owner';
    const acts: readonly ((server: ControlPlane, executor: string) => void)[] = [
      (server, executor) => decide(server, executor, { type: 'executor.pause' }),
      (server, executor) => grant(server, executor, operation, false),
      (server, executor) => grant(server, executor, operation, false),
      (server, executor) => administer(server, executor, person, random.chance(0.5)),
    ];
    const rare: readonly ((server: ControlPlane, executor: string) => void)[] = [
      (server, executor) => decide(server, executor, { type: 'executor.drain' }),
      (server, executor) => decide(server, executor, { type: 'executor.disconnect', by: 'administrator' }),
      (server, executor) => decide(server, executor, { type: 'executor.delete' }),
    ];
    const act = random.pick(random.chance(0.1) ? rare : acts);
    if (act) this.#with(act);
  }

  /** Whoever looks undoes what hinders: a pause, a grant that is missing, a review that waits, an error on the machine. */
  #look(): void {
    const row = this.#world.database.get('executors', this.computer.executor);
    if (!row) return;
    const state = stateName(row.stored.value);
    if (state === 'revoked') return this.#replace();
    this.#with((server, executor) => {
      if (row.latest && row.latest.revision !== row.confirmed?.revision)
        review(server, executor, this.#random.chance(0.95));
      if (!row.stored.context.accepting) decide(server, executor, { type: 'executor.resume' });
      const missing = agentOperations.find((operation) => !row.granted.includes(operation));
      if (missing) grant(server, executor, missing, true);
    });
    if (!this.computer.wanted) this.computer.resume();
    if (this.computer.daemon?.state === 'error' || this.computer.stuck) this.computer.repair();
    if (this.computer.wallOffset !== 0 && this.#random.chance(0.3)) this.computer.wallOffset = 0;
  }

  /** The machine was ended: it is paired again, as another executor. */
  #replace(): void {
    if (this.#pairing) return;
    this.computer.stop();
    this.#run = undefined;
    this.#pairing = true;
    const joining = this.#world.pairComputer((computer) => {
      this.computer = computer;
      this.#pairing = false;
    }, this.#disk);
    if (this.#random.chance(0.3)) this.#later(this.#random.around(20 * SECOND), () => this.#crashJoining(joining));
  }

  /** The joining program dies; a new run goes on with what it had on the disk. */
  #crashJoining(joining: Joining): void {
    if (!this.#pairing || !joining.crash()) return;
    this.#pairing = false;
    this.#later(SECOND, () => this.#replace());
  }

  #ownerActs(): void {
    const random = this.#random;
    if (random.chance(0.25)) return this.computer.stop();
    const operations = [...agentOperations, PROMOTE].filter(() => random.chance(0.8));
    const all = [...agentOperations, PROMOTE];
    this.computer.setPolicy(this.#world.policy(random.chance(0.5) ? all : operations));
  }

  #later(ms: number, act: () => void): void {
    this.#world.setting.timeline.after(ms, act);
  }
}
