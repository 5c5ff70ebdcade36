/*
 * What a person does on the page to pair a machine. Each is a deliberate act of a signed-in person; no agent token, chat text or
 * schedule reaches any of it (N-067).
 */
import { descriptorSchema } from '../../helpers/protocol/descriptor.ts';
import type { ExecutorId, PairingId, ProjectId, TeamId } from '../../helpers/protocol/ids.ts';
import { sha256 } from '../../helpers/protocol/signed.ts';
import { pairingMachine } from '../../machines/pairing/machine.ts';
import { begin } from '../../machines/step.ts';
import { addressSubject, limits, takeLimit } from '../accounts/limits.ts';
import { membershipOf } from '../accounts/membership.ts';
import type { Membership } from '../accounts/rules.ts';
import type { SignedIn } from '../accounts/sessions.ts';
import { record } from '../audit/record.ts';
import type { Context } from '../context.ts';
import { createExecutor } from '../executors/lifecycle.ts';
import { mayAdminister, mayCreate } from '../executors/rules.ts';
import { findExecutor, readAccess } from '../executors/store.ts';
import { newId } from '../new-id.ts';
import { Refusal } from '../refusal.ts';
import type { Reader, Writer } from '../store/store.ts';
import type { Scope } from '../store/tables.ts';
import { codeVerifier } from './code.ts';
import {
  claimDigest,
  claimOf,
  expireIfDue,
  findPairing,
  OPEN_STATES,
  PAIRING_MS,
  stepPairing,
  storedOf,
} from './store.ts';
import type { PairingRow } from './store.ts';
import type { ShownPairing } from './answers.ts';

/** What a person decides when a machine is taken in: its name, who it is for, and where it belongs. */
export interface Destination {
  readonly label: string;
  readonly scope: Scope;
  readonly team: TeamId;
  /** For project executors alone. */
  readonly project: ProjectId | null;
}

/** A pairing as the page shows it. */
async function shown(reader: Reader, row: PairingRow): Promise<ShownPairing> {
  const descriptor = row.descriptor === null ? null : descriptorSchema.parse(JSON.parse(row.descriptor));
  const claim = row.executor === null ? null : await claimOf(reader, row);
  return {
    pairing: row.id,
    flow: row.flow,
    state: row.state,
    by: storedOf(row).context.endedBy,
    machineName: row.machineName,
    fingerprint: row.fingerprint,
    platform: descriptor?.platform ?? null,
    sandbox: descriptor?.sandbox ?? null,
    daemonVersion: descriptor?.daemonVersion ?? null,
    rootName: descriptor?.rootName ?? null,
    expiresAt: row.expiresAt,
    executor: row.executor,
    label: claim?.label ?? null,
    scope: claim?.scope ?? null,
    teamName: claim?.teamName ?? null,
  };
}

function absentPairing(): Refusal {
  return new Refusal('PAIRING_UNKNOWN', 'No machine waits under this code.', {
    status: 404,
    remedy: 'Codes live ten minutes: ask the machine for a new one and check each digit.',
  });
}

/** Finds the machine that shows this code. Throws Refusal PAIRING_UNKNOWN, RATE_LIMITED or UNAVAILABLE (N-078). */
export async function lookUpCode(context: Context, by: SignedIn, address: string, code: string): Promise<ShownPairing> {
  await takeLimit(context, limits.lookupsOfAddress, addressSubject(address));
  await takeLimit(context, limits.lookupsOfAccount, by.person);
  const verifier = codeVerifier(context.secrets, code);
  const row = await context.store.write(async (tx) => {
    const found = await tx.selectFrom('pairings').selectAll().where('codeVerifier', '=', verifier).executeTakeFirst();
    return found === undefined ? undefined : expireIfDue(context, tx, found);
  });
  if (row === undefined || !OPEN_STATES.includes(row.state)) throw absentPairing();
  if (row.claimedBy !== null && row.claimedBy !== by.person) throw absentPairing();
  return shown(context.store.read, row);
}

