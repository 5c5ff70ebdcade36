import { aboutError } from '../about-error.ts';
import type { ExecutorId } from '../../helpers/protocol/ids.ts';
import type { WorkQuestion } from '../channel/lanes.ts';
import { openPayload } from '../payloads/store.ts';
import { MESSAGE_LIMIT_BYTES } from '../protocol.ts';
import type { CommandFrame } from '../protocol.ts';
import { record } from '../audit/record.ts';
import { Refusal } from '../refusal.ts';
import { loseCommands, tellCancel } from './cancel.ts';
import { signLeases } from './envelope.ts';
import { entryOf, leaseFacts, leaseOne } from './lease.ts';
import type { Leased, Waiting } from './lease.ts';
import type { Work } from './work.ts';

/** Most fresh commands that one round takes. */
const ROUND_LIMIT = 64;
/** Room for envelope, lease and framing of one command in a message, in bytes. */
const ENVELOPE_BYTES = 4096;

interface Fresh {
  readonly waiting: Waiting;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

interface Desk {
  fresh: Fresh[];
  running: boolean;
  /** Something happened while a round ran. */
  again: boolean;
  /** The queue of the store may hold commands of this executor. */
  queued: boolean;
}

/**
 * Brings commands to machines, one round at a time for each executor: what arrived meanwhile shares the next round, its
 * signatures and its flush. A fresh command that meets a held question is stored and leased in the same transaction.
 */
export class Dispatcher {
  readonly #work: () => Work;
  readonly #desks = new Map<ExecutorId, Desk>();

  constructor(work: () => Work) {
    this.#work = work;
  }

  /** Resolves when the command is durable, leased or queued. Rejects with Refusal when the gate says no, and then nothing remains. */
  submit(waiting: Waiting): Promise<void> {
    const executor = waiting.row.executor;
    return new Promise((resolve, reject) => {
      this.#desk(executor).fresh.push({ waiting, resolve, reject });
      this.poke(executor);
    });
  }

  /** A question is held, or the machine accepts again: what waits may be leased. */
  poke(executor: ExecutorId): void {
    const desk = this.#desk(executor);
    desk.again = true;
    if (!desk.running) void this.#run(executor, desk);
  }

  /** Commands were queued by somebody else: before a restart, or by another process. */
  expectQueued(executor: ExecutorId): void {
    this.#desk(executor).queued = true;
    this.poke(executor);
  }

  #desk(executor: ExecutorId): Desk {
    const known = this.#desks.get(executor);
    if (known) return known;
    const desk = { fresh: [], running: false, again: false, queued: true };
    this.#desks.set(executor, desk);
    return desk;
  }

