/*
 * Everything that is ever signed, by whom, and in which shape. Each type is its own domain tag, so a signature made for one
 * purpose is refused for every other. Payloads are msgpack of codec.ts; `key-store` builds them itself from typed fields.
 *
 * `guard` is the key's own counter: reserved on disk in blocks before use and skipped after a crash, so it never repeats for
 * one key. A verifier that sees it go backwards has met a clone or an old copy (S-208, N-504).
 */
import * as z from 'zod';
import { decode, encode } from './codec.ts';
import { isSignedBy, statementDigest } from './signed.ts';
import type { AdmittedKey, Signed } from './signed.ts';
import {
  agentIdSchema,
  bindingIdSchema,
  bytes,
  bytesTo,
  commandIdSchema,
  counterSchema,
  digestSchema,
  executorIdSchema,
  organisationIdSchema,
  pairingIdSchema,
  personIdSchema,
  projectIdSchema,
  promotionIdSchema,
  reviewIdSchema,
  runIdSchema,
  teamIdSchema,
  timeSchema,
} from './ids.ts';

const guard = counterSchema;
const at = timeSchema;
const publicKey = bytes(32);
const nonce = bytes(32);
const requestId = z.string().regex(/^req_[0-9a-f]{32}$/);

/** Who a command acts for; immutable for the life of its run. */
const originSchema = z.strictObject({
  person: personIdSchema,
  /** Absent when the person acts alone: review difference and promotion. */
  agent: agentIdSchema.optional(),
  conversation: z.string().min(1).max(128),
  project: projectIdSchema,
});

/** How a command ended, as the machine knows it. */
export const outcomeSchema = z.enum(['succeeded', 'failed', 'refused', 'cancelled', 'expired']);
export type Outcome = z.infer<typeof outcomeSchema>;

/** Where the machine's ledger stood when this was signed: the verifier remembers the highest and detects a copy by it. */
const ledger = { ledgerCount: counterSchema, ledgerHead: digestSchema };

const receipt = {
  guard,
  at,
  executor: executorIdSchema,
  command: commandIdSchema,
  epoch: counterSchema,
  envelopeDigest: digestSchema,
  /** Digest of the statement before this one in the chain: leased, accepted, started, result-acknowledged. */
  previous: digestSchema,
};

/** Statements that a machine's key may sign. */
export const machineStatements = {
  /** Enrolment: proof of the key over the operator's challenge and the first descriptor. */
  'machine.enrol': z.strictObject({
    guard,
    at,
    requestId,
    challenge: nonce,
    publicKey,
    descriptorDigest: digestSchema,
  }),
  /** Eight-digit pairing: the first request. */
  'machine.pair-start': z.strictObject({
    guard,
    at,
    requestId,
    machineName: z.string().min(1).max(64),
    publicKey,
    descriptorDigest: digestSchema,
  }),
  /** Asks how far the person on the page is. */
  'machine.pair-poll': z.strictObject({ guard, at, pairing: pairingIdSchema }),
  /** The person at the machine says yes or no to exactly these facts. */
  'machine.pair-confirm': z.strictObject({
    guard,
    at,
    pairing: pairingIdSchema,
    claimDigest: digestSchema,
    answer: z.enum(['confirm', 'reject']),
  }),
  /** Ends a pairing in favour of a new one; signed by the old and the new key. */
  'machine.replace': z.strictObject({
    guard,
    at,
    pairing: pairingIdSchema,
    oldExecutor: executorIdSchema,
    oldPublicKey: publicKey,
    newPublicKey: publicKey,
  }),
  'machine.descriptor': z.strictObject({
    guard,
    at,
    executor: executorIdSchema.optional(),
    revision: z.int().min(1),
    descriptorDigest: digestSchema,
  }),
  /** Proves possession over a fresh challenge and states the head of the ledger. */
  'machine.session': z.strictObject({
    guard,
    at,
    executor: executorIdSchema,
    challenge: nonce,
    nonce,
    ...ledger,
    capabilityRevision: z.int().min(1),
    /** The ledger's own head at the count that the challenge named: equal on both sides, or one of them is a copy. */
    acknowledgedCount: counterSchema,
    acknowledgedHead: digestSchema,
    /** A person at the machine ran `repair` since the last answered session: the way out of the state `error`. */
    repaired: z.boolean(),
  }),
  'machine.heartbeat': z.strictObject({ guard, at, executor: executorIdSchema, epoch: counterSchema, ...ledger }),
  'machine.accepted': z.strictObject(receipt),
  'machine.started': z.strictObject(receipt),
  'machine.result': z.strictObject({ ...receipt, ...ledger, outcome: outcomeSchema, resultDigest: digestSchema }),
  /** The machine will not run this command; `code` names the check, `gate` where it stands. */
  'machine.refused': z.strictObject({ ...receipt, code: z.string().max(64) }),
  /** New key in place of the old; signed by both. */
  'machine.rotation': z.strictObject({
    guard,
    at,
    executor: executorIdSchema,
    oldPublicKey: publicKey,
    newPublicKey: publicKey,
    rotation: z.int().min(1),
  }),
} as const;

/** The tie of run and operation to one machine, and everything that a command must not be separated from. */
export const envelopeSchema = z.strictObject({
  guard,
  protocolVersion: z.int(),
  executor: executorIdSchema,
  command: commandIdSchema,
  run: runIdSchema,
  origin: originSchema,
  binding: bindingIdSchema,
  fence: z.int().min(1),
  epoch: z.int().min(1),
  capabilityRevision: z.int().min(1),
  catalogueDigest: digestSchema,
  policyDigest: digestSchema,
  operation: z.string().min(1).max(64),
  mode: z.enum(['foreground', 'background']),
  maximumRuntimeMs: z.int().min(1),
  notBefore: timeSchema,
  expiresAt: timeSchema,
  idempotencyKey: z.string().min(1).max(128),
  argumentsDigest: digestSchema,
  contentDigest: digestSchema,
});
export type CommandEnvelope = z.infer<typeof envelopeSchema>;