/** Checks that a person may make an executor there, and that team and project are of their organisation (N-060). */
async function requireDestination(tx: Writer, member: Membership, wish: Destination): Promise<void> {
  const isProject = wish.scope === 'project';
  if (isProject !== (wish.project !== null)) {
    throw new Refusal('SCOPE_INVALID', 'A project machine names its project; any other names none.', { status: 400 });
  }
  const team = await tx
    .selectFrom('teams')
    .select('id')
    .where('id', '=', wish.team)
    .where('organisation', '=', member.organisation)
    .executeTakeFirst();
  const project =
    wish.project === null
      ? undefined
      : await tx
          .selectFrom('projects')
          .select('id')
          .where('id', '=', wish.project)
          .where('organisation', '=', member.organisation)
          .where('team', '=', wish.team)
          .executeTakeFirst();
  const exists = team !== undefined && (!isProject || project !== undefined);
  if (exists && mayCreate(member, wish)) return;
  throw new Refusal('SCOPE_NOT_ENTITLED', 'You may not take in a machine for this scope, team or project.', {
    status: 403,
    remedy: 'Choose private, or ask an administrator of the project or organisation.',
  });
}

/**
 * Claims a machine of the eight-digit flow, repeating the fingerprint that the person compared; the same claim again has one effect
 * (N-075). Throws Refusal PAIRING_UNKNOWN, FINGERPRINT_NOT_CONFIRMED, CLAIM_CONFLICT, SCOPE_INVALID or SCOPE_NOT_ENTITLED.
 */
export async function claimPairing(
  context: Context,
  by: SignedIn,
  id: PairingId,
  wish: Destination & { readonly fingerprint: string },
): Promise<ShownPairing> {
  const row = await context.store.write(async (tx) => {
    const member = await membershipOf(tx, by.person);
    const found = await findPairing(context, tx, id);
    const isMine = found?.claimedBy === null || found?.claimedBy === by.person;
    if (found === undefined || found.flow !== 'code' || !isMine || !OPEN_STATES.includes(found.state))
      throw absentPairing();
    if (found.fingerprint !== wish.fingerprint) throw notConfirmed();
    await requireDestination(tx, member, wish);
    if (found.state === 'claimed') return repeatClaim(context, tx, by, found, wish);
    const claimed = await attachExecutor(context, tx, member, found, wish, newId('exr'));
    return stepPairing(context, tx, claimed, await claimedEvent(tx, claimed), by.person);
  });
  context.wake.pairing(row.id, by.person);
  return shown(context.store.read, row);
}

function notConfirmed(): Refusal {
  return new Refusal('FINGERPRINT_NOT_CONFIRMED', 'This is not the fingerprint of the machine that asks.', {
    remedy: 'Compare the fingerprint on the machine with the one on the page, character by character.',
  });
}

async function claimedEvent(tx: Writer, row: PairingRow) {
  const fingerprint = row.fingerprint ?? '';
  return { type: 'pairing.claimed', fingerprint, claimDigest: claimDigest(await claimOf(tx, row)) } as const;
}

async function repeatClaim(
  context: Context,
  tx: Writer,
  by: SignedIn,
  row: PairingRow,
  wish: Destination,
): Promise<PairingRow> {
  const claim = await claimOf(tx, row);
  const { project } = await tx
    .selectFrom('executors')
    .select('project')
    .where('id', '=', claim.executor)
    .executeTakeFirstOrThrow();
  if (project !== wish.project)
    throw new Refusal('CLAIM_CONFLICT', 'This machine was claimed already for another project.');
  const again = { ...claim, label: wish.label, scope: wish.scope, team: wish.team };
  const event = {
    type: 'pairing.claimed',
    fingerprint: row.fingerprint ?? '',
    claimDigest: claimDigest(again),
  } as const;
  return stepPairing(context, tx, row, event, by.person);
}

async function attachExecutor(
  context: Context,
  tx: Writer,
  member: Membership,
  row: PairingRow,
  { label, scope, team, project }: Destination,
  executor: ExecutorId,
): Promise<PairingRow> {
  await createExecutor(context, tx, {
    id: executor,
    organisation: member.organisation,
    team,
    project,
    scope,
    label,
    createdBy: member.person,
  });
  const claim = { executor, claimedBy: member.person, claimedAt: context.clock.now() };
  await tx.updateTable('pairings').set(claim).where('id', '=', row.id).execute();
  return { ...row, ...claim };
}

/** What an operator carries to the machine; the challenge is in this answer and nowhere else. */
export interface Enrolment {
  readonly pairing: PairingId;
  readonly executor: ExecutorId;
  readonly requestId: string;
  /** 32 bytes as 43 characters of base64url. */
  readonly challenge: string;
  readonly expiresAt: number;
}

