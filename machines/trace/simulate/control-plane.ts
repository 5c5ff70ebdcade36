/*
 * One process of the control plane in a simulated world: what server/channel, server/commands and server/executors do between a question
 * of a machine and the commit of its answer. Rows are the store's alone; what stands here dies with the process.
 */
import { isOpen, stateName } from '../../../server/commands/rules.ts';
import type { Database, Owner, Transaction } from './database.ts';
import { Dispatcher } from './dispatcher.ts';
import { availabilityFacts, standingRow } from './facts.ts';
import type { Answer, Question, Told } from './messages.ts';
import type { End, Link, Message } from './network.ts';
import { challenge, prove } from './proofs.ts';
import { takeDescriptor, takeReceipts } from './receipts.ts';
import { executorOf, loseCommands, stepCommand, stepExecutor } from './server-steps.ts';
import type { Setting } from './setting.ts';
import type { Sweeps } from './sweeps.ts';

/** One connection, from its first question to its end. */
export interface Session {
  readonly link: Link;
  challenged: { readonly executor: string; readonly count: number; readonly at: number } | undefined;
  executor: string;
  /** 0 before the proof. */
  epoch: number;
  work: { readonly id: number; readonly capacity: number } | undefined;
  control: number | undefined;
  told: Told | undefined;
}

/** How long a held answer takes to be signed, in ms. */
const SIGN_MS = { least: 1, most: 3 };

/** One process. `peers` are all processes, this one among them. */
export class ControlPlane implements Owner, End {
  readonly name: string;
  readonly setting: Setting;
  readonly database: Database;
  readonly #peers: readonly ControlPlane[];
  readonly #sessions = new Map<Link, Session>();
  readonly #lanes = new Map<string, Session>();
  readonly dispatcher: Dispatcher;
  readonly sweeps: Sweeps;
  alive = true;

  constructor(
    name: string,
    shared: { readonly setting: Setting; readonly database: Database; readonly sweeps: Sweeps },
    peers: readonly ControlPlane[],
  ) {
    this.setting = shared.setting;
    this.database = shared.database;
    this.sweeps = shared.sweeps;
    this.name = name;
    this.#peers = peers;
    this.dispatcher = new Dispatcher(this);
  }

  /** The current connection of a machine, if it stands here. */
  laneOf(executor: string): Session | undefined {
    return this.#lanes.get(executor);
  }

  /** Whether a machine's current connection stands here and everything passes on it. */
  hears(executor: string): boolean {
    const session = this.#lanes.get(executor);
    return session !== undefined && session.link.isHealthy;
  }

