/*
 * What people and agents ask of a simulated control plane: calls, decisions about a machine, reviews and promotions, each in the
 * transaction of its audit entry, as the routes of server/ do it.
 */
import { nothingRemembered } from '../../../server/channel/rules.ts';
import { PREPARED_MS } from '../../../server/drafts/rules.ts';
import type { PromotionFacts } from '../../../server/drafts/rules.ts';
import { stateName } from '../../../server/commands/rules.ts';
import type { ExecutorEvent } from '../../executor/types.ts';
import { begin, step } from '../../step.ts';
import type { ControlPlane } from './control-plane.ts';
import { Refused } from './database.ts';
import type { Transaction } from './database.ts';
import { digestOf } from './digests.ts';
import { agentOperations, isAvailable, lifetimeOf, PROMOTE } from './facts.ts';
import { advanceAccess, executorOf, stepCommand, stepExecutor, stepPromotion } from './server-steps.ts';
import type { CommandRow, ExecutorRow, RunRow } from './tables.ts';

/** A command that somebody wants. */
export interface Call {
  readonly run: string;
  readonly operation: string;
  readonly promotion?: string;
  /** Hears the id of the command, once it is made. */
  readonly made?: (id: string) => void;
}

/** Row of an executor that was just made: its maker administers it, and its agent has every operation. */
export function newExecutor(id: string, stored: ExecutorRow['stored']): ExecutorRow {
  return {
    id,
    stored,
    remembered: nothingRemembered,
    authorizationRevision: 0,
    latest: undefined,
    confirmed: undefined,
    administrators: ['owner'],
    granted: agentOperations,
  };
}

/** Makes a machine that is paired: its key is confirmed by both sides, and it has not proved itself. */
export function makeExecutor(plane: ControlPlane, id: string): void {
  const { rules, watch } = plane.setting;
  plane.database.write(plane, id, {
    body: (tx) => {
      const input = { executorId: id };
      tx.put('executors', newExecutor(id, begin(rules.executorMachine, input).stored));
      tx.told.push({ machine: 'executor', actor: id, event: { type: 'xstate.init', input } });
      stepExecutor(plane.setting, tx, id, { type: 'pairing.confirmed', fingerprint: digestOf(id) });
    },
    after: () => watch.troubled(id),
  });
}

/** A lifecycle event that a person wants. */
export function decide(plane: ControlPlane, executor: string, event: ExecutorEvent): void {
  plane.write(executor, (tx) => void stepExecutor(plane.setting, tx, executor, event));
  if (event.type === 'executor.drain') plane.sweeps.draining(executor);
}

/** Gives or takes an operation of the agent. */
export function grant(plane: ControlPlane, executor: string, operation: string, given: boolean): void {
  plane.write(executor, (tx) => {
    const row = executorOf(tx, executor);
    if (row.granted.includes(operation) === given) throw new Refused('UNCHANGED');
    const granted = given ? [...row.granted, operation] : row.granted.filter((one) => one !== operation);
    tx.put('executors', { ...row, granted });
    tx.audit.push('access.granted');
    advanceAccess(plane.setting, tx, executor);
  });
}

/** Makes somebody an administrator, or takes that back; never from the last one. */
export function administer(plane: ControlPlane, executor: string, person: string, given: boolean): void {
  plane.write(executor, (tx) => {
    const row = executorOf(tx, executor);
    if (row.administrators.includes(person) === given) throw new Refused('UNCHANGED');
    if (!given && plane.setting.rules.isLastAdministrator('private', row.administrators, person))
      throw new Refused('PRIVATE_FINAL_ADMIN_REQUIRED');
    const administrators = given ? [...row.administrators, person] : row.administrators.filter((one) => one !== person);
    tx.put('executors', { ...row, administrators });
    tx.audit.push('access.person-assigned');
    advanceAccess(plane.setting, tx, executor);
  });
}

