/*
 * The gate at dispatch and the lease behind it, in one transaction: what was true when the envelope was signed must be true when
 * it is stored, or it is not handed out.
 *
 * INVARIANT 1  A command is given to a machine only when its state `leased`, both signed statements and the audit entry are durable.
 * INVARIANT 2  All conditions of availability are asked again in that transaction (N-102).
 */
import type { ExecutorId } from '../../helpers/protocol/ids.ts';
import { sha256 } from '../../helpers/protocol/signed.ts';
import { record } from '../audit/record.ts';
import { resolve } from '../availability/store.ts';
import { findExecutor } from '../executors/store.ts';
import { deleteAt } from '../payloads/rules.ts';
import { keepPayload } from '../payloads/store.ts';
import type { CommandFrame } from '../protocol.ts';
import { Refusal } from '../refusal.ts';
import type { Reader, Writer } from '../store/store.ts';
import type { Addressed, SignedLease } from './envelope.ts';
import { leaseFactsOf, OPEN_LIMIT, stillHolds } from './rules.ts';
import type { LeaseFacts } from './rules.ts';
import { NOTED_MS } from '../runs/rules.ts';
import { addToChain, dequeue, enqueue, findCommand, saveCommand, stepRow, YES } from './store.ts';
import type { CommandRow } from './store.ts';
import type { Work } from './work.ts';

/** A command that waits for its machine, with the bytes that travel beside its envelope. */
export interface Waiting extends Addressed {
  readonly arguments: Uint8Array;
  readonly content: Uint8Array;
  /** Not stored yet: its row is inserted by the transaction that leases or queues it. */
  readonly fresh: boolean;
  /** Further rows of the transaction that inserts it. */
  readonly also?: (tx: Writer) => Promise<void>;
}

/** What became of one command in a round of its machine. */
export type Leased =
  | { readonly state: 'leased'; readonly frame: CommandFrame }
  /** `stale` says that a fact changed after the envelope was signed: sign anew. */
  | { readonly state: 'queued'; readonly stale: boolean }
  /** The gate said no to a command that was queued; whoever waits is told. */
  | { readonly state: 'refused'; readonly code: string }
  /** Somebody ended it meanwhile. */
  | { readonly state: 'gone' };

/** What an envelope for this executor would say now; undefined while nothing may be leased to the connection of `epoch`. */
export async function leaseFacts(reader: Reader, executor: ExecutorId, epoch: number): Promise<LeaseFacts | undefined> {
  return leaseFactsOf(await findExecutor(reader, executor), epoch);
}

/**
 * Stores one fresh command, or takes a queued one again, and leases it where `lease` still holds. Throws Refusal with the reason
 * of availability for a fresh command, which then leaves nothing but an audit entry.
 */
export async function leaseOne(
  work: Work,
  tx: Writer,
  waiting: Waiting,
  lease: SignedLease | undefined,
): Promise<Leased> {
  const row = waiting.fresh ? waiting.row : await findCommand(tx, waiting.row.id);
  if (row === undefined || row.state !== 'queued') return { state: 'gone' };
  const refused = await gate(work, tx, waiting);
  if (refused !== undefined) {
    if (waiting.fresh) throw new Refusal(refused, 'the control plane does not permit this now');
    return refuse(work, tx, row, refused);
  }
  const facts = lease && (await leaseFacts(tx, row.executor, lease.facts.epoch));
  if (!lease || !facts || !stillHolds(lease.facts, facts)) {
    if (waiting.fresh) await insert(work, tx, waiting, row, true);
    return { state: 'queued', stale: lease !== undefined };
  }
  const stepped = stepRow(row, {
    type: 'command.lease',
    epoch: lease.facts.epoch,
    envelopeDigest: lease.envelopeDigest.toString('hex'),
    receiptDigest: lease.leasedDigest.toString('hex'),
  });
  if (!stepped.ok) return { state: 'gone' };
  const leased = { ...stepped.row, epoch: lease.facts.epoch, leasedAt: lease.at, deadline: lease.deadline };
  if (waiting.fresh) await insert(work, tx, waiting, leased, false);
  else {
    await saveCommand(tx, leased);
    await dequeue(tx, row.id);
  }
  await addToChain(tx, row.id, 0, lease.at, [
    { type: 'control.command', signed: lease.envelope, digest: lease.envelopeDigest },
    { type: 'control.leased', signed: lease.leased, digest: lease.leasedDigest },
  ]);
  await record(work, tx, {
    ...entryOf(waiting),
    action: 'command.leased',
    outcome: 'done',
    facts: { epoch: facts.epoch },
  });
  const { envelope, leased: signed } = lease;
  return {
    state: 'leased',
    frame: { envelope, leased: signed, arguments: waiting.arguments, content: waiting.content },
  };
}