  async #run(executor: ExecutorId, desk: Desk): Promise<void> {
    desk.running = true;
    try {
      while (desk.again) {
        desk.again = false;
        await this.#round(executor, desk);
      }
    } catch (error) {
      // Only what follows a round can end here; commands stand in the store, and the sweep keeps their deadlines.
      this.#work().log.error(
        { ...aboutError(error), executor },
        'bringing commands to a machine failed; the next question tries again',
      );
    } finally {
      desk.running = false;
    }
  }

  async #round(executor: ExecutorId, desk: Desk): Promise<void> {
    const work = this.#work();
    const fresh = desk.fresh.splice(0, ROUND_LIMIT);
    desk.again ||= desk.fresh.length > 0;
    const question = work.lanes.takeWork(executor);
    if (fresh.length === 0 && (!question || !desk.queued)) {
      question?.putBack();
      return;
    }
    let frames: readonly CommandFrame[] = [];
    try {
      frames = await this.#lease(work, executor, desk, fresh, question);
    } catch (error) {
      for (const { reject } of fresh) reject(error);
      // Nothing of the queue was leased either; the machine's next question meets it again.
      desk.queued = true;
      work.log.error(aboutError(error), 'a round of commands failed; nothing of it was leased');
    }
    if (!question) return;
    if (frames.length === 0) question.putBack();
    else if (!question.answer(frames)) await this.#lost(work, executor, question.epoch);
  }

  /** The connection ended while its commands were made durable: nobody can say whether they arrived. */
  async #lost(work: Work, executor: ExecutorId, epoch: number): Promise<void> {
    const lost = await work.store.write((tx) => loseCommands(work, tx, executor, epoch + 1));
    tellCancel(work, lost);
  }

  async #lease(
    work: Work,
    executor: ExecutorId,
    desk: Desk,
    fresh: readonly Fresh[],
    question: WorkQuestion | undefined,
  ): Promise<CommandFrame[]> {
    const facts = question && (await leaseFacts(work.store.read, executor, question.epoch));
    const capacity = facts ? question.capacity : 0;
    const queued = capacity > 0 && desk.queued ? await readQueue(work, executor, capacity) : [];
    if (capacity > queued.length) desk.queued = false;
    const all = [...queued, ...fresh.map(({ waiting }) => waiting)];
    const chosen = fitting(all.slice(0, capacity));
    const leases = facts ? await signLeases(work.signer, chosen, facts, work.clock.now()) : [];
    const results = await Promise.allSettled(
      all.map((waiting, index) => work.store.write((tx) => leaseOne(work, tx, waiting, leases[index]))),
    );
    for (const [index, { waiting, resolve, reject }] of fresh.entries()) {
      const result = results[queued.length + index];
      if (result?.status !== 'rejected') resolve();
      else reject(await this.#refused(work, waiting, result.reason));
    }
    return settle(work, desk, all, results);
  }

  /** Records a refusal of the gate; the transaction of the command took back everything else. */
  async #refused(work: Work, waiting: Waiting, reason: unknown): Promise<unknown> {
    if (!(reason instanceof Refusal)) return reason;
    const entry = { ...entryOf(waiting), action: 'command.refused', outcome: 'refused', reason: reason.code } as const;
    await work.store.write((tx) => record(work, tx, entry));
    return reason;
  }
}

/** As many of the first commands as fit into one message; one always does. */
function fitting(waiting: readonly Waiting[]): readonly Waiting[] {
  let bytes = 0;
  const end = waiting.findIndex(({ arguments: args, content }, index) => {
    bytes += args.length + content.length + ENVELOPE_BYTES;
    return index > 0 && bytes > MESSAGE_LIMIT_BYTES;
  });
  return end === -1 ? waiting : waiting.slice(0, end);
}

function settle(
  work: Work,
  desk: Desk,
  all: readonly Waiting[],
  results: readonly PromiseSettledResult<Leased>[],
): CommandFrame[] {
  const frames: CommandFrame[] = [];
  for (const [index, result] of results.entries()) {
    if (result.status === 'rejected') continue;
    const { value } = result;
    if (value.state === 'leased') frames.push(value.frame);
    if (value.state === 'queued') {
      desk.queued = true;
      desk.again ||= value.stale;
    }
    const id = all[index]?.row.id;
    if (value.state === 'refused' && id !== undefined) {
      work.outcomes.tell(id, { outcome: 'refused', gate: 'control-plane', code: value.code, result: undefined });
    }
  }
  return frames;
}

/** The oldest queued commands of an executor with everything that their envelopes need. */
async function readQueue(work: Work, executor: ExecutorId, limit: number): Promise<Waiting[]> {
  const rows = await work.store.read
    .selectFrom('jobs')
    .innerJoin('commands', 'commands.id', 'jobs.command')
    .innerJoin('runs', 'runs.id', 'commands.run')
    .innerJoin('bindings', 'bindings.id', 'commands.binding')
    .selectAll('commands')
    .select(['runs.person', 'runs.project', 'runs.conversation', 'bindings.fence'])
    .where('commands.executor', '=', executor)
    .orderBy('jobs.position')
    .limit(limit)
    .execute();
  return Promise.all(
    rows.map(async ({ person, project, conversation, fence, ...row }) => ({
      row,
      person,
      project,
      conversation,
      fence,
      arguments: (await openPayload(work.store.read, work.keys, row.id, 'arguments')) ?? Buffer.alloc(0),
      content: (await openPayload(work.store.read, work.keys, row.id, 'content')) ?? Buffer.alloc(0),
      fresh: false,
    })),
  );
}
