/*
 * The modelled store of the control plane. A transaction holds the lock of one machine's rows from the moment at which it reads until
 * its commit is durable; others wait in order. A process that dies before its commit leaves nothing of it.
 *
 * INVARIANT 1  A transaction sees committed rows and its own, and no other transaction's of the same lock.
 * INVARIANT 2  Rows, audit entries and trace lines of a transaction become visible together, or never.
 */
import type { AnyEventObject } from 'xstate';
import { stateName } from '../../../server/commands/rules.ts';
import type { Setting } from './setting.ts';
import type { Tables } from './tables.ts';

type TableName = keyof Tables;

/** Something that can die while a transaction of it is under way. */
export interface Owner {
  readonly alive: boolean;
}

/** A step of a stored machine, told to the trace once it is committed. */
interface Told {
  readonly machine: string;
  readonly actor: string;
  readonly event: AnyEventObject;
}

/** The gate or a rule said no; nothing of the transaction remains. */
export class Refused extends Error {
  override readonly name = 'Refused';
  readonly code: string;

  constructor(code: string) {
    super(code);
    this.code = code;
  }
}

/** One transaction while it runs. */
export class Transaction {
  readonly #database: Database;
  readonly writes = new Map<string, { readonly table: TableName; readonly row: Tables[TableName] }>();
  readonly told: Told[] = [];
  /** Names of decisions that it records (invariant 8 of the world). */
  readonly audit: string[] = [];

  constructor(database: Database) {
    this.#database = database;
  }

  get<Name extends TableName>(table: Name, id: string): Tables[Name] | undefined {
    const own = this.writes.get(`${table}/${id}`);
    // A row stands under the name of its table.
    return own ? (own.row as Tables[Name]) : this.#database.get(table, id);
  }

  put<Name extends TableName>(table: Name, row: Tables[Name]): void {
    this.writes.set(`${table}/${row.id}`, { table, row });
  }
}

interface Waiting {
  readonly owner: Owner;
  readonly body: (tx: Transaction) => unknown;
  readonly after: (result: unknown) => void;
  readonly refused: (code: string) => void;
}

/** How long a commit takes to become durable, in ms. */
const COMMIT_MS = { least: 0, most: 4 };

/** The one store. */
export class Database {
  readonly #setting: Setting;
  /** Hears of each commit under a lock, with who made it: so every process learns of it, also where that one dies over it. */
  readonly #heard: (lock: string, by: Owner) => void;
  readonly #rows = new Map<string, Tables[TableName]>();
  readonly #queues = new Map<string, Waiting[]>();
  readonly #open = new Map<string, Set<string>>();
  #numbers = 0;

  constructor(setting: Setting, heard: (lock: string, by: Owner) => void) {
    this.#setting = setting;
    this.#heard = heard;
  }

  get<Name extends TableName>(table: Name, id: string): Tables[Name] | undefined {
    // A row stands under the name of its table.
    return this.#rows.get(`${table}/${id}`) as Tables[Name] | undefined;
  }

  /** Commands of a machine that are not settled, oldest first; unknown ones are among them until their late receipt. */
  unsettled(executor: string): readonly string[] {
    return [...(this.#open.get(executor) ?? [])];
  }

  /** The time of a command has passed: what is unknown of it can be settled, and is looked for no more. */
  pastDeadline(id: string): void {
    const row = this.get('commands', id);
    if (row && stateName(row.stored.value) === 'unknown') this.#open.get(row.executor)?.delete(id);
  }

  /** The next of the numbers that only rise: fences, sequences. */
  next(): number {
    this.#numbers += 1;
    return this.#numbers;
  }

  /** Runs `body` under the lock of one machine; `after` hears its result once it is durable, `refused` the code of a Refused. */
  write<Result>(
    owner: Owner,
    lock: string,
    work: {
      readonly body: (tx: Transaction) => Result;
      readonly after?: (result: Result) => void;
      readonly refused?: (code: string) => void;
    },
  ): void {
    const waiting: Waiting = {
      owner,
      body: work.body,
      // `body` of this very transaction made it.
      after: (result) => work.after?.(result as Result),
      refused: (code) => work.refused?.(code),
    };
    const queue = this.#queues.get(lock);
    if (queue) queue.push(waiting);
    else {
      this.#queues.set(lock, [waiting]);
      this.#begin(lock);
    }
  }

  #begin(lock: string): void {
    const waiting = this.#queues.get(lock)?.[0];
    if (waiting === undefined) {
      this.#queues.delete(lock);
      return;
    }
    if (!waiting.owner.alive) return this.#end(lock);
    const tx = new Transaction(this);
    let result: unknown;
    try {
      result = waiting.body(tx);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      waiting.refused(error.code);
      return this.#end(lock);
    }
    const { random, timeline } = this.#setting;
    const takes = tx.writes.size === 0 ? 0 : random.between(COMMIT_MS.least, COMMIT_MS.most);
    timeline.after(takes, () => {
      if (waiting.owner.alive) {
        this.commit(tx);
        if (tx.writes.size > 0) this.#heard(lock, waiting.owner);
        waiting.after(result);
      }
      this.#end(lock);
    });
  }

  #end(lock: string): void {
    this.#queues.get(lock)?.shift();
    this.#begin(lock);
  }

  /** Makes what a transaction wrote visible at once; what takes its time goes through `write`. */
  commit(tx: Transaction): void {
    const { tracer, watch } = this.#setting;
    for (const [key, { table, row }] of tx.writes) {
      watch.stored(table, this.#rows.get(key), row, tx.audit);
      this.#rows.set(key, row);
      // The row of a table is of its kind.
      if (table === 'commands') this.#index(row as Tables['commands']);
    }
    for (const told of tx.told) tracer.stored('control-plane', told);
    if (tx.writes.size > 0 && tx.told.length === 0) tracer.decided();
  }

  #index(row: Tables['commands']): void {
    const settled = row.stored.status === 'done';
    const open = this.#open.get(row.executor) ?? new Set();
    if (settled) open.delete(row.id);
    else open.add(row.id);
    this.#open.set(row.executor, open);
  }
}