  /** The process dies: connections break, and what was not committed never was. */
  crash(): void {
    this.alive = false;
    for (const link of this.#sessions.keys()) link.end('server');
    this.#sessions.clear();
    this.#lanes.clear();
  }

  take(link: Link, message: Message): void {
    if (!this.alive) return;
    const session = this.#sessionOf(link);
    // Only modelled machines say anything here, in these words.
    const question = message.body as Question;
    if (session.epoch > 0 && !this.#stands(session, message.id)) return;
    switch (question.ask) {
      case 'challenge':
        return challenge(this, session, message.id, question.executor);
      case 'prove':
        return prove(this, session, message.id, question.proof);
      case 'work':
        session.work = { id: message.id, capacity: question.capacity };
        return this.dispatcher.poke(session.executor);
      case 'control':
        session.control = message.id;
        return this.#look(session);
      case 'receipts':
        return takeReceipts(this, session, message.id, question);
      case 'descriptor':
        return takeDescriptor(this, session, message.id, question.revision);
    }
  }

  ended(link: Link, goodbye: boolean): void {
    const session = this.#sessions.get(link);
    this.#sessions.delete(link);
    if (!this.alive || !session || this.#lanes.get(session.executor) !== session) return;
    this.#lanes.delete(session.executor);
    const { executor, epoch } = session;
    this.write(executor, (tx) => {
      const row = executorOf(tx, executor);
      const stands = row.stored.context.epoch === epoch && stateName(row.stored.value) === 'online';
      if (goodbye && stands) stepExecutor(this.setting, tx, executor, { type: 'executor.silent' });
      loseCommands(this, tx, executor, epoch + 1);
    });
  }

  /** Runs a transaction of a machine's rows; afterwards whatever it changed is looked at and told. */
  write(executor: string, body: (tx: Transaction) => void, refused?: (code: string) => void): void {
    this.database.write(this, executor, {
      body,
      after: () => this.changed(executor),
      ...(refused ? { refused } : {}),
    });
  }

  /** Something of this machine changed: its held questions are looked at again. */
  #wake(executor: string): void {
    const session = this.#lanes.get(executor);
    if (!session) return;
    this.#look(session);
    this.dispatcher.poke(executor);
  }

  /** Settles what connections left that no process has any more (R61). */
  settleLeftovers(executors: readonly string[]): void {
    for (const executor of executors) {
      if (this.isHeard(executor) || this.database.unsettled(executor).length === 0) continue;
      this.write(executor, (tx) => loseCommands(this, tx, executor, Number.MAX_SAFE_INTEGER));
    }
  }

  /** Something of this machine was committed. What was withdrawn ends first, so that the very answer which tells of a fence names the commands. */
  changed(executor: string): void {
    if (!this.alive) return;
    const lost = this.database.unsettled(executor).filter((id) => this.#isWithdrawn(id));
    if (lost.length === 0) return this.#wake(executor);
    this.database.write(this, executor, {
      body: (tx) => {
        for (const id of lost) if (this.#isWithdrawn(id)) this.#cancelWithdrawn(tx, id);
      },
      after: () => this.#wake(executor),
    });
  }

  #isWithdrawn(id: string): boolean {
    const command = this.database.get('commands', id);
    const row = command && this.database.get('executors', command.executor);
    if (!command || !row || command.stored.status === 'done') return false;
    const state = stateName(command.stored.value);
    const isLost = stateName(row.stored.value) === 'revoked' && state === 'queued';
    const isOver = state === 'unknown' && command.deadline <= this.setting.timeline.now;
    if (isOver || command.cancelWanted) return false;
    return isLost || this.setting.rules.withdrawnBecause(availabilityFacts(row, command.operation)) !== undefined;
  }

  #cancelWithdrawn(tx: Transaction, id: string): void {
    const row = tx.get('commands', id);
    if (!row) return;
    if (stateName(row.stored.value) === 'queued')
      stepCommand(this.setting, tx, id, { type: 'command.refused', code: 'WITHDRAWN' });
    // An unknown outcome takes no wish as an event; the next control answer names it all the same.
    else if (stateName(row.stored.value) === 'unknown') tx.put('commands', { ...row, cancelWanted: true });
    else stepCommand(this.setting, tx, id, { type: 'command.cancel', by: 'withdrawn' }, { cancelWanted: true });
  }

  isHeard(executor: string): boolean {
    return this.#peers.some((peer) => peer.alive && peer.hears(executor));
  }

  #sessionOf(link: Link): Session {
    const known = this.#sessions.get(link);
    if (known) return known;
    const session: Session = {
      link,
      challenged: undefined,
      executor: '',
      epoch: 0,
      work: undefined,
      control: undefined,
      told: undefined,
    };
    this.#sessions.set(link, session);
    return session;
  }

  answer(session: Session, id: number, answer: Answer): void {
    session.link.say('server', id, answer);
  }

  /** A refusal; where it says so, the connection ends with it. */
  refuse(session: Session, id: number, code: string, ends = false): void {
    this.answer(session, id, { answer: 'refused', code });
    if (ends) this.close(session);
  }

  close(session: Session): void {
    session.link.end('server');
    this.ended(session.link, false);
  }

  /** A fenced, revoked or failed executor is refused everything, whether or not it noticed (N-207). */
  #stands(session: Session, id: number): boolean {
    const row = this.database.get('executors', session.executor);
    const state = row && stateName(row.stored.value);
    const code =
      state === 'revoked'
        ? 'EXECUTOR_REVOKED'
        : state === 'error'
          ? 'EXECUTOR_ERROR'
          : row?.stored.context.epoch === session.epoch
            ? undefined
            : 'CONNECTION_FENCED';
    if (code === undefined) return true;
    this.refuse(session, id, code, true);
    return false;
  }

  join(session: Session, executor: string, epoch: number): void {
    session.executor = executor;
    session.epoch = epoch;
    for (const peer of this.#peers) peer.#fence(executor, epoch);
    this.#lanes.set(executor, session);
  }

  /** A newer connection of this machine proved itself. */
  #fence(executor: string, epoch: number): void {
    const before = this.#lanes.get(executor);
    if (!before || before.epoch >= epoch) return;
    this.#lanes.delete(executor);
    before.link.end('server');
    this.#sessions.delete(before.link);
  }

  /** Answers the held control question where the machine must be told something else than before. */
  #look(session: Session): void {
    const told = this.#read(session);
    const isNews = session.told === undefined || JSON.stringify(told) !== JSON.stringify(session.told);
    const ends = told.standing === 'fenced' || told.standing === 'revoked';
    if (session.control === undefined) {
      if (ends) this.close(session);
      return;
    }
    if (!isNews) return;
    const id = session.control;
    session.control = undefined;
    session.told = told;
    this.signed(() => {
      this.answer(session, id, { answer: 'control', told });
      if (ends) this.close(session);
    });
  }

  #read({ executor, epoch }: Session): Told {
    const row = this.database.get('executors', executor);
    const { now } = this.setting.timeline;
    const cancel = this.database.unsettled(executor).filter((id) => {
      const command = this.database.get('commands', id);
      return command?.cancelWanted === true && (isOpen(stateName(command.stored.value)) || command.deadline > now);
    });
    return {
      epoch,
      standing: row ? this.setting.rules.standingOf(standingRow(row), epoch) : 'revoked',
      cancel,
      confirmedRevision: row?.confirmed?.revision ?? 0,
    };
  }

  /** Signatures take a moment; a process that died meanwhile gives none. */
  signed(then: () => void): void {
    const { timeline, random } = this.setting;
    timeline.after(random.between(SIGN_MS.least, SIGN_MS.most), () => {
      if (this.alive) then();
    });
  }
}
