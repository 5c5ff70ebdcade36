/*
 * The closed list of operations: the whole surface of an executor. Schemas, stored constraints, tool names, page texts and
 * lifetimes all come from here; a key that is not here does not exist on either side.
 *
 * Paths are path text (path-text.ts): relative, `/` between names, no empty, `.` or `..` part; `.` alone is the root.
 * A failure is `{success: false, code, message?}`; a success carries `success: true`.
 */
import * as z from 'zod';
import { lossesSchema } from './draft-facts.ts';
import { promotionIdSchema, digestTextSchema } from './ids.ts';

const path = z.string().min(1).max(1024);
const content = z.string().max(65_536);
const sha256 = digestTextSchema;
const byteCount = z.int().min(0);
/** Three octal digits, as `ls` and `chmod` write them. */
const mode = z.string().regex(/^[0-7]{3}$/);
const cursor = z.string().max(1400);
const success = z.literal(true);

const entryFacts = {
  kind: z.enum(['directory', 'file', 'link', 'other']),
  bytes: byteCount,
  mode,
  /** Milliseconds since the Unix epoch. */
  modifiedMs: z.int(),
  /** Target of a link as path text: shown where it stays inside the workspace, never followed. */
  target: z.string().max(4096).optional(),
};
const change = z.strictObject({
  path,
  kind: z.enum(['created', 'modified', 'deleted']),
  type: z.enum(['file', 'directory']),
  byteCount,
  /** The host's file is no longer what it was when the draft first touched it. */
  hostChanged: z.boolean(),
  /** What the new file will not have of the old one: its group, attributes, flags. */
  lost: lossesSchema.optional(),
});

const shapes = {
  'file.list': {
    arguments: z.strictObject({
      path: path.default('.'),
      maxEntries: z.int().min(1).max(100).default(100),
      cursor: cursor.optional(),
    }),
    result: z.strictObject({
      success,
      path,
      entries: z.array(z.strictObject({ name: z.string().max(1024), ...entryFacts })).max(100),
      truncated: z.boolean(),
      cursor: cursor.optional(),
    }),
  },
  'file.stat': {
    arguments: z.strictObject({ path }),
    result: z.strictObject({ success, path, ...entryFacts, sha256: sha256.optional() }),
  },
  'file.read': {
    arguments: z.strictObject({
      path,
      offset: z.int().min(0).default(0),
      maxBytes: z.int().min(1).max(262_144).default(4096),
    }),
    result: z.strictObject({
      success,
      path,
      offset: byteCount,
      byteCount,
      totalBytes: byteCount,
      /** Digest of the whole file. */
      sha256,
      /** `base64` where the bytes read are not UTF-8 text: binary content is marked, never mangled. */
      encoding: z.enum(['utf8', 'base64']),
      content: z.string().max(360_000),
      truncated: z.boolean(),
    }),
  },
  'file.search': {
    arguments: z.strictObject({
      query: z.string().min(1).max(1024),
      in: z.enum(['content', 'names']).default('content'),
      /** `pattern` is RE2 syntax, matched in linear time. */
      syntax: z.enum(['literal', 'pattern']).default('literal'),
      ignoreCase: z.boolean().default(false),
      path: path.default('.'),
      maxMatches: z.int().min(1).max(200).default(50),
    }),
    result: z.strictObject({
      success,
      matches: z
        .array(
          z.strictObject({
            path,
            line: z.int().min(1).optional(),
            column: z.int().min(1).optional(),
            text: z.string().max(400).optional(),
          }),
        )
        .max(200),
      filesSearched: z.int().min(0),
      bytesSearched: byteCount,
      /** Why the search ended before everything was seen; `complete` when it did not. */
      stopped: z.enum(['complete', 'matches', 'bytes', 'time']),
    }),
  },
  'file.write': {
    arguments: z.strictObject({
      path,
      content,
      createParents: z.boolean().default(false),
      /** Needed to replace what is there. */
      overwrite: z.boolean().default(false),
    }),
    result: z.strictObject({ success, path, byteCount, sha256 }),
  },
  'file.patch': {
    arguments: z.strictObject({
      path,
      /** Digest of the content that the edits were made against. */
      expectedSha256: sha256,
      /** Each `oldText` must occur exactly once; edits must not overlap. */
      edits: z
        .array(z.strictObject({ oldText: z.string().min(1).max(32_768), newText: z.string().max(32_768) }))
        .min(1)
        .max(32),
    }),
    result: z.strictObject({ success, path, byteCount, sha256 }),
  },
  'file.append': {
    arguments: z.strictObject({ path, content }),
    result: z.strictObject({ success, path, byteCount, sha256 }),
  },
  'file.delete': {
    arguments: z.strictObject({ path, recursive: z.boolean().default(false) }),
    result: z.strictObject({ success, path, removed: z.int().min(1) }),
  },
  'file.rename': {
    arguments: z.strictObject({ from: path, to: path }),
    result: z.strictObject({ success, from: path, to: path }),
  },
  'file.mkdir': {
    arguments: z.strictObject({ path, createParents: z.boolean().default(false) }),
    result: z.strictObject({ success, path }),
  },
  'file.chmod': {
    arguments: z.strictObject({ path, executable: z.boolean() }),
    result: z.strictObject({ success, path, mode }),
  },
  'workspace.review': {
    /** Without a cursor more than 100 changes are REVIEW_TOO_LARGE with the count; `cursor: "0"` begins the pages. */
    arguments: z.strictObject({ cursor: cursor.optional() }),
    result: z.strictObject({
      success,
      changeCount: z.int().min(0),
      changes: z.array(change).max(100),
      manifestDigest: sha256,
      /** Opaque identity of the root that the manifest was made against; an approval names it and `promote` recomputes it. */
      rootIdentity: sha256,
      cursor: cursor.optional(),
    }),
  },
  'review.difference': {
    arguments: z.strictObject({
      manifestDigest: sha256,
      /** X25519 public key of the person's page, base64 of 32 bytes. */
      recipientKey: z.base64().length(44),
      part: z.discriminatedUnion('of', [
        z.strictObject({ of: z.literal('manifest') }),
        z.strictObject({ of: z.literal('before'), change: z.int().min(0) }),
        z.strictObject({ of: z.literal('after'), change: z.int().min(0) }),
      ]),
      offset: z.int().min(0).default(0),
    }),
    result: z.strictObject({
      success,
      /** NaCl box of at most 256 KiB of that part, base64. */
      sealed: z.base64().max(360_000),
      nonce: z.base64().length(32),
      senderKey: z.base64().length(44),
      totalBytes: byteCount,
      /** Offset of the next piece; absent at the end. */
      next: byteCount.optional(),
    }),
  },
  'sandbox.stop': {
    arguments: z.strictObject({}),
    result: z.strictObject({ success, status: z.enum(['stopped', 'no_active_sandbox']) }),
  },
  'workspace.promote': {
    arguments: z.strictObject({ approvalDigest: sha256, manifestDigest: sha256, promotionId: promotionIdSchema }),
    result: z.strictObject({ success, manifestDigest: sha256, promotionId: promotionIdSchema }),
  },
} as const;

