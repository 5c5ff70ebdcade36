/*
 * Whether a promotion may begin: decided here, from the signed bytes, the owner's folder and our own mark. What `daemon` says
 * about it counts for nothing.
 *
 * THREAT: a `daemon` or `link` that was taken over replays an old approval, passes one for another machine, run or root, or
 * offers a key of its own (test/helpers/promote/approval.test.ts).
 */
import { timingSafeEqual } from 'node:crypto';
import type { Manifest } from '../files/manifest.ts';
import { admitKey, KeyRefused } from '../protocol/signed.ts';
import type { AdmittedKey, Signed } from '../protocol/signed.ts';
import { openStatement } from '../protocol/statements.ts';
import type { Approval, Opened } from '../protocol/statements.ts';
import { guardsOf } from '../protocol/guarded.ts';
import type { Mark, Spent, Succession } from './mark.ts';
import { CONFIRMATION_MS } from './protocol.ts';
import type { OwnerConfirmation, OwnerPin, PromoteBody } from './protocol.ts';
import { stricter } from '../protocol/policy.ts';
import type { Policy } from '../protocol/policy.ts';
import { fromPathText } from '../protocol/path-text.ts';
import { Stopped } from './stop.ts';

/** How far the clock that wrote a time may be ahead of this one, in ms: the control plane's, or this machine's before it was set back. */
const CLOCK_AHEAD_MS = 60_000;

/** A change of the command key, signed by both. */
export type PinRotation = NonNullable<PromoteBody<'promote.apply'>['pinRotation']>;

/** The key that approvals are verified with now, and the change that led to it if it is a new one. */
export interface CommandKey {
  readonly key: AdmittedKey;
  readonly succession: Succession | undefined;
}

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

/** Follows the pinned key through the changes that were seen, and one more if it is offered. Throws Stopped, KeyRefused. */
export function commandKey(pin: OwnerPin, mark: Mark, rotation: PinRotation | undefined): CommandKey {
  let current = pin.commandKey;
  for (const { oldKey, newKey } of mark.successions) if (oldKey === current) current = newKey;
  const key = admitKey(Buffer.from(current, 'hex'));
  if (rotation === undefined) return { key, succession: undefined };
  const byOld = opened('control.rotation', key, rotation.current).statement;
  if (hex(byOld.oldPublicKey) !== current) throw new Stopped('PROMOTION_REJECTED');
  const next = admitOffered(byOld.newPublicKey);
  opened('control.rotation', next, rotation.next);
  const samePayload = Buffer.from(rotation.current.payload).equals(rotation.next.payload);
  if (!samePayload) throw new Stopped('PROMOTION_REJECTED');
  return { key: next, succession: { oldKey: current, newKey: hex(next.bytes) } };
}

function admitOffered(publicKey: Uint8Array): AdmittedKey {
  try {
    return admitKey(publicKey);
  } catch (cause) {
    if (cause instanceof KeyRefused) throw new Stopped('PROMOTION_REJECTED', undefined, { cause });
    throw cause;
  }
}

/** What the checks of an approval compare with. `rootIdentity` is 64 hexadecimal digits, as recomputed here; `now` in ms since the Unix epoch. */
export interface Circumstances {
  readonly pin: OwnerPin;
  readonly mark: Mark;
  readonly rootIdentity: string;
  readonly now: number;
}

/** Opens an approval and checks all of it that does not need the draft. Throws Stopped. */
export function openApproval(
  key: AdmittedKey,
  signed: Signed,
  circumstances: Circumstances,
): Opened<'control.approval'> {
  const { pin, mark, rootIdentity, now } = circumstances;
  const approval = opened('control.approval', key, signed);
  const { statement } = approval;
  if (statement.executor !== pin.executor) throw new Stopped('PROMOTION_REJECTED');
  if (now + CLOCK_AHEAD_MS < statement.notBefore) throw new Stopped('PROMOTION_REJECTED');
  if (now >= statement.expiresAt) throw new Stopped('EXPIRED');
  if (statement.sequence <= mark.sequence || mark.used.includes(statement.promotion)) {
    throw new Stopped('PROMOTION_REJECTED');
  }
  const identities = [hex(statement.rootIdentity), pin.rootIdentity];
  if (identities.some((identity) => identity !== rootIdentity)) throw new Stopped('PROMOTION_UNSAFE_ROOT');
  return approval;
}