/** Issues an enrolment of ten minutes for a new executor (N-070, N-071). Throws Refusal SCOPE_INVALID or SCOPE_NOT_ENTITLED. */
export async function issueEnrolment(context: Context, by: SignedIn, wish: Destination): Promise<Enrolment> {
  const challenge = context.random(32);
  const requestId = `req_${context.random(16).toString('hex')}`;
  const id = newId('pair');
  const createdAt = context.clock.now();
  const executor = newId('exr');
  const row = await context.store.write(async (tx) => {
    const member = await membershipOf(tx, by.person);
    await requireDestination(tx, member, wish);
    const { stored } = begin(pairingMachine, {
      pairingId: id,
      flow: 'enrolment',
      requestDigest: null,
      fingerprint: null,
      replaces: null,
    });
    const issued: PairingRow = {
      id,
      flow: 'enrolment',
      requestId,
      factsDigest: null,
      stored: JSON.stringify(stored),
      state: String(stored.value),
      codeVerifier: null,
      codeAttempt: 0,
      challengeVerifier: sha256(challenge),
      machineName: null,
      publicKey: null,
      fingerprint: null,
      descriptor: null,
      descriptorPayload: null,
      descriptorSignature: null,
      executor: null,
      claimedBy: null,
      claimedAt: null,
      replaces: null,
      createdAt,
      expiresAt: createdAt + PAIRING_MS,
    };
    await tx.insertInto('pairings').values(issued).execute();
    await record(context, tx, {
      action: 'enrolment.issued',
      organisation: by.organisation,
      person: by.person,
      outcome: 'done',
      facts: { pairing: id },
    });
    return attachExecutor(context, tx, member, issued, wish, executor);
  });
  return {
    pairing: id,
    executor,
    requestId,
    challenge: challenge.toString('base64url'),
    expiresAt: row.expiresAt,
  };
}

/** A person confirms the fingerprint that an enrolled machine shows (N-065). Throws Refusal PAIRING_UNKNOWN, FINGERPRINT_NOT_CONFIRMED or STATE_TRANSITION_INVALID. */
export async function confirmEnrolment(
  context: Context,
  by: SignedIn,
  id: PairingId,
  fingerprint: string,
): Promise<ShownPairing> {
  const row = await context.store.write(async (tx) => {
    const found = await requireOwn(context, tx, by, id);
    if (found.flow !== 'enrolment') throw new Refusal('FLOW_MISMATCH', 'This pairing is confirmed on the machine.');
    return stepPairing(context, tx, found, { type: 'pairing.confirmed-by-person', fingerprint }, by.person);
  });
  context.wake.pairing(row.id, by.person);
  if (row.executor !== null) context.wake.executor(row.executor);
  return shown(context.store.read, row);
}

/** The person gives a pairing up before it was confirmed. */
export async function cancelByPerson(context: Context, by: SignedIn, id: PairingId): Promise<ShownPairing> {
  const row = await context.store.write(async (tx) => {
    const found = await requireOwn(context, tx, by, id);
    return stepPairing(context, tx, found, { type: 'pairing.cancel', by: 'person' }, by.person);
  });
  context.wake.pairing(row.id, by.person);
  return shown(context.store.read, row);
}

/** Where a pairing stands, for the person who claimed or issued it. */
export async function showPairing(context: Context, by: SignedIn, id: PairingId): Promise<ShownPairing> {
  return shown(context.store.read, await context.store.write((tx) => requireOwn(context, tx, by, id)));
}

/** A pairing of this person: they claimed or issued it and still administer its executor. */
async function requireOwn(context: Context, tx: Writer, by: SignedIn, id: PairingId): Promise<PairingRow> {
  const member = await membershipOf(tx, by.person);
  const row = await findPairing(context, tx, id);
  if (row === undefined || row.executor === null || row.claimedBy !== by.person) throw absentPairing();
  const executor = await findExecutor(tx, row.executor);
  const access = await readAccess(tx, row.executor, by.person);
  if (executor === undefined || !mayAdminister(member, executor, access)) throw absentPairing();
  return row;
}

/** Ends every pairing whose ten minutes passed, so that nothing waits for a machine that never comes. */
export async function expirePairings(context: Context): Promise<void> {
  const due = await context.store.read
    .selectFrom('pairings')
    .select('id')
    .where('state', 'in', OPEN_STATES)
    .where('expiresAt', '<', context.clock.now())
    .execute();
  for (const { id } of due) {
    const row = await context.store.write((tx) => findPairing(context, tx, id));
    if (row?.claimedBy !== undefined && row.claimedBy !== null) context.wake.pairing(id, row.claimedBy);
  }
}
