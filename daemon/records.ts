/*
 * What the daemon keeps about its pairing: small, whole, replaced at once. lowdb holds it; the adapter is ours, because lowdb's
 * own follows links, never syncs and leaves modes to the umask.
 *
 * INVARIANT 1: a write is on disk, file and folder, when it resolves; a crash leaves the old records or the new ones.
 * INVARIANT 2: records that cannot be read are set aside under another name, never overwritten.
 */
import fs from 'node:fs';
import { Low } from 'lowdb';
import type { Adapter } from 'lowdb';
import * as z from 'zod';
import {
  counterSchema,
  digestTextSchema,
  executorIdSchema,
  pairingIdSchema,
  timeSchema,
} from '../helpers/protocol/ids.ts';
import { claimSchema } from '../helpers/protocol/statements.ts';
import { policySchema } from './config.ts';

/** One revision that this machine stated. */
const revisionSchema = z.strictObject({
  revision: z.int().min(1),
  /** Canonical descriptor bytes, base64. */
  descriptor: z.base64(),
  policy: policySchema,
  policyDigest: digestTextSchema,
  rootIdentity: digestTextSchema,
});
export type StatedRevision = z.infer<typeof revisionSchema>;

/** A pairing request that was made and not settled: exactly the bytes that are sent, and sent again. */
const joiningSchema = z.strictObject({
  flow: z.enum(['code', 'enrolment']),
  requestId: z.string().regex(/^req_[0-9a-f]{32}$/),
  /** msgpack body of the call, base64. */
  body: z.base64(),
  requestDigest: digestTextSchema,
  fingerprint: digestTextSchema,
  /** Executor that this pairing ends once both sides agreed; its key is the current one until then. */
  replaces: executorIdSchema.nullable(),
  /** Claim that the person at this machine confirmed, as its digest: nothing else can become the pairing. */
  confirmedClaim: digestTextSchema.nullable(),
  offer: z
    .strictObject({
      pairing: pairingIdSchema,
      code: z.string().nullable(),
      commandKey: digestTextSchema,
      expiresAt: timeSchema,
    })
    .nullable(),
});
export type JoiningRecord = z.infer<typeof joiningSchema>;

const pairedSchema = z.strictObject({
  executor: executorIdSchema,
  fingerprint: digestTextSchema,
  /** The control plane's command key, 64 hexadecimal digits: pinned. */
  commandKey: digestTextSchema,
  commandKeyRotation: counterSchema,
  claim: claimSchema,
  pairedAt: timeSchema,
  /** The owner compared the command key; before that nothing runs under it. */
  accepted: z.boolean(),
});
export type PairedRecord = z.infer<typeof pairedSchema>;

/** Closed shape of records.json. */
export const recordsSchema = z.strictObject({
  version: z.literal(1),
  joining: joiningSchema.nullable(),
  paired: pairedSchema.nullable(),
  /** Newest last; the confirmed one is never dropped. */
  revisions: z.array(revisionSchema).max(16),
  confirmedRevision: counterSchema,
  /** A person ran `repair`, and no session has been answered since. */
  repaired: z.boolean(),
});
export type Records = z.infer<typeof recordsSchema>;

const NOTHING: Records = {
  version: 1,
  joining: null,
  paired: null,
  revisions: [],
  confirmedRevision: 0,
  repaired: false,
};

/** Records that cannot be read; the file was set aside. */
export class RecordsInvalid extends Error {
  override readonly name = 'RecordsInvalid';
}

/** A file of one folder, replaced whole and durably. Throws RecordsInvalid on bytes that are no records. */
export class DurableRecords implements Adapter<Records> {
  readonly #folder: string;
  readonly #name: string;

  /** `folder` is reached by an inherited descriptor: `/proc/self/fd/N`. */
  constructor(folder: string, name: string) {
    this.#folder = folder;
    this.#name = name;
  }

  read(): Promise<Records | null> {
    const text = this.#readText();
    if (text === undefined) return Promise.resolve(null);
    const parsed = recordsSchema.safeParse(jsonOrUndefined(text));
    if (parsed.success) return Promise.resolve(parsed.data);
    const aside = `${this.#name}.invalid-${Date.now()}`;
    fs.renameSync(`${this.#folder}/${this.#name}`, `${this.#folder}/${aside}`);
    return Promise.reject(
      new RecordsInvalid(`records of the pairing cannot be read; they were set aside as ${aside}`, {
        cause: parsed.error,
      }),
    );
  }

  write(records: Records): Promise<void> {
    const bytes = Buffer.from(`${JSON.stringify(recordsSchema.parse(records), undefined, 2)}\n`);
    replaceDurably(this.#folder, this.#name, bytes);
    return Promise.resolve();
  }

  #readText(): string | undefined {
    let descriptor: number;
    try {
      descriptor = fs.openSync(
        `${this.#folder}/${this.#name}`,
        fs.constants.O_RDONLY | fs.constants.O_NOFOLLOW | fs.constants.O_NONBLOCK,
      );
    } catch (error) {
      // Only absence is an answer here; anything else is a state folder that nobody may trust.
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
      throw error;
    }
    try {
      return fs.readFileSync(descriptor, 'utf8');
    } finally {
      fs.closeSync(descriptor);
    }
  }
}

/** Replaces one file of a folder: exclusive create 0600, write, fsync, rename, fsync of the folder. */
export function replaceDurably(folder: string, name: string, bytes: Uint8Array): void {
  const fresh = `${folder}/${name}.new`;
  fs.rmSync(fresh, { force: true });
  const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = fs.constants;
  const descriptor = fs.openSync(fresh, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
  try {
    for (let at = 0; at < bytes.length;) at += fs.writeSync(descriptor, bytes, at);
    fs.fsyncSync(descriptor);
  } finally {
    fs.closeSync(descriptor);
  }
  fs.renameSync(fresh, `${folder}/${name}`);
  const folderDescriptor = fs.openSync(folder, fs.constants.O_RDONLY | fs.constants.O_DIRECTORY);
  try {
    fs.fsyncSync(folderDescriptor);
  } finally {
    fs.closeSync(folderDescriptor);
  }
}

/** Opens the records of one folder, empty at the first start. Rejects with RecordsInvalid. */
export async function openRecords(folder: string): Promise<Low<Records>> {
  const records = new Low<Records>(new DurableRecords(folder, 'records.json'), structuredClone(NOTHING));
  await records.read();
  return records;
}

function jsonOrUndefined(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // Not JSON is one more way of being no records: the schema refuses undefined.
    return undefined;
  }
}