/** What a person approved, bound to everything that could make it another thing. */
export const approvalSchema = z.strictObject({
  guard,
  promotion: promotionIdSchema,
  executor: executorIdSchema,
  run: runIdSchema,
  person: personIdSchema,
  agent: agentIdSchema,
  review: reviewIdSchema,
  manifestDigest: digestSchema,
  /** Identity of the root that the machine stated; `promote` recomputes it. */
  rootIdentity: digestSchema,
  fence: z.int().min(1),
  policyDigest: digestSchema,
  /** Grows with each approval of one executor; `promote` refuses one below the highest it has seen. */
  sequence: z.int().min(1),
  notBefore: timeSchema,
  expiresAt: timeSchema,
});
export type Approval = z.infer<typeof approvalSchema>;

/** Statements that a control plane's command key may sign. */
export const controlStatements = {
  'control.command': envelopeSchema,
  'control.leased': z.strictObject({
    guard,
    at,
    executor: executorIdSchema,
    command: commandIdSchema,
    epoch: z.int().min(1),
    envelopeDigest: digestSchema,
  }),
  /** Countersigns a result: from now on it is a receipt. */
  'control.acknowledged': z.strictObject({
    guard,
    at,
    executor: executorIdSchema,
    command: commandIdSchema,
    receiptDigest: digestSchema,
    verdict: z.enum(['settled', 'refused', 'duplicate']),
  }),
  /** Answers one session proof; `epoch` fences every earlier connection. */
  'control.session': z.strictObject({
    guard,
    at,
    executor: executorIdSchema,
    nonce,
    epoch: z.int().min(1),
    /** What the control plane has of the machine's ledger. */
    acknowledgedCount: counterSchema,
    acknowledgedHead: digestSchema,
    /** `in-error`: the past fits, yet nothing is taken until a person repaired this machine; `epoch` is the one that stands. */
    verdict: z.enum(['online', 'ledger-behind', 'ledger-forked', 'in-error', 'revoked', 'descriptor-needed']),
  }),
  /** Answers one control question, over the daemon's nonce. */
  'control.answer': z.strictObject({
    guard,
    at,
    executor: executorIdSchema,
    nonce,
    epoch: z.int().min(1),
    standing: z.enum(['accepting', 'paused', 'draining', 'fenced', 'revoked']),
    /** Commands that somebody wants ended; may overtake the command. */
    cancel: z.array(commandIdSchema).max(64),
    /** Runs that ended: their pieces on the machine are let go. */
    endedRuns: z.array(runIdSchema).max(64),
    /** Revision and policy digest that a person confirmed last. */
    confirmedRevision: counterSchema,
    confirmedPolicyDigest: digestSchema,
  }),
  'control.approval': approvalSchema,
  /** New command key in place of the old; signed by both. */
  'control.rotation': z.strictObject({
    guard,
    at,
    oldPublicKey: publicKey,
    newPublicKey: publicKey,
    rotation: z.int().min(1),
  }),
} as const;

/** The facts that a person at the machine confirms; its digest is `claimDigest`. Rebuilt by both sides as canonical JSON. */
export const claimSchema = z.strictObject({
  executor: executorIdSchema,
  pairing: pairingIdSchema,
  organisation: organisationIdSchema,
  organisationName: z.string().max(128),
  team: teamIdSchema,
  teamName: z.string().max(128),
  scope: z.enum(['private', 'project', 'organization']),
  label: z.string().min(1).max(64),
});
export type Claim = z.infer<typeof claimSchema>;

/** Every statement by its domain tag. */
export const statements = { ...machineStatements, ...controlStatements };
export type StatementType = keyof typeof statements;
export type Statement<Type extends StatementType> = z.infer<(typeof statements)[Type]>;
export type MachineStatementType = keyof typeof machineStatements;
export type ControlStatementType = keyof typeof controlStatements;

/** A statement whose signature was checked before it was parsed. */
export interface Opened<Type extends StatementType> {
  readonly statement: Statement<Type>;
  /** What the next link of a chain names, 32 bytes. */
  readonly digest: Buffer;
}

/** Bytes of a statement. Throws ZodError for fields outside its shape. */
export function encodeStatement<Type extends StatementType>(type: Type, statement: Statement<Type>): Buffer {
  return encode(statements[type].parse(statement));
}

/** Verifies, then parses. Undefined when the key did not sign exactly this domain; throws CodecError or ZodError after that. */
export function openStatement<Type extends StatementType>(
  type: Type,
  key: AdmittedKey,
  signed: Signed,
): Opened<Type> | undefined {
  if (!isSignedBy(key, type, signed)) return undefined;
  // The schema of `type` decides the shape; the compiler cannot follow an indexed lookup through parse.
  const statement = statements[type].parse(decode(signed.payload)) as Statement<Type>;
  return { statement, digest: statementDigest(type, signed.payload) };
}

/** Parses without verifying, for a reader that shows what somebody else decides about. Throws CodecError or ZodError. */
export function readUnverified<Type extends StatementType>(type: Type, signed: Signed): Statement<Type> {
  // As above.
  return statements[type].parse(decode(signed.payload)) as Statement<Type>;
}

/** Largest arguments of a command, encoded, in bytes. */
export const ARGUMENTS_LIMIT_BYTES = 131_072;
/** Arguments or content of a command as bytes. */
export const argumentBytesSchema = bytesTo(ARGUMENTS_LIMIT_BYTES);
