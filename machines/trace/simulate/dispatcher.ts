/*
 * How commands reach machines in a simulated world, as server/commands/dispatcher.ts and lease.ts do it: one round at a time for each
 * machine, signed first, and leased by a transaction that asks the gate again.
 */
import { EARLY_MS, stateName } from '../../../server/commands/rules.ts';
import type { LeaseFacts } from '../../../server/commands/rules.ts';
import type { ControlPlane, Session } from './control-plane.ts';
import type { Transaction } from './database.ts';
import { digestOf } from './digests.ts';
import { isAvailable, leaseRow, lifetimeOf } from './facts.ts';
import type { Frame } from './messages.ts';
import { executorOf, loseCommands, stepCommand } from './server-steps.ts';
import type { CommandRow } from './tables.ts';

/** How long an approval is valid from its lease, in ms. */
const APPROVED_MS = 180_000;

/** The rounds of one process. */
export class Dispatcher {
  readonly #plane: ControlPlane;
  readonly #rounds = new Map<string, 'running' | 'again'>();

  constructor(plane: ControlPlane) {
    this.#plane = plane;
  }

  /** A question is held, or something is queued: what waits may be leased. */
  poke(executor: string): void {
    if (this.#rounds.has(executor)) this.#rounds.set(executor, 'again');
    else this.#round(executor);
  }

  #round(executor: string): void {
    const plane = this.#plane;
    const { rules } = plane.setting;
    const session = plane.laneOf(executor);
    if (!session?.work) return;
    const facts = rules.leaseFactsOf(leaseRow(plane.database.get('executors', executor)), session.epoch);
    const queued = this.#queued(executor).slice(0, session.work.capacity);
    if (!facts || queued.length === 0) return;
    const { work } = session;
    session.work = undefined;
    this.#rounds.set(executor, 'running');
    plane.signed(() =>
      plane.database.write(plane, executor, {
        body: (tx) => queued.map((id) => lease(plane, tx, id, facts)),
        after: (leased) => {
          const again = this.#rounds.get(executor) === 'again' || leased.includes('stale');
          this.#rounds.delete(executor);
          this.#deliver(
            session,
            work,
            leased.filter((one) => typeof one === 'object'),
          );
          if (again) this.poke(executor);
        },
      }),
    );
  }

  #deliver(session: Session, work: NonNullable<Session['work']>, frames: readonly Frame[]): void {
    const plane = this.#plane;
    const { executor, epoch, link } = session;
    if (frames.length === 0) {
      session.work ??= work;
      return;
    }
    if (!link.isOver('server')) return plane.answer(session, work.id, { answer: 'work', frames });
    // The connection ended while its commands were made durable: nobody can say whether they arrived.
    plane.write(executor, (tx) => loseCommands(plane, tx, executor, epoch + 1));
  }

  #queued(executor: string): readonly string[] {
    const { database } = this.#plane;
    return database.unsettled(executor).filter((id) => {
      const command = database.get('commands', id);
      return command !== undefined && stateName(command.stored.value) === 'queued';
    });
  }
}

/** The gate at dispatch and the lease behind it (N-102); `stale` where the envelope says what no longer holds. */
function lease(plane: ControlPlane, tx: Transaction, id: string, facts: LeaseFacts): Frame | 'stale' | undefined {
  const { setting } = plane;
  const { rules, timeline } = setting;
  const command = tx.get('commands', id);
  if (!command || stateName(command.stored.value) !== 'queued') return undefined;
  const row = executorOf(tx, command.executor);
  const answer = isAvailable(setting, row, command.operation);
  if (!answer.available) {
    stepCommand(setting, tx, id, { type: 'command.refused', code: answer.reason });
    return undefined;
  }
  const now = rules.leaseFactsOf(leaseRow(row), facts.epoch);
  if (!now || !rules.stillHolds(facts, now)) return 'stale';
  const { lifetimeMs, runtimeMs } = rules.commandTimes({ lifetimeMs: lifetimeOf(command.operation) }, facts.runtimeMs);
  const envelopeDigest = digestOf(setting.fresh('envelope'));
  const leasedDigest = digestOf(setting.fresh('lease'));
  const event = { type: 'command.lease', epoch: facts.epoch, envelopeDigest, receiptDigest: leasedDigest } as const;
  const leased = stepCommand(setting, tx, id, event);
  if (!leased) return undefined;
  tx.audit.push('command.leased');
  const chain = [
    { type: 'control.command', digest: envelopeDigest },
    { type: 'control.leased', digest: leasedDigest },
  ];
  tx.put('commands', { ...leased, epoch: facts.epoch, deadline: timeline.now + lifetimeMs, chain });
  plane.setting.watch.deadline(id, lifetimeMs);
  const at = setting.epochMs + timeline.now;
  return {
    ...addressOf(command),
    epoch: facts.epoch,
    capabilityRevision: facts.confirmedRevision,
    policyDigest: facts.confirmedPolicyDigest,
    maximumRuntimeMs: runtimeMs,
    notBefore: at - EARLY_MS,
    expiresAt: at + lifetimeMs,
    envelopeDigest,
    leasedDigest,
    approval: approvalOf(tx, command, at),
  };
}

function addressOf(command: CommandRow) {
  const { id, executor, run, operation, binding, fence, idempotencyKey, promotion } = command;
  const byAgent = promotion === undefined;
  return { command: id, executor, run, operation, binding, fence, idempotencyKey, byAgent };
}

function approvalOf(tx: Transaction, { promotion }: CommandRow, at: number): Frame['approval'] {
  const approved = promotion === undefined ? undefined : tx.get('promotions', promotion);
  if (!approved) return undefined;
  const { manifestDigest } = approved.stored.context;
  return { promotion: approved.id, manifestDigest, sequence: approved.sequence, expiresAt: at + APPROVED_MS };
}