/** Confirms or refuses the newest revision of what a machine offers. */
export function review(plane: ControlPlane, executor: string, confirms: boolean): void {
  plane.write(executor, (tx) => {
    const row = executorOf(tx, executor);
    const pending = row.latest && tx.get('reviews', `${executor}/${row.latest.revision}`);
    if (!pending || stateName(pending.stored.value) !== 'pending') throw new Refused('REVIEW_ABSENT');
    const { descriptorDigest } = pending.stored.context;
    const event = { type: confirms ? 'descriptor.confirm' : 'descriptor.refuse', descriptorDigest } as const;
    const stepped = step(plane.setting.rules.descriptorReviewMachine, pending.stored, event);
    if (!stepped.ok) throw new Refused(stepped.code);
    tx.put('reviews', { ...pending, stored: stepped.stored });
    tx.told.push({ machine: 'descriptor-review', actor: pending.id, event });
    if (confirms) tx.put('executors', { ...row, confirmed: pending.revision });
    advanceAccess(plane.setting, tx, executor, 'descriptor.reviewed');
  });
}

/** Begins a run on a machine. */
export function beginRun(plane: ControlPlane, executor: string, id: string): void {
  plane.write(executor, (tx) => {
    tx.put('runs', { id, executor, ended: false, reviewed: undefined, bindings: {} });
    tx.audit.push('run.begun');
  });
}

/** Ends a run: its open commands are to end. */
export function endRun(plane: ControlPlane, executor: string, id: string): void {
  plane.write(executor, (tx) => {
    const run = tx.get('runs', id);
    if (!run || run.ended) throw new Refused('RUN_ENDED');
    tx.put('runs', { ...run, ended: true });
    tx.audit.push('run.ended');
    for (const command of plane.database.unsettled(executor)) {
      if (tx.get('commands', command)?.run !== id) continue;
      const event = { type: 'command.cancel', by: 'run-ended' } as const;
      stepCommand(plane.setting, tx, command, event, { cancelWanted: true });
    }
  });
}

/** Wants one command ended. */
export function cancel(plane: ControlPlane, executor: string, command: string): void {
  plane.write(executor, (tx) => {
    const event = { type: 'command.cancel', by: 'person' } as const;
    if (!stepCommand(plane.setting, tx, command, event, { cancelWanted: true })) throw new Refused('COMMAND_ENDED');
  });
}

/** Makes a command of a run and queues it; `refused` hears why there is none. */
export function call(plane: ControlPlane, executor: string, wish: Call, refused?: (code: string) => void): void {
  plane.write(
    executor,
    (tx) => {
      const { id } = makeCommand(plane, tx, executor, wish);
      wish.made?.(id);
    },
    refused,
  );
}

function makeCommand(plane: ControlPlane, tx: Transaction, executor: string, wish: Call): CommandRow {
  const { setting } = plane;
  const { run: runId, operation, promotion } = wish;
  const row = executorOf(tx, executor);
  const run = tx.get('runs', runId);
  if (!run || run.ended) throw new Refused('RUN_ENDED');
  const answer = isAvailable(setting, row, operation);
  if (!answer.available) throw new Refused(answer.reason);
  const binding = bind(plane, tx, run, operation);
  const id = setting.fresh('command');
  const input = { commandId: id, executorId: executor };
  const lifetime = lifetimeOf(operation);
  const command: CommandRow = {
    id,
    executor,
    run: runId,
    operation,
    binding: binding.id,
    fence: binding.fence,
    idempotencyKey: promotion ?? id,
    stored: begin(setting.rules.commandMachine, input).stored,
    epoch: null,
    chain: [],
    cancelWanted: false,
    deadline: setting.timeline.now + lifetime,
    promotion,
  };
  tx.put('commands', command);
  tx.told.push({ machine: 'command', actor: id, event: { type: 'xstate.init', input } });
  tx.audit.push('command.queued');
  plane.sweeps.command(id, command.deadline);
  return command;
}

/** One binding for a run and operation, with a fence of its own (N-101). */
function bind(plane: ControlPlane, tx: Transaction, run: RunRow, operation: string): RunRow['bindings'][string] {
  const known = run.bindings[operation];
  if (known) return known;
  const binding = { id: plane.setting.fresh('binding'), fence: plane.database.next() };
  tx.put('runs', { ...run, bindings: { ...run.bindings, [operation]: binding } });
  return binding;
}

