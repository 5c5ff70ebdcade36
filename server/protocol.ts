/*
 * The control channel and the pairing calls between one executor and its control plane.
 *
 *   channel     one outbound WSS, subprotocol `nessie-executor.v1`, binary messages, no compression
 *   asks        the daemon, always: {kind: question, id, epoch, sequence, type, body}
 *   answers     the control plane: {kind: answer, id, epoch, body} or {kind: refusal, id, code, message}
 *   pairing     HTTPS POST /api/pairing/<call>, msgpack both ways
 *   trust       the daemon believes what the pinned command key signed and nothing else; the control plane believes what the
 *               paired key signed and nothing else; TLS protects against readers, not against either side
 *
 * `work` and `control` are held open by the control plane and are separate lanes: a stop is never behind a command. A message
 * that answers no open question, repeats a sequence or carries another epoch ends the connection. Before the session is
 * proved the epoch is 0 and only `session.challenge` and `session.prove` may be asked.
 */
import * as z from 'zod';
import {
  bytes,
  bytesTo,
  commandIdSchema,
  counterSchema,
  digestTextSchema,
  executorIdSchema,
  pairingIdSchema,
  timeSchema,
} from '../helpers/protocol/ids.ts';
import { signedSchema } from '../helpers/protocol/signed.ts';
import { argumentBytesSchema, claimSchema } from '../helpers/protocol/statements.ts';

/** The one subprotocol; there is no other and no downgrade. */
export const SUBPROTOCOL = 'nessie-executor.v1';
/** Path of the control channel below the API origin. */
export const CHANNEL_PATH = '/api/executor/channel';
/** Largest message of the channel either way, in bytes. */
export const MESSAGE_LIMIT_BYTES = 786_432;

/** Times of the channel, in ms, in the order that must hold between them. */
export const channelTimes = {
  controlHoldMs: 1500,
  controlSilenceStepMs: 3000,
  heartbeatMs: 20_000,
  workHoldMs: 25_000,
  offlineMs: 60_000,
} as const;

/** One command as it travels: what was signed, and the bytes whose digests it carries. */
export const commandFrameSchema = z.strictObject({
  envelope: signedSchema,
  leased: signedSchema,
  /** msgpack of the arguments. */
  arguments: argumentBytesSchema,
  /** Bulk content that an operation takes beside its arguments; empty otherwise. A promotion's signed approval travels here. */
  content: argumentBytesSchema,
});
export type CommandFrame = z.infer<typeof commandFrameSchema>;

/** The receipts of one command that the control plane has not countersigned yet, in chain order. */
export const receiptFrameSchema = z.strictObject({
  command: commandIdSchema,
  receipts: z
    .array(
      z.strictObject({
        type: z.enum(['machine.accepted', 'machine.started', 'machine.result', 'machine.refused']),
        signed: signedSchema,
      }),
    )
    .min(1)
    .max(4),
  /** msgpack of the result, present with `machine.result`. */
  result: bytesTo(420_000).optional(),
  /** This chain began under an earlier connection; it may settle an unknown outcome. */
  late: z.boolean(),
});
export type ReceiptFrame = z.infer<typeof receiptFrameSchema>;

/** Questions of the channel with their answers. */
export const channelQuestions = {
  /** Begins a session; names the ledger count that the control plane has acknowledged. */
  'session.challenge': {
    body: z.strictObject({ executor: executorIdSchema }),
    answer: z.strictObject({ challenge: bytes(32), acknowledgedCount: counterSchema }),
  },
  /** Proves the key; the answer is a signed `control.session` over the proof's nonce. */
  'session.prove': { body: z.strictObject({ proof: signedSchema }), answer: z.strictObject({ session: signedSchema }) },
  /** Held until there is work for at most `capacity` commands, or the hold ends with none. A repeated question gets the same commands. */
  work: {
    body: z.strictObject({ capacity: z.int().min(1).max(64) }),
    answer: z.strictObject({ commands: z.array(commandFrameSchema).max(64) }),
  },
  /** Held until something changed or the hold ends; the answer is a signed `control.answer` over the nonce. */
  control: { body: z.strictObject({ nonce: bytes(32) }), answer: z.strictObject({ answer: signedSchema }) },
  heartbeat: { body: z.strictObject({ heartbeat: signedSchema }), answer: z.strictObject({ at: timeSchema }) },
  /** With a result: countersigned by `control.acknowledged`; without: taken. */
  receipts: { body: receiptFrameSchema, answer: z.strictObject({ acknowledged: signedSchema.optional() }) },
  /** Canonical bytes of a descriptor and their signature (`machine.descriptor`). */
  descriptor: {
    body: z.strictObject({ descriptor: bytesTo(32_768), signed: signedSchema }),
    answer: z.strictObject({ state: z.enum(['confirmed', 'pending']) }),
  },
  rotation: {
    body: z.strictObject({ current: signedSchema, next: signedSchema }),
    answer: z.strictObject({ publicKey: bytes(32) }),
  },
  /** Progress of a long command: shown, bounded, changes nothing. */
  progress: {
    body: z.strictObject({
      command: commandIdSchema,
      number: counterSchema,
      done: counterSchema,
      total: counterSchema,
      phase: z.string().max(32),
    }),
    answer: z.strictObject({}),
  },
} as const;

export type ChannelQuestion = keyof typeof channelQuestions;
export type QuestionBody<Type extends ChannelQuestion> = z.infer<(typeof channelQuestions)[Type]['body']>;
export type AnswerBody<Type extends ChannelQuestion> = z.infer<(typeof channelQuestions)[Type]['answer']>;

const id = z.int().min(1);

