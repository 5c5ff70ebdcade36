/*
 * daemon: what the owner's command line may ask it.
 *
 *   transport   the owner-only listener `run/cli.sock` (0600 in a 0700 folder), frames of helpers/protocol/frame.ts,
 *               messages of envelope.ts
 *   asks        `cli`, started by the owner with the owner's own rights
 *   tells       `cli`, by events: progress of what it asked for
 *   trust       whoever can open the listener is the owner; nonsense closes that one connection and nothing else
 *
 * Pin, confirmations and policy are files that `cli` writes itself; the daemon cannot.
 */
import * as z from 'zod';
import {
  bytes,
  commandIdSchema,
  counterSchema,
  digestTextSchema,
  executorIdSchema,
  promotionIdSchema,
  runIdSchema,
  timeSchema,
} from '../helpers/protocol/ids.ts';
import { triedSchema } from '../helpers/protocol/file-system.ts';
import { pastSchema, undoneSchema, undoPlanSchema } from '../helpers/protocol/history-facts.ts';
import { claimSchema } from '../helpers/protocol/statements.ts';
import { differenceSchema, draftFactsSchema } from '../helpers/protocol/draft-facts.ts';

/** Raised by any change of a union below. */
export const DAEMON_PROTOCOL_VERSION = 5;

const state = z.enum([
  'unpaired',
  'pairing',
  'recovering',
  'connecting',
  'online',
  'fenced',
  'draining',
  'stopping',
  'error',
]);

/** What `status` prints; every fact is probed when asked. */
const status = z.strictObject({
  state,
  executor: executorIdSchema.nullable(),
  label: z.string().nullable(),
  rootName: z.string().nullable(),
  fingerprint: digestTextSchema.nullable(),
  commandKeyFingerprint: digestTextSchema.nullable(),
  /** Public keys, 64 hexadecimal digits, as `receipts verify` wants them; null where there is none or key-store is away. */
  publicKey: digestTextSchema.nullable(),
  commandKey: digestTextSchema.nullable(),
  /** Why the state is `error`, and what the control plane last said of this machine. */
  fault: z.string().nullable(),
  standing: z.enum(['accepting', 'paused', 'draining', 'fenced', 'revoked', 'unknown']),
  epoch: counterSchema,
  lastControlAt: timeSchema.nullable(),
  revision: z.strictObject({ stated: counterSchema, confirmed: counterSchema }),
  policy: z.discriminatedUnion('state', [
    z.strictObject({ state: z.literal('in-force'), digest: digestTextSchema }),
    z.strictObject({
      state: z.literal('waiting'),
      digest: digestTextSchema,
      confirmedDigest: digestTextSchema.nullable(),
    }),
    z.strictObject({ state: z.literal('invalid'), message: z.string().max(800) }),
  ]),
  ledger: z.discriminatedUnion('state', [
    z.strictObject({ state: z.literal('whole'), count: counterSchema }),
    z.strictObject({ state: z.literal('damaged'), code: z.string() }),
  ]),
  running: z
    .array(z.strictObject({ command: commandIdSchema, run: runIdSchema, operation: z.string(), phase: z.string() }))
    .max(64),
  rows: z.array(z.strictObject({ row: z.string(), connected: z.boolean(), restarts: counterSchema })),
});
export type DaemonStatus = z.infer<typeof status>;

const pairingState = z.discriminatedUnion('state', [
  z.strictObject({ state: z.literal('none') }),
  z.strictObject({
    state: z.literal('sending'),
    fingerprint: digestTextSchema.nullable(),
    attempt: counterSchema,
    problem: z.string().max(64).nullable(),
  }),
  z.strictObject({
    state: z.literal('offered'),
    /** Eight digits in the code flow; null where an operator enrols. */
    code: z.string().nullable(),
    fingerprint: digestTextSchema,
    commandKeyFingerprint: digestTextSchema,
    expiresAt: timeSchema,
  }),
  z.strictObject({
    state: z.literal('claimed'),
    claim: claimSchema,
    claimDigest: digestTextSchema,
    fingerprint: digestTextSchema,
    commandKeyFingerprint: digestTextSchema,
  }),
  z.strictObject({
    state: z.literal('paired'),
    claim: claimSchema,
    executor: executorIdSchema,
    fingerprint: digestTextSchema,
    commandKey: bytes(32),
    rootIdentity: bytes(32),
  }),
  z.strictObject({
    state: z.literal('ended'),
    outcome: z.enum(['refused', 'cancelled', 'expired', 'failed']),
    code: z.string().max(64),
  }),
]);
export type PairingState = z.infer<typeof pairingState>;

const nothing = z.strictObject({});

/** Ends the pairing of this machine in favour of the new one; signed by the old and the new key. */
const replace = z.boolean().optional();

