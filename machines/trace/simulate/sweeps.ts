/*
 * What the control plane does because a time has passed, as server/commands/start-work.ts sweeps for it: by whichever process is there,
 * within a second. Between two deadlines nothing is looked at, so nothing costs the world an event.
 */
import { isOpen, stateName } from '../../../server/commands/rules.ts';
import type { ControlPlane } from './control-plane.ts';
import type { Database } from './database.ts';
import { stepCommand, stepExecutor, stepPromotion } from './server-steps.ts';
import type { Setting } from './setting.ts';
import { OFFLINE_MS } from './times.ts';

/** How often deadlines are looked at, in ms. */
const SWEEP_MS = 1000;

/** The sweeps of all processes together. */
export class Sweeps {
  readonly #setting: Setting;
  readonly #database: Database;
  readonly #servers: () => readonly ControlPlane[];
  readonly #seen = new Map<string, number>();

  constructor(setting: Setting, database: Database, servers: () => readonly ControlPlane[]) {
    this.#setting = setting;
    this.#database = database;
    this.#servers = servers;
  }

  /** A command has this deadline; a later one of its lease is met when this one comes. */
  command(id: string, deadline: number): void {
    this.#at(deadline, (plane) => {
      const row = this.#database.get('commands', id);
      if (!row) return;
      if (row.deadline > this.#setting.timeline.now) return this.command(id, row.deadline);
      if (isOpen(stateName(row.stored.value)))
        plane.write(row.executor, (tx) => void stepCommand(this.#setting, tx, id, { type: 'command.expired' }));
      this.#setting.timeline.after(SWEEP_MS, () => this.#database.pastDeadline(id));
    });
  }

  /** A promotion was prepared and is forgotten at this time. */
  promotion(id: string, expiresAt: number): void {
    this.#at(expiresAt, (plane) => {
      const row = this.#database.get('promotions', id);
      if (row && stateName(row.stored.value) === 'prepared')
        plane.write(row.executor, (tx) => void stepPromotion(this.#setting, tx, id, { type: 'promotion.expired' }));
    });
  }

  /** Nothing is heard of a machine from now on. */
  quiet(executor: string): void {
    this.#seen.set(executor, this.#setting.timeline.now);
    this.#setting.watch.troubled(executor);
    this.#at(this.#setting.timeline.now + OFFLINE_MS + 1, (plane) => this.#markSilent(plane, executor));
  }

  /** A machine drains: it is ended once nothing of it is under way. */
  draining(executor: string): void {
    this.#at(this.#setting.timeline.now + SWEEP_MS, (plane) => {
      const row = this.#database.get('executors', executor);
      if (!row || stateName(row.stored.value) !== 'draining') return;
      if (this.#database.unsettled(executor).length > 0) return this.draining(executor);
      plane.write(executor, (tx) => void stepExecutor(this.#setting, tx, executor, { type: 'executor.drained' }));
    });
  }

  #markSilent(plane: ControlPlane, executor: string): void {
    const row = this.#database.get('executors', executor);
    const heard = this.#servers().some((server) => server.alive && server.hears(executor));
    const silence = this.#setting.timeline.now - (this.#seen.get(executor) ?? 0);
    if (heard || silence <= OFFLINE_MS || !row || stateName(row.stored.value) !== 'online') return;
    plane.write(executor, (tx) => void stepExecutor(this.#setting, tx, executor, { type: 'executor.silent' }));
  }

  #at(time: number, sweep: (plane: ControlPlane) => void): void {
    const { timeline, random } = this.#setting;
    timeline.after(time - timeline.now + random.below(SWEEP_MS), () => {
      const plane = this.#servers().find(({ alive }) => alive);
      if (plane) sweep(plane);
      else this.#at(timeline.now + SWEEP_MS, sweep);
    });
  }
}