function opened<Type extends 'control.approval' | 'control.rotation'>(
  type: Type,
  key: AdmittedKey,
  signed: Signed,
): Opened<Type> {
  let result: Opened<Type> | undefined;
  try {
    result = openStatement(type, key, signed);
  } catch (cause) {
    throw new Stopped('PROMOTION_REJECTED', undefined, { cause });
  }
  if (result === undefined) throw new Stopped('PROMOTION_REJECTED');
  return result;
}

/** Compares the draft's own manifest with what was approved. Throws Stopped. */
export function checkManifest(approval: Approval, manifest: Manifest, digest: string): void {
  if (!timingSafeEqual(Buffer.from(digest, 'hex'), approval.manifestDigest))
    throw new Stopped('PROMOTION_REVIEW_STALE');
  if (manifest.run !== approval.run) throw new Stopped('PROMOTION_REJECTED');
  if (manifest.rootIdentity !== hex(approval.rootIdentity)) throw new Stopped('PROMOTION_UNSAFE_ROOT');
}

/** Paths, as path text, that a plain approval does not cover. */
function guardedPaths(manifest: Manifest): string[] {
  const paths = manifest.changes.map(({ path }) => path);
  const guards = guardsOf(paths.map(fromPathText));
  return paths.filter((_, index) => guards[index] !== undefined);
}

/**
 * The confirmation that this promotion uses up, or undefined where it needs none: one of a person at this machine for exactly these
 * changes, not older than an hour, and given after the last one of the same changes was used. Throws Stopped, naming the first
 * path that is not covered. Pin and policy both have a say, and the stricter holds: the owner writes either.
 * THREAT: a control plane promotes once more what a person confirmed once, a day later or after a roll back
 * (test/helpers/promote/confirmation.test.ts).
 */
export function neededConfirmation(
  { pin, policy, mark, now }: Pick<Circumstances, 'pin' | 'mark' | 'now'> & { readonly policy: Policy },
  { manifest, digest }: { readonly manifest: Manifest; readonly digest: string },
  confirmation: OwnerConfirmation | undefined,
): Spent | undefined {
  const guarded = guardedPaths(manifest);
  if (stricter(pin.promotion, policy.promotion.confirm) === 'page' && guarded.length === 0) return undefined;
  const [first] = guarded;
  const named = first === undefined ? undefined : fromPathText(first);
  const fits =
    confirmation !== undefined &&
    confirmation.run === manifest.run &&
    confirmation.manifestDigest === digest &&
    confirmation.rootIdentity === manifest.rootIdentity;
  if (!fits || !isFresh(confirmation.at, mark, digest, now)) {
    throw new Stopped('PROMOTION_CONFIRMATION_REQUIRED', named);
  }
  const confirmed = new Set(confirmation.guarded);
  const missing = guarded.find((path) => !confirmed.has(path));
  if (missing !== undefined) throw new Stopped('PROMOTION_CONFIRMATION_REQUIRED', fromPathText(missing));
  return { manifestDigest: digest, at: confirmation.at };
}

/** Whether a confirmation of that time still holds and was not used up. One of the future is none: it would never grow old. */
export function isFresh(at: number, { spent }: Pick<Mark, 'spent'>, digest: string, now: number): boolean {
  if (at > now + CLOCK_AHEAD_MS || now - at > CONFIRMATION_MS) return false;
  return spent.every((last) => last.manifestDigest !== digest || last.at < at);
}