/** A key of an operation that this product implements. */
export type OperationKey = keyof typeof shapes;
export type OperationArguments<Key extends OperationKey> = z.infer<(typeof shapes)[Key]['arguments']>;
export type OperationSuccess<Key extends OperationKey> = z.infer<(typeof shapes)[Key]['result']>;

/** Why an operation did not succeed. Two causes have two codes. */
export const failureCodes = [
  'WORKSPACE_DENIED',
  'WORKSPACE_UNAVAILABLE',
  'REVIEW_TOO_LARGE',
  'REVIEW_STALE',
  'DIFFERENCE_DENIED',
  'PATCH_STALE',
  'PATCH_CONFLICT',
  'DRAFT_LIMIT',
  'RESULT_TOO_LARGE',
  'CANCELLED',
  'EXPIRED',
  'PROMOTION_REVIEW_STALE',
  'PROMOTION_TIMEOUT',
  'PROMOTION_RESULT_INVALID',
  'PROMOTION_REJECTED',
  'PROMOTION_MANIFEST_INVALID',
  'PROMOTION_UNSAFE_PATH',
  'PROMOTION_UNSAFE_ROOT',
  'PROMOTION_CONFLICT',
  'PROMOTION_IN_USE',
  'PROMOTION_JOURNAL_INVALID',
  'PROMOTION_RECOVERY_REQUIRED',
  'PROMOTION_IO_FAILURE',
  'PROMOTION_UNSUPPORTED',
  'PROMOTION_CONFIRMATION_REQUIRED',
  'HELPER_UNAVAILABLE',
] as const;
export type FailureCode = (typeof failureCodes)[number];