/** Prepares the promotion of what the last review of a run showed. */
export function prepare(plane: ControlPlane, executor: string, runId: string, then: (promotion: string) => void): void {
  const { setting } = plane;
  const id = setting.fresh('promotion');
  plane.write(executor, (tx) => {
    const row = executorOf(tx, executor);
    const run = tx.get('runs', runId);
    if (!run?.reviewed || !row.confirmed) throw new Refused('REVIEW_ABSENT');
    const reviewDigest = digestOf(`review ${run.reviewed}`);
    const manifestDigest = run.reviewed;
    const input = {
      promotionId: id,
      runId,
      executorId: executor,
      reviewDigest,
      manifestDigest,
      confirmation: 'page',
    } as const;
    const facts = factsOf(row, run);
    const stored = begin(setting.rules.promotionMachine, input).stored;
    const expiresAt = setting.timeline.now + PREPARED_MS;
    tx.put('promotions', { id, executor, run: runId, stored, facts, sequence: 0, command: undefined, expiresAt });
    tx.told.push({ machine: 'promotion', actor: id, event: { type: 'xstate.init', input } });
    plane.sweeps.promotion(id, expiresAt);
    setting.timeline.after(0, () => then(id));
  });
}

/** The eight facts of N-146 as they stand now. */
function factsOf(row: ExecutorRow, run: RunRow): PromotionFacts {
  return {
    reviewDigest: digestOf(`review ${run.reviewed}`),
    manifestDigest: run.reviewed ?? '',
    run: run.id,
    person: 'owner',
    agent: 'agent',
    authorizationRevision: row.authorizationRevision,
    granted: row.administrators.length > 0,
    policyDigest: row.confirmed?.policyDigest,
  };
}

/** A person approves with the password what was prepared; the facts are read again in the transaction that makes the command. */
export function approve(plane: ControlPlane, id: string): void {
  const { setting, database } = plane;
  const known = database.get('promotions', id);
  if (!known) return;
  const { executor } = known;
  plane.write(
    executor,
    (tx) => {
      const promotion = tx.get('promotions', id);
      const row = executorOf(tx, executor);
      const run = promotion && tx.get('runs', promotion.run);
      if (!promotion || !run || stateName(promotion.stored.value) !== 'prepared') throw new Refused('PROMOTION_USED');
      const changed = setting.rules.changedFact(promotion.facts, factsOf(row, run));
      if (changed) throw new Refused(changed);
      const { reviewDigest, manifestDigest } = promotion.stored.context;
      tx.put('promotions', { ...promotion, sequence: database.next() });
      const approvalDigest = digestOf(`approval ${id}`);
      stepPromotion(setting, tx, id, { type: 'promotion.approve', reviewDigest, manifestDigest, approvalDigest });
      const command = makeCommand(plane, tx, executor, { run: promotion.run, operation: PROMOTE, promotion: id });
      const sent = stepPromotion(setting, tx, id, { type: 'promotion.dispatched', commandId: command.id });
      if (!sent) throw new Refused('PROMOTION_REVIEW_CHANGED');
      tx.put('promotions', { ...sent, command: command.id });
    },
    (code) => {
      if (!code.startsWith('PROMOTION_') || code === 'PROMOTION_USED') return;
      plane.write(executor, (tx) => void stepPromotion(setting, tx, id, { type: 'promotion.withdrawn', code }));
    },
  );
}

/** Gives a promotion up; once its command is made, its machine decides (N-533). */
export function cancelPromotion(plane: ControlPlane, id: string): void {
  const known = plane.database.get('promotions', id);
  if (!known) return;
  plane.write(known.executor, (tx) => {
    const stepped = stepPromotion(plane.setting, tx, id, { type: 'promotion.cancel', by: 'person' });
    if (!stepped) throw new Refused('PROMOTION_ENDED');
    if (stepped.command === undefined) return;
    const event = { type: 'command.cancel', by: 'person' } as const;
    stepCommand(plane.setting, tx, stepped.command, event, { cancelWanted: true });
  });
}
