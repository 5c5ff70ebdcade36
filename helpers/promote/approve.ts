/*
 * From a request to an approved plan: everything before the first look at the person's files. What is approved here has been
 * noted as used, so it is approved once.
 */
import { randomBytes } from 'node:crypto';
import { DraftDamaged } from '../files/draft-index.ts';
import type { IndexState } from '../files/draft-index.ts';
import { manifestOf, readDraft } from '../files/draft.ts';
import { manifestBytes, manifestDigest } from '../files/manifest.ts';
import type { Manifest } from '../files/manifest.ts';
import { rootIdentity } from '../files/root.ts';
import type { FolderId } from '../runtime/folder-chains.ts';
import { NativeError } from '../runtime/libc.ts';
import type { Opening } from './apply.ts';
import { checkManifest, commandKey, neededConfirmation, openApproval } from './approval.ts';
import { readMark, writeMark } from './mark.ts';
import { UntrustedFile } from './own-folder.ts';
import { readConfirmation, readPolicy } from './owner-folder.ts';
import { planOf } from './plan.ts';
import type { Planned } from './plan.ts';
import type { OwnerConfirmation, OwnerPin, PromoteBody } from './protocol.ts';
import { permits } from '../protocol/policy.ts';
import type { Policy } from '../protocol/policy.ts';
import { checkOpenRoot } from './root-check.ts';
import { isTrouble, Stopped } from './stop.ts';
import { STAGE_PREFIX } from './tree.ts';

/** The operation that a promotion is, as policies name it. */
const OPERATION = 'workspace.promote';

/** Descriptors that promote is born with. */
export interface Given {
  readonly root: number;
  readonly draft: number;
  readonly own: number;
  readonly owner: number;
  readonly configuration: number;
  /** Chains of further folders of the executor that no root may overlap. */
  readonly forbidden: readonly (readonly FolderId[])[];
}

/** An approved draft, ready to be applied; `digest` is its manifest's, 64 hexadecimal digits. */
export interface Approved {
  readonly opening: Opening;
  readonly plan: readonly Planned[];
  readonly digest: string;
}

/** Verifies an approval against pin, policy, mark, root and draft, and uses it up. Throws Stopped, MarkDamaged, UntrustedFile, NativeError. */
export function approve(given: Given, bootId: string, body: PromoteBody<'promote.apply'>, pin: OwnerPin): Approved {
  const { root, draft, own, owner, configuration, forbidden } = given;
  checkOpenRoot(root, [draft, own, owner, configuration], forbidden);
  const policy = permittingPolicy(configuration);
  const mark = readMark(own);
  const { key, succession } = commandKey(pin, mark, body.pinRotation);
  const identity = rootIdentity(root).toString('hex');
  const now = Date.now();
  const approval = openApproval(key, body.approval, { pin, mark, rootIdentity: identity, now });
  const { manifest, digest, state } = rebuild(draft);
  const { statement } = approval;
  checkManifest(statement, manifest, digest);
  const confirmed = neededConfirmation({ pin, policy, mark, now }, { manifest, digest }, confirmationIn(owner, digest));
  const plan = planOf(manifest, state);
  const older = mark.spent.filter((spent) => spent.manifestDigest !== digest);
  writeMark(own, {
    sequence: statement.sequence,
    used: [...mark.used, statement.promotion],
    spent: confirmed === undefined ? mark.spent : [...older, confirmed],
    successions: succession === undefined ? mark.successions : [...mark.successions, succession],
  });
  const opening: Opening = {
    promotion: statement.promotion,
    executor: statement.executor,
    run: statement.run,
    undoes: null,
    manifestDigest: digest,
    approvalDigest: approval.digest.toString('hex'),
    rootIdentity: identity,
    bootId,
    // nobody can have put a folder of this name there before
    stage: STAGE_PREFIX + randomBytes(16).toString('hex'),
    at: now,
  };
  return { opening, plan, digest };
}

/**
 * The owner's policy of this moment, where it permits promotions at all. Throws Stopped.
 * THREAT: a `daemon` that was taken over keeps silent about what the owner wrote there (test/helpers/promote/confirmation.test.ts).
 */
function permittingPolicy(configuration: number): Policy {
  try {
    const policy = readPolicy(configuration);
    if (policy !== undefined && permits(policy, OPERATION)) return policy;
  } catch (cause) {
    if (isTrouble(cause) || (!(cause instanceof UntrustedFile) && !(cause instanceof NativeError))) throw cause;
    throw new Stopped('PROMOTION_REJECTED', undefined, { cause });
  }
  throw new Stopped('PROMOTION_REJECTED');
}

/** A confirmation that cannot be believed is none. */
function confirmationIn(owner: number, digest: string): OwnerConfirmation | undefined {
  try {
    return readConfirmation(owner, digest);
  } catch (error) {
    if (error instanceof UntrustedFile) return undefined;
    throw error;
  }
}

/** The manifest as the draft's own bytes give it now. Throws Stopped for a draft that cannot be read: it is not what was reviewed. */
function rebuild(draft: number): { manifest: Manifest; digest: string; state: IndexState } {
  try {
    const state = readDraft(draft);
    const manifest = manifestOf(state);
    return { manifest, digest: manifestDigest(manifestBytes(manifest)), state };
  } catch (cause) {
    if (cause instanceof DraftDamaged || (cause instanceof NativeError && !isTrouble(cause))) {
      throw new Stopped('PROMOTION_REVIEW_STALE', undefined, { cause });
    }
    throw cause;
  }
}
