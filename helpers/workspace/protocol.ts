/*
 * workspace: reads the root, writes drafts, and nothing else.
 *
 *   transport   channel 3, frames of helpers/protocol/frame.ts, messages of envelope.ts
 *   asks        `daemon`
 *   trust       arguments come from an agent and are hostile; the run id comes from a verified envelope
 *
 * A draft belongs to a run. `slot` is the number of its folder below `drafts/`, by which the supervisor opens it for `promote`.
 */
import * as z from 'zod';
import { bytes, bytesTo, digestTextSchema, promotionIdSchema, runIdSchema } from '../protocol/ids.ts';
import { differenceSchema, draftFactsSchema } from '../protocol/draft-facts.ts';

/** Raised by any change of a union below. */
export const WORKSPACE_PROTOCOL_VERSION = 3;

export const workspaceRequests = {
  /** Opens and checks the root again; WORKSPACE_UNAVAILABLE with the check that failed. */
  'workspace.root': {
    body: z.strictObject({}),
    reply: z.strictObject({ rootName: z.string().max(1024), rootIdentity: bytes(32), changed: z.boolean() }),
  },
  /** Runs one operation of the list for a run; `arguments` have passed the schema already and are checked again. The result is a success or a failure of operations.ts. */
  'workspace.operate': {
    body: z.strictObject({
      call: z.string().min(1).max(128),
      run: runIdSchema,
      operation: z.string().max(64),
      arguments: z.unknown(),
      /** Deadline in ms from now. */
      withinMs: z.int().min(1).max(300_000),
      /** The owner's ignore rules, gitignore syntax, already read and bounded by `daemon`. */
      ignore: z.array(z.string().max(1024)).max(1000),
    }),
    reply: z.strictObject({ result: z.unknown() }),
  },
  /** Ends a running operation as soon as it can be; unknown calls get the same answer. */
  'workspace.cancel': { body: z.strictObject({ call: z.string().min(1).max(128) }), reply: z.strictObject({}) },
  'workspace.drafts': {
    body: z.strictObject({}),
    reply: z.strictObject({
      drafts: z.array(draftFactsSchema).max(10_000),
      /** Those that are frozen, each with the promotion that it is frozen for. */
      frozen: z.array(z.strictObject({ run: runIdSchema, promotion: promotionIdSchema })).max(10_000),
    }),
  },
  /** Removes a draft for good. */
  'workspace.discard': {
    body: z.strictObject({ run: runIdSchema }),
    reply: z.strictObject({ discarded: z.boolean() }),
  },
  /** Freezes a draft for a promotion and tells where it is; nothing changes or discards it until that promotion releases it. */
  'workspace.freeze': {
    body: z.strictObject({ run: runIdSchema, promotion: promotionIdSchema, manifestDigest: digestTextSchema }),
    reply: z.strictObject({ slot: z.int().min(1), manifest: bytesTo(900_000).optional() }),
  },
  /** Ends a promotion: removes the draft that was frozen for it, or lets it be changed again. Any other draft is left as it is. */
  'workspace.release': {
    body: z.strictObject({ run: runIdSchema, promotion: promotionIdSchema, promoted: z.boolean() }),
    reply: z.strictObject({}),
  },
  /** One page of a draft's local difference, for the owner's terminal. */
  'workspace.difference': {
    body: z.strictObject({ run: runIdSchema, change: z.int().min(0), ignore: z.array(z.string().max(1024)).max(1000) }),
    reply: differenceSchema,
  },
} as const;

export type WorkspaceRequest = keyof typeof workspaceRequests;
export type WorkspaceBody<Type extends WorkspaceRequest> = z.infer<(typeof workspaceRequests)[Type]['body']>;
export type WorkspaceReply<Type extends WorkspaceRequest> = z.infer<(typeof workspaceRequests)[Type]['reply']>;

export const workspaceRefusals = [
  'WORKSPACE_UNAVAILABLE',
  'ROOT_CHANGED',
  'ROOT_OVERLAPS',
  'DRAFT_UNKNOWN',
  'DRAFT_DAMAGED',
  'DRAFT_FROZEN',
  'MANIFEST_STALE',
  'CHANGE_UNKNOWN',
  'CANCELLED',
] as const;
export type WorkspaceRefusal = (typeof workspaceRefusals)[number];
