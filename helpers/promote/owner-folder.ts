/*
 * What the owner decided: the pin and the confirmations (descriptor 7), which the owner's command line alone writes, and the policy
 * (descriptor 8), which the owner edits too. All is read only; a file that anybody else may write is not believed.
 */
import { closeSync } from 'node:fs';
import type * as z from 'zod';
import { statx } from '../runtime/native-files.ts';
import { ownerConfirmationSchema, ownerPinSchema, undoConfirmationSchema } from './protocol.ts';
import { policySchema } from '../protocol/policy.ts';
import type { OwnerConfirmation, OwnerPin, UndoConfirmation } from './protocol.ts';
import type { Policy } from '../protocol/policy.ts';
import { UntrustedFile, readTrusted } from './own-folder.ts';
import type { Trust } from './own-folder.ts';
import { openFolderAt, statusAt } from './tree.ts';

const ITSELF = Buffer.alloc(0);
const PIN_LIMIT_BYTES = 65_536;
const POLICY_LIMIT_BYTES = 1_048_576;
const CONFIRMATION_LIMIT_BYTES = 67_108_864;
const CONFIRMATIONS = Buffer.from('confirmations');

/** TRUST: the folder came as a descriptor from the supervisor, so its owner is the owner; root may write anywhere anyway. */
function ownerTrust(folder: number): Trust {
  return { forbiddenMode: 0o022, owners: [statx(folder, ITSELF).uid, 0] };
}

function readJson(folder: number, name: string, limitBytes: number, trust: Trust): unknown {
  const content = readTrusted(folder, name, limitBytes, trust);
  if (content === undefined) return undefined;
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(content));
  } catch (cause) {
    throw new UntrustedFile(`${name} is not JSON`, { cause });
  }
}

/** The pin, or undefined where this machine was never paired. Throws UntrustedFile for one that cannot be believed. */
export function readPin(owner: number): OwnerPin | undefined {
  const value = readJson(owner, 'pin.json', PIN_LIMIT_BYTES, ownerTrust(owner));
  if (value === undefined) return undefined;
  const parsed = ownerPinSchema.safeParse(value);
  if (!parsed.success) throw new UntrustedFile('pin.json has other fields than a pin', { cause: parsed.error });
  return parsed.data;
}

/** The policy as it stands now, or undefined where there is none. Throws UntrustedFile for one that cannot be believed. */
export function readPolicy(configuration: number): Policy | undefined {
  const value = readJson(configuration, 'policy.json', POLICY_LIMIT_BYTES, ownerTrust(configuration));
  if (value === undefined) return undefined;
  const parsed = policySchema.safeParse(value);
  if (!parsed.success) throw new UntrustedFile('policy.json has other fields than a policy', { cause: parsed.error });
  return parsed.data;
}

/** What the person confirmed on this machine for a manifest, or undefined. Throws UntrustedFile. */
export function readConfirmation(owner: number, manifestDigest: string): OwnerConfirmation | undefined {
  return readConfirmed(owner, manifestDigest, ownerConfirmationSchema);
}

/** What the owner confirmed for the undo of a promotion, by the digest of its journal, or undefined. Throws UntrustedFile. */
export function readUndoConfirmation(owner: number, journalDigest: string): UndoConfirmation | undefined {
  return readConfirmed(owner, journalDigest, undoConfirmationSchema);
}

function readConfirmed<Confirmation>(
  owner: number,
  digest: string,
  schema: z.ZodType<Confirmation>,
): Confirmation | undefined {
  if (statusAt(owner, CONFIRMATIONS) === undefined) return undefined;
  const folder = openFolderAt(owner, CONFIRMATIONS);
  try {
    const value = readJson(folder, `${digest}.json`, CONFIRMATION_LIMIT_BYTES, ownerTrust(owner));
    if (value === undefined) return undefined;
    const parsed = schema.safeParse(value);
    if (!parsed.success) throw new UntrustedFile('a confirmation has other fields', { cause: parsed.error });
    return parsed.data;
  } finally {
    closeSync(folder);
  }
}