/** What the daemon sends. `sequence` grows by one with each message of a connection. */
export const questionSchema = z.strictObject({
  kind: z.literal('question'),
  id,
  epoch: counterSchema,
  sequence: z.int().min(1),
  type: z.string().max(32),
  body: z.unknown(),
});
/** What the control plane sends; `id` is the question's. */
export const answerSchema = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('answer'), id, epoch: counterSchema, body: z.unknown() }),
  z.strictObject({
    kind: z.literal('refusal'),
    id,
    epoch: counterSchema,
    code: z
      .string()
      .regex(/^[A-Z][A-Z0-9_]*$/)
      .max(64),
    message: z.string().max(400),
  }),
]);

/** Why the control plane refuses a question. */
export const channelRefusals = [
  'PROTOCOL_VERSION_UNSUPPORTED',
  'EXECUTOR_UNKNOWN',
  'PROOF_INVALID',
  'CHALLENGE_EXPIRED',
  'CLOCK_SKEW',
  'CONNECTION_FENCED',
  'EXECUTOR_REVOKED',
  'EXECUTOR_ERROR',
  'RECEIPT_INVALID',
  'RECEIPT_OUT_OF_ORDER',
  'RECEIPT_FOREIGN',
  'RESULT_REFUSED',
  'RESULT_DUPLICATE',
  'DESCRIPTOR_ROLLBACK',
  'REVISION_CONFLICT',
  'DESCRIPTOR_INVALID',
  'ROTATION_INVALID',
  'RATE_LIMITED',
  'UNAVAILABLE',
] as const;
export type ChannelRefusal = (typeof channelRefusals)[number];

const requestId = z.string().regex(/^req_[0-9a-f]{32}$/);
const paired = z.strictObject({
  executor: executorIdSchema,
  /** The control plane's command key: pinned by the daemon, its fingerprint confirmed by the person. */
  commandKey: bytes(32),
  claim: claimSchema,
});
const started = z.strictObject({
  publicKey: bytes(32),
  descriptor: bytesTo(32_768),
  descriptorSigned: signedSchema,
  proof: signedSchema,
});

/** HTTPS calls of pairing: bodies and answers, msgpack. A refusal is `{code, message}` with a status of 4xx or 503. */
export const pairingCalls = {
  /** Operators: an enrolment request of ten minutes and its challenge (the proof is `machine.enrol`). */
  enrol: {
    body: z.strictObject({ requestId, challenge: bytes(32), ...started.shape }),
    answer: z.strictObject({ pairing: pairingIdSchema, commandKey: bytes(32), expiresAt: timeSchema }),
  },
  /** Eight digits: the same request with the same facts gives the same answer (`machine.pair-start`). */
  start: {
    body: z.strictObject({ requestId, machineName: z.string().min(1).max(64), ...started.shape }),
    answer: z.strictObject({
      pairing: pairingIdSchema,
      code: z.string().regex(/^\d{8}$/),
      fingerprint: digestTextSchema,
      commandKey: bytes(32),
      expiresAt: timeSchema,
      pollMs: z.int().min(100),
    }),
  },
  /** Where the pairing stands (`machine.pair-poll`). */
  poll: {
    body: z.strictObject({ poll: signedSchema }),
    answer: z.discriminatedUnion('state', [
      z.strictObject({ state: z.literal('waiting') }),
      z.strictObject({ state: z.literal('claimed'), claim: claimSchema }),
      z.strictObject({ state: z.literal('paired'), paired }),
      z.strictObject({ state: z.enum(['expired', 'cancelled', 'rejected']) }),
    ]),
  },
  /** The claim once more, fetched just before the person's answer is signed (`machine.pair-poll`). */
  claim: { body: z.strictObject({ poll: signedSchema }), answer: z.strictObject({ claim: claimSchema }) },
  /** The person at the machine answers (`machine.pair-confirm`); repeated with the same bytes it has one effect. */
  confirm: {
    body: z.strictObject({ confirm: signedSchema }),
    answer: z.discriminatedUnion('state', [
      z.strictObject({ state: z.literal('paired'), paired }),
      z.strictObject({ state: z.literal('rejected') }),
    ]),
  },
  cancel: { body: z.strictObject({ poll: signedSchema }), answer: z.strictObject({ state: z.literal('cancelled') }) },
  /** Confirms a new pairing in place of an old executor, signed by both keys (`machine.replace`). */
  replace: {
    body: z.strictObject({ confirm: signedSchema, current: signedSchema, next: signedSchema }),
    answer: z.strictObject({ state: z.literal('paired'), paired }),
  },
} as const;

export type PairingCallBody<Call extends keyof typeof pairingCalls> = z.infer<(typeof pairingCalls)[Call]['body']>;
export type PairingCallAnswer<Call extends keyof typeof pairingCalls> = z.infer<(typeof pairingCalls)[Call]['answer']>;
/** What a machine keeps once both sides agreed. */
export type Paired = z.infer<typeof paired>;

/** Refusal codes of the pairing calls. */
export const pairingRefusals = [
  'ENROLLMENT_UNKNOWN',
  'ENROLLMENT_EXPIRED',
  'ENROLLMENT_USED',
  'ENROLLMENT_PROOF_INVALID',
  'FINGERPRINT_NOT_CONFIRMED',
  'PAIRING_UNKNOWN',
  'PAIRING_EXPIRED',
  'PAIRING_CANCELLED',
  'PAIRING_FACTS_CHANGED',
  'CLAIM_CHANGED',
  'KEY_ALREADY_KNOWN',
  'KEY_REFUSED',
  'DESCRIPTOR_INVALID',
  'CLOCK_SKEW',
  'PROOF_INVALID',
  'FLOW_MISMATCH',
  'RATE_LIMITED',
  'UNAVAILABLE',
  'VERSION_UNSUPPORTED',
] as const;
export type PairingRefusal = (typeof pairingRefusals)[number];