/** What every operation answers when it did not succeed. */
export const failureSchema = z.strictObject({
  success: z.literal(false),
  code: z.enum(failureCodes),
  message: z.string().max(400).optional(),
});
export type OperationFailure = z.infer<typeof failureSchema>;
export type OperationResult<Key extends OperationKey> = OperationSuccess<Key> | OperationFailure;

/** Everything both sides know about one operation. */
export interface Operation {
  readonly key: OperationKey;
  readonly caller: 'agent' | 'person';
  /** May change the draft; drafts are ordered within a run. */
  readonly writes: boolean;
  /** How long a command lives from dispatch, in ms. */
  readonly lifetimeMs: number;
  /** Largest encoded result, in bytes. */
  readonly resultLimitBytes: number;
  /** One sentence for models and people. */
  readonly description: string;
  readonly arguments: z.ZodType;
  readonly result: z.ZodType;
}

const FILE_MS = 25_000;
const RESULT_BYTES = 65_536;
const CONTENT_RESULT_BYTES = 400_000;

const row = (
  key: OperationKey,
  description: string,
  {
    caller = 'agent',
    writes = false,
    lifetimeMs = FILE_MS,
    resultLimitBytes = RESULT_BYTES,
  }: Partial<Pick<Operation, 'caller' | 'writes' | 'lifetimeMs' | 'resultLimitBytes'>> = {},
): Operation => ({ key, caller, writes, lifetimeMs, resultLimitBytes, description, ...shapes[key] });

/** The list, in the order in which people see it. */
export const operations: readonly Operation[] = [
  row(
    'file.list',
    'List a folder of the workspace in byte order, with kind, size, time and mode. Links are shown, never followed.',
  ),
  row('file.stat', 'Tell kind, size, time, mode and digest of one path.'),
  row('file.read', 'Read bytes of a file from an offset; says the total size and the digest of the whole file.', {
    resultLimitBytes: CONTENT_RESULT_BYTES,
  }),
  row(
    'file.search',
    'Search file contents or names, literally or by an RE2 pattern, and say whether the search was complete.',
  ),
  row('file.write', 'Write a whole file into the draft of this run.', { writes: true }),
  row('file.patch', 'Replace parts of a file in the draft, if the file still has the expected digest.', {
    writes: true,
  }),
  row('file.append', 'Append text to a file in the draft.', { writes: true }),
  row('file.delete', 'Remove a file or folder in the draft.', { writes: true }),
  row('file.rename', 'Rename or move a file or folder in the draft.', { writes: true }),
  row('file.mkdir', 'Make a folder in the draft.', { writes: true }),
  row('file.chmod', 'Set or clear the executable bit of a file in the draft.', { writes: true }),
  row('workspace.review', 'List what the draft of this run changes, with the digest that a person approves.'),
  row('sandbox.stop', 'End what this run holds on the machine; the draft is kept.'),
  row('review.difference', 'Read both sides of a reviewed change, sealed to the page of the person who asks.', {
    caller: 'person',
    resultLimitBytes: CONTENT_RESULT_BYTES,
  }),
  row('workspace.promote', 'Apply an approved draft to the workspace, all or nothing.', {
    caller: 'person',
    lifetimeMs: 120_000,
  }),
];

const byKey: ReadonlyMap<string, Operation> = new Map(operations.map((operation) => [operation.key, operation]));

/** Known names with nothing behind them here: refused as not implemented, never granted. */
export const unimplementedOperations = [
  'command.run',
  'browser.open',
  'browser.observe',
  'browser.act',
  'coding.launch',
  'coding.observe',
  'coding.attach',
  'coding.prompt',
  'coding.interrupt',
  'coding.close',
  'browser.connected.open',
  'browser.connected.observe',
  'browser.connected.act',
] as const;

/** Whether a key is known and nothing stands behind it here. */
export function isUnimplemented(key: string): boolean {
  return unimplementedOperations.some((name) => name === key);
}

/** The operation of that key, or undefined for a key that does not exist. */
export function findOperation(key: string): Operation | undefined {
  return byKey.get(key);
}

/** Arguments and result schema of one operation, typed. */
export function operationShape<Key extends OperationKey>(key: Key): (typeof shapes)[Key] {
  return shapes[key];
}

/** Keys that an agent may call without a guest: the workspace bundle, in order. */
export const workspaceBundle: readonly OperationKey[] = operations
  .filter((operation) => operation.caller === 'agent')
  .map((operation) => operation.key);

/** The name shown to models: letters, digits and underscores only. */
export function toolName(key: OperationKey): string {
  return key.replace('.', '_');
}
