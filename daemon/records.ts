/*
 * What the daemon keeps about its pairing: small, whole, replaced at once. lowdb holds it; the adapter is ours, because lowdb's
 * own follows links, never syncs and leaves modes to the umask.
 *
 * INVARIANT 1: a write is on disk, file and folder, when it resolves; a crash leaves the old records or the new ones.
 * INVARIANT 2: records that cannot be read are set aside under another name, never overwritten.
 * INVARIANT 3: nobody reads a change that is not on disk; where it cannot be written the records stay as they were.
 */
import fs from 'node:fs';
import { LowSync } from 'lowdb';
import type { SyncAdapter } from 'lowdb';
import * as z from 'zod';
import {
  counterSchema,
  digestTextSchema,
  executorIdSchema,
  pairingIdSchema,
  timeSchema,
} from '../helpers/protocol/ids.ts';
import { claimSchema } from '../helpers/protocol/statements.ts';
import { policySchema } from '../helpers/protocol/policy.ts';

/** One revision that this machine stated. */
const revisionSchema = z
  .strictObject({
    revision: z.int().min(1),
    /** Canonical descriptor bytes, base64. */
    descriptor: z.base64(),
    policy: policySchema,
    policyDigest: digestTextSchema,
    rootIdentity: digestTextSchema,
  })
  .readonly();
export type StatedRevision = z.infer<typeof revisionSchema>;

/** A pairing request that was made and not settled: exactly the bytes that are sent, and sent again. */
const joiningSchema = z
  .strictObject({
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
  })
  .readonly();
export type JoiningRecord = z.infer<typeof joiningSchema>;

const pairedSchema = z
  .strictObject({
    executor: executorIdSchema,
    fingerprint: digestTextSchema,
    /** The control plane's command key, 64 hexadecimal digits: pinned. */
    commandKey: digestTextSchema,
    commandKeyRotation: counterSchema,
    claim: claimSchema,
    pairedAt: timeSchema,
    /** The owner compared the command key; before that nothing runs under it. */
    accepted: z.boolean(),
  })
  .readonly();
export type PairedRecord = z.infer<typeof pairedSchema>;

/** Closed shape of records.json. */
export const recordsSchema = z
  .strictObject({
    version: z.literal(1),
    joining: joiningSchema.nullable(),
    paired: pairedSchema.nullable(),
    /** Newest last; the confirmed one is never dropped. */
    revisions: z.array(revisionSchema).max(16).readonly(),
    confirmedRevision: counterSchema,
    /** A person ran `repair`, and no session has been answered since. */
    repaired: z.boolean(),
  })
  .readonly();
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

/** A change of the records that cannot be made durable, so it is none. */
export class RecordsUnwritable extends Error {
  override readonly name = 'RecordsUnwritable';
  readonly code = 'RECORDS_UNWRITABLE';
}

/** A file of one folder, replaced whole and durably. Throws RecordsInvalid on bytes that are no records. */
export class DurableRecords implements SyncAdapter<Records> {
  readonly #folder: string;
  readonly #name: string;

  /** `folder` is reached by an inherited descriptor: `/proc/self/fd/N`. */
  constructor(folder: string, name: string) {
    this.#folder = folder;
    this.#name = name;
  }

  read(): Records | null {
    const text = this.#readText();
    if (text === undefined) return null;
    const parsed = recordsSchema.safeParse(jsonOrUndefined(text));
    if (parsed.success) return parsed.data;
    const aside = `${this.#name}.invalid-${Date.now()}`;
    fs.renameSync(`${this.#folder}/${this.#name}`, `${this.#folder}/${aside}`);
    throw new RecordsInvalid(`records of the pairing cannot be read; they were set aside as ${aside}`, {
      cause: parsed.error,
    });
  }

  write(records: Records): void {
    const bytes = Buffer.from(`${JSON.stringify(recordsSchema.parse(records), undefined, 2)}\n`);
    replaceDurably(this.#folder, this.#name, bytes);
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

/** The records of one folder. They change by `change` alone. */
export class DaemonRecords {
  readonly #low: LowSync<Records>;

  /** Opens the records of a folder, empty at the first start. Throws RecordsInvalid. */
  constructor(folder: string) {
    this.#low = new LowSync<Records>(new DurableRecords(folder, 'records.json'), NOTHING);
    this.#low.read();
  }

  /** What is on disk. */
  get data(): Records {
    return this.#low.data;
  }

  /** Replaces these fields, durably before anybody reads them. Throws RecordsUnwritable, and then nothing changed. */
  change(fields: Partial<Records>): void {
    const next = { ...this.#low.data, ...fields };
    try {
      this.#low.adapter.write(next);
    } catch (cause) {
      // An errno name is all that may be told of it: the rest quotes a path.
      const errno = cause instanceof Error && 'code' in cause ? ` (${String(cause.code)})` : '';
      throw new RecordsUnwritable(
        `the records in the state folder cannot be written${errno}; make room, or give the folder back its mode`,
        { cause },
      );
    }
    this.#low.data = next;
  }
}

function jsonOrUndefined(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // Not JSON is one more way of being no records: the schema refuses undefined.
    return undefined;
  }
}
