/*
 * key-store: keeps one Ed25519 key pair and signs typed statements of a closed list.
 *
 *   transport   channel 3, frames of helpers/protocol/frame.ts, messages of envelope.ts
 *   asks        `daemon` (purpose machine) or `server` (purpose control-plane); nobody else is ever connected
 *   trust       the asker may be taken over: it can get statements of its own purpose signed, in the shape of statements.ts
 *               and with a guard that never repeats; it can get no other bytes signed and never sees a private key
 *
 * The purpose is fixed when the key is generated and stored with it: a machine's key never signs a control plane's statement.
 */
import * as z from 'zod';
import { bytes, counterSchema } from '../protocol/ids.ts';
import { signedSchema } from '../protocol/signed.ts';
import { controlStatements, machineStatements } from '../protocol/statements.ts';

/** Raised by any change of a union below. */
export const KEY_STORE_PROTOCOL_VERSION = 2;

export const keyPurposeSchema = z.enum(['machine', 'control-plane']);
export type KeyPurpose = z.infer<typeof keyPurposeSchema>;

/** One statement to sign; the guard is the key-store's own, so fields come without it. */
const toSign = z.strictObject({
  type: z.enum([...keysOf(machineStatements), ...keysOf(controlStatements)]),
  fields: z.record(z.string().max(64), z.unknown()),
  /** Its link names the statement before it in the same request: the key-store fills that field in. Refused in the first one. */
  linked: z.literal(true).optional(),
});

function keysOf<Table extends object>(table: Table): (keyof Table & string)[] {
  // Object.keys is typed as string[] although the table is closed.
  return Object.keys(table) as (keyof Table & string)[];
}

/** Requests with their replies. */
export const keyStoreRequests = {
  /** What there is: no key, one key, or one key and the next one of an unfinished rotation. */
  'keystore.status': {
    body: z.strictObject({}),
    reply: z.discriminatedUnion('state', [
      z.strictObject({ state: z.literal('empty') }),
      z.strictObject({
        state: z.literal('ready'),
        purpose: keyPurposeSchema,
        publicKey: bytes(32),
        rotation: counterSchema,
      }),
      z.strictObject({
        state: z.literal('rotating'),
        purpose: keyPurposeSchema,
        publicKey: bytes(32),
        nextPublicKey: bytes(32),
        rotation: counterSchema,
      }),
    ]),
  },
  /** Makes the key pair; refused where one exists (KEY_EXISTS). */
  'keystore.generate': {
    body: z.strictObject({ purpose: keyPurposeSchema }),
    reply: z.strictObject({ publicKey: bytes(32) }),
  },
  /** Signs one to sixteen statements of the key's purpose, in order, with rising guards; with the next key only what pairs it anew. Rotations are refused here. */
  'keystore.sign': {
    body: z.strictObject({
      key: z.enum(['current', 'next']).default('current'),
      statements: z.array(toSign).min(1).max(16),
    }),
    reply: z.strictObject({ signed: z.array(signedSchema) }),
  },
  /** Makes the next key beside the current one, durable; asking again gives the same next key. */
  'keystore.rotate-prepare': {
    body: z.strictObject({}),
    reply: z.strictObject({ publicKey: bytes(32), nextPublicKey: bytes(32), rotation: counterSchema }),
  },
  /** Signs one rotation or replacement statement with the current and the next key, over the same bytes. */
  'keystore.rotate-sign': {
    body: z.strictObject({
      type: z.enum(['machine.rotation', 'machine.replace', 'control.rotation']),
      fields: z.record(z.string().max(64), z.unknown()),
    }),
    reply: z.strictObject({ current: signedSchema, next: signedSchema }),
  },
  /** The peer has taken the next key: it becomes the only one. Without a next key of this public key: the same answer if it is current. */
  'keystore.rotate-commit': {
    body: z.strictObject({ nextPublicKey: bytes(32) }),
    reply: z.strictObject({ publicKey: bytes(32) }),
  },
  /** The peer has not taken it and never will: the next key is erased. */
  'keystore.rotate-abandon': { body: z.strictObject({}), reply: z.strictObject({}) },
  /** Erases every key for good. */
  'keystore.erase': { body: z.strictObject({}), reply: z.strictObject({}) },
} as const;

export type KeyStoreRequest = keyof typeof keyStoreRequests;
export type KeyStoreBody<Type extends KeyStoreRequest> = z.infer<(typeof keyStoreRequests)[Type]['body']>;
export type KeyStoreReply<Type extends KeyStoreRequest> = z.infer<(typeof keyStoreRequests)[Type]['reply']>;

/** Codes of refusals that are not violations. */
export const keyStoreRefusals = [
  'KEY_EXISTS',
  'KEY_ABSENT',
  'PURPOSE_MISMATCH',
  'STATEMENT_INVALID',
  'GUARD_UNWRITABLE',
  'STORE_UNWRITABLE',
  'ROTATION_ABSENT',
  'STORE_UNSAFE',
] as const;
export type KeyStoreRefusal = (typeof keyStoreRefusals)[number];