/** Everything that must hold at this moment; undefined when it does, else the code of what does not. */
async function gate(work: Work, tx: Writer, { row, person, project }: Waiting): Promise<string | undefined> {
  const bound = await tx
    .selectFrom('bindings')
    .innerJoin('runs', 'runs.id', 'bindings.run')
    .select(['bindings.run', 'bindings.operation', 'bindings.executor', 'runs.state'])
    .where('bindings.id', '=', row.binding)
    .executeTakeFirst();
  if (bound?.run !== row.run || bound.operation !== row.operation || bound.executor !== row.executor) {
    return 'BINDING_INVALID';
  }
  // What a person does alone with a run's machine may follow the end of the run.
  if (bound.state !== 'active' && row.agent !== null) return 'RUN_ENDED';
  const { executor, operation } = row;
  const agent = row.agent ?? undefined;
  const answer = await resolve(work, tx, { person, agent, operation, executor, origin: { project } });
  return answer.available ? undefined : answer.reason;
}

async function refuse(work: Work, tx: Writer, row: CommandRow, code: string): Promise<Leased> {
  // What is offline or paused now may be back before the lifetime ends; nothing ran and nothing is lost by waiting.
  if (code === 'offline') return { state: 'queued', stale: false };
  const stepped = stepRow(row, { type: 'command.refused', code });
  if (!stepped.ok) return { state: 'gone' };
  await saveCommand(tx, { ...stepped.row, endedAt: work.clock.now() });
  await dequeue(tx, row.id);
  const { executor, run, id: command } = row;
  await record(work, tx, { action: 'command.refused', executor, run, command, outcome: 'refused', reason: code });
  return { state: 'refused', code };
}

async function insert(work: Work, tx: Writer, waiting: Waiting, row: CommandRow, queue: boolean): Promise<void> {
  const open = await tx
    .selectFrom('commands')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    // a run has one machine, and the index of open commands begins with it
    .where('executor', '=', row.executor)
    .where('run', '=', row.run)
    .where('open', '=', YES)
    .executeTakeFirstOrThrow();
  if (open.count >= OPEN_LIMIT) {
    throw new Refusal('RUN_BUSY', `this run has ${OPEN_LIMIT} commands under way; wait for one of them`, {
      status: 429,
    });
  }
  await requireFirst(tx, row);
  await tx.insertInto('commands').values(row).execute();
  await waiting.also?.(tx);
  const until = deleteAt(row.createdAt, work.keptMs);
  for (const direction of ['arguments', 'content'] as const) {
    const bytes = waiting[direction];
    if (bytes.length > 0) await keepPayload(tx, work.keys, { command: row.id, direction, bytes, deleteAt: until });
  }
  await tx
    .updateTable('runs')
    .set({ activeAt: row.createdAt })
    .where('id', '=', row.run)
    .where('activeAt', '<', row.createdAt - NOTED_MS)
    .execute();
  if (!queue) return;
  await enqueue(tx, row.id);
  await record(work, tx, { ...entryOf(waiting), action: 'command.queued', outcome: 'done' });
}

/** What has a key of its own happens once: a second command of it is refused. */
async function requireFirst(tx: Writer, { id, idempotencyKey }: CommandRow): Promise<void> {
  if (idempotencyKey === id) return;
  const known = await tx
    .selectFrom('commands')
    .select('id')
    .where('idempotencyKey', '=', idempotencyKey)
    .whereRef('idempotencyKey', '!=', 'id')
    .executeTakeFirst();
  if (known) throw new Refusal('COMMAND_REPEATED', 'This was sent already, and is sent once.');
}

/** What an audit entry says of a command, whatever happened to it. */
export function entryOf({ row, person }: Waiting) {
  const { run, executor, id: command, operation } = row;
  return {
    person,
    ...(row.agent === null ? {} : { agent: row.agent }),
    executor,
    run,
    command,
    facts: { operation },
  };
}

/** Digests of what travels beside an envelope, as the row keeps them. */
export function digestsOf(bytes: { readonly arguments: Uint8Array; readonly content: Uint8Array }): {
  readonly argumentsDigest: Buffer;
  readonly contentDigest: Buffer;
} {
  return { argumentsDigest: sha256(bytes.arguments), contentDigest: sha256(bytes.content) };
}
