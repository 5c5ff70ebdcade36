/*
 * The content of a reviewed change for the person: sealed to the page that asks (review.difference), or as text for the
 * owner's terminal (workspace.difference).
 *
 * THREAT: what travels is file content, and the control plane stores it for a while. It is sealed to a key that only the page
 * of the person holds; a fresh sender key for each piece leaves nothing here that opens it later.
 */
import { randomBytes } from 'node:crypto';
import { readSync } from 'node:fs';

import nacl from 'tweetnacl';

import { readWhole } from '../files/digest.ts';
import { manifestOf } from '../files/draft.ts';
import type { Change } from '../files/manifest.ts';
import type { OperationArguments, OperationSuccess } from '../protocol/operations.ts';
import type { Call, Services } from './call.ts';
import { DraftRefused, sealManifest } from './draft-store.ts';
import { Ending } from './ending.ts';
import { denied, OperationFailed, unavailable } from './failures.ts';
import type { OpenDraft } from './open-draft.ts';
import type { WorkspaceBody, WorkspaceReply } from './protocol.ts';
import { lostBy, sealedFor } from './review.ts';
import { sideOf, withSide, type SideSource } from './sides.ts';

const PIECE_BYTES = 262_144;

type Sealed = OperationSuccess<'review.difference'>;

/** Seals one piece of the manifest or of one side of a change. */
export function sealDifference(call: Call, args: OperationArguments<'review.difference'>): Promise<Sealed> {
  const { root, digests, store } = call.services;
  return store.lend(call.run, async (draft) => {
    const { manifest, bytes, digest } = sealedFor(call, draft);
    if (!draft || digest !== args.manifestDigest) {
      throw new OperationFailed('REVIEW_STALE', 'the draft is not what was reviewed any more; review it again');
    }
    const { part, offset, recipientKey } = args;
    if (part.of === 'manifest')
      return sealPiece(recipientKey, bytes.subarray(offset, offset + PIECE_BYTES), offset, bytes.length);
    const change = manifest.changes[part.change];
    if (!change) throw unavailable(`the review has ${manifest.changes.length} changes, counted from 0`);
    return withSide({ root, draft, digests, ending: call.ending }, change, part.of, ({ descriptor, bytes: total }) => {
      const piece = Buffer.alloc(Math.max(0, Math.min(PIECE_BYTES, total - offset)));
      const count = piece.length === 0 ? 0 : readSync(descriptor, piece, 0, piece.length, offset);
      return sealPiece(recipientKey, piece.subarray(0, count), offset, total);
    });
  });
}

function sealPiece(recipientKey: string, piece: Buffer, offset: number, totalBytes: number): Sealed {
  const recipient = Buffer.from(recipientKey, 'base64');
  if (recipient.length !== 32) throw denied('the key of the page is not 32 bytes');
  const sender = nacl.box.keyPair.fromSecretKey(randomBytes(32));
  // THREAT: a key of small order makes a secret that everybody knows (RFC 7748 section 6.1)
  if (nacl.scalarMult(sender.secretKey, recipient).every((byte) => byte === 0))
    throw denied('the key of the page is not usable');
  const nonce = randomBytes(24);
  const sealed = nacl.box(piece, nonce, recipient, sender.secretKey);
  const next = offset + piece.length;
  return {
    success: true,
    sealed: base64(sealed),
    nonce: base64(nonce),
    senderKey: base64(sender.publicKey),
    totalBytes,
    ...(next < totalBytes ? { next } : {}),
  };
}

const base64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64');

type Shown = WorkspaceReply<'workspace.difference'>;
/** A larger side is not compared, bytes. */
const COMPARE_LIMIT_BYTES = 2_097_152;
/** The terminal waits this long for one change, ms. */
const LOCAL_MS = 20_000;

/** The difference of one change as text. Throws DraftRefused or OperationFailed. */
export function showDifference(
  services: Services,
  { run, change: index }: WorkspaceBody<'workspace.difference'>,
): Promise<Shown> {
  return services.store.lendExisting(run, async (draft) => {
    const { digest: manifestDigest } = sealManifest(draft);
    const { changes } = manifestOf(draft);
    const change = changes[index];
    if (!change) throw new DraftRefused('CHANGE_UNKNOWN', `the draft has ${changes.length} changes, counted from 0`);
    const { path, kind, type } = change;
    const difference = await compareSides(services, draft, change);
    return {
      changeCount: changes.length,
      manifestDigest,
      path,
      kind,
      type,
      difference,
      ...modesOf(change),
      ...lostBy(change),
    };
  });
}

async function compareSides(services: Services, draft: OpenDraft, change: Change): Promise<Shown['difference']> {
  if (change.type === 'directory') return { shown: 'nothing', reason: 'directory' };
  const [one, two] = [sideOf(change, 'before'), sideOf(change, 'after')];
  if (one && two && one.sha256 === two.sha256) return { shown: 'nothing', reason: 'mode-only' };
  if (Math.max(one?.bytes ?? 0, two?.bytes ?? 0) > COMPARE_LIMIT_BYTES)
    return { shown: 'nothing', reason: 'too-large' };
  const source = { root: services.root, draft, digests: services.digests, ending: Ending.within(LOCAL_MS) };
  const before = await contentOf(source, change, 'before');
  const after = await contentOf(source, change, 'after');
  return services.pool.run('compare', { path: change.path, before, after });
}

async function contentOf(source: SideSource, change: Change, of: 'before' | 'after'): Promise<Uint8Array> {
  if (!sideOf(change, of)) return new Uint8Array();
  return withSide(source, change, of, ({ descriptor, bytes }) => readWhole(descriptor, bytes));
}

function modesOf(change: Change): { modeBefore?: string; modeAfter?: string } {
  const { before, after } = change;
  return { ...(before ? { modeBefore: before.mode } : {}), ...(after ? { modeAfter: after.mode } : {}) };
}