export const daemonRequests = {
  'daemon.status': { body: nothing, reply: status },
  /** Begins a pairing; with one under way: its state. Refused: ALREADY_PAIRED. */
  'daemon.pair': {
    body: z.discriminatedUnion('flow', [
      z.strictObject({ flow: z.literal('code'), machineName: z.string().min(1).max(64), replace }),
      z.strictObject({
        flow: z.literal('enrolment'),
        machineName: z.string().min(1).max(64),
        requestId: z.string().regex(/^req_[0-9a-f]{32}$/),
        challenge: bytes(32),
      }),
    ]),
    reply: pairingState,
  },
  'daemon.pairing': { body: nothing, reply: pairingState },
  /** The person at the machine answers the claim that they were shown, named by its digest. */
  'daemon.pair-answer': {
    body: z.strictObject({ answer: z.enum(['confirm', 'reject']), claimDigest: digestTextSchema }),
    reply: pairingState,
  },
  'daemon.pair-cancel': { body: nothing, reply: pairingState },
  'daemon.drafts': { body: nothing, reply: z.strictObject({ drafts: z.array(draftFactsSchema).max(10_000) }) },
  'daemon.discard': { body: z.strictObject({ run: runIdSchema }), reply: z.strictObject({ discarded: z.boolean() }) },
  /** One change of a draft with its local difference; the page under `review RUN`. */
  'daemon.difference': {
    body: z.strictObject({ run: runIdSchema, change: counterSchema }),
    reply: differenceSchema,
  },
  /** Promotions that are kept, newest first. */
  'daemon.history': { body: nothing, reply: z.strictObject({ promotions: z.array(pastSchema).max(1000) }) },
  /** What the root's file system has, found by trying it. */
  'daemon.file-system': { body: nothing, reply: triedSchema },
  /** What undoing one of them would change, from a number on. */
  'daemon.undo-plan': {
    body: z.strictObject({ promotion: promotionIdSchema, from: counterSchema }),
    reply: undoPlanSchema,
  },
  /** Takes a promotion back, once `cli` has written that the owner confirmed it; `unknown` where nobody can say now how it ended. */
  'daemon.undo': {
    body: z.strictObject({ promotion: promotionIdSchema }),
    reply: z.discriminatedUnion('outcome', [
      ...undoneSchema.options,
      z.strictObject({ outcome: z.literal('unknown') }),
    ]),
  },
  /** Identity of the root as `workspace` sees it now, for the pin and the confirmation that `cli` writes. */
  'daemon.root': { body: nothing, reply: z.strictObject({ rootName: z.string(), rootIdentity: bytes(32) }) },
  /** New machine key; signed by both, resumed after a crash. */
  'daemon.rotate-key': { body: nothing, reply: z.strictObject({ fingerprint: digestTextSchema }) },
  /** What the ledger knows of commands, newest first, without content. */
  'daemon.commands': {
    body: z.strictObject({ limit: z.int().min(1).max(1000) }),
    reply: z.strictObject({
      commands: z
        .array(
          z.strictObject({
            command: commandIdSchema,
            run: runIdSchema,
            operation: z.string(),
            phase: z.string(),
            outcome: z.string().nullable(),
            code: z.string().nullable(),
          }),
        )
        .max(1000),
    }),
  },
  /** Traces as JSON lines, from `after` on; redacted as every trace is. */
  'daemon.trace': {
    body: z.strictObject({ after: counterSchema, limit: z.int().min(1).max(2000) }),
    reply: z.strictObject({ lines: z.array(z.string()).max(2000), next: counterSchema }),
  },
  /** A person saw the fault of state `error` and wants the daemon to try again from what is on disk. */
  'daemon.repair': {
    body: z.strictObject({ journal: z.enum(['leave', 'restore', 'set-aside']) }),
    reply: z.strictObject({ state, settled: z.array(z.string()).max(100) }),
  },
  /** Erases the key and every record of the pairing; the control plane's record stays. */
  'daemon.forget': { body: nothing, reply: nothing },
  'daemon.stop': { body: nothing, reply: nothing },
} as const;

export type DaemonRequest = keyof typeof daemonRequests;
export type DaemonBody<Type extends DaemonRequest> = z.infer<(typeof daemonRequests)[Type]['body']>;
export type DaemonReply<Type extends DaemonRequest> = z.infer<(typeof daemonRequests)[Type]['reply']>;

export const daemonRefusals = [
  'ALREADY_PAIRED',
  'NOT_PAIRED',
  'NO_PAIRING',
  'CLAIM_CHANGED',
  'DRAFTS_REMAIN',
  'OFFLINE',
  'HELPER_UNAVAILABLE',
  'NOT_IN_ERROR',
  'REQUEST_INVALID',
  'ROTATION_REFUSED',
  'RECORDS_UNWRITABLE',
  'BUSY',
] as const;
export type DaemonRefusal = (typeof daemonRefusals)[number];
