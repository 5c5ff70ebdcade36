/*
 * Answers of a machine with a very small workspace: files in a map, one draft for each run. It stands in for the machine's own
 * workspace process wherever only the control plane is tested.
 */
import { createHash } from 'node:crypto';
import type { Delivered, Play } from './fake-executor.ts';

type Result = Record<string, unknown>;
/** All fields that any played operation has; each operation's own are there. */
type Arguments = Record<'path' | 'content' | 'manifestDigest' | 'promotionId', string>;

/** Files by path; a run's writes are seen by that run alone. */
export class FakeWorkspace {
  readonly files: Map<string, string>;
  readonly drafts = new Map<string, Map<string, string>>();
  /** Identity of the root, 64 hexadecimal digits. */
  rootIdentity = 'ee'.repeat(32);
  /** How often an effect happened, by command. */
  readonly effects = new Map<string, number>();

  constructor(files: Record<string, string> = {}) {
    this.files = new Map(Object.entries(files));
  }

  /** Plays one command. */
  readonly play = (delivered: Delivered): Play => {
    const { command, operation, run } = delivered.envelope;
    this.effects.set(command, (this.effects.get(command) ?? 0) + 1);
    // The envelope's digest covers the arguments and the control plane parsed them with the operation's schema.
    const args = delivered.arguments as Arguments;
    const draft = this.drafts.get(run) ?? new Map<string, string>();
    this.drafts.set(run, draft);
    const result = this.#answer(operation, args, draft);
    return { outcome: result['success'] === true ? 'succeeded' : 'failed', result };
  };

  #answer(operation: string, args: Arguments, draft: Map<string, string>): Result {
    switch (operation) {
      case 'file.list':
        return this.#list(draft);
      case 'file.read':
        return read(args.path, draft.get(args.path) ?? this.files.get(args.path));
      case 'file.write':
        draft.set(args.path, args.content);
        return {
          success: true,
          path: args.path,
          byteCount: Buffer.byteLength(args.content),
          sha256: digest(args.content),
        };
      case 'workspace.review':
        return this.#review(draft);
      case 'workspace.promote':
        for (const [path, content] of draft) this.files.set(path, content);
        return { success: true, manifestDigest: args.manifestDigest, promotionId: args.promotionId };
      default:
        return { success: false, code: 'WORKSPACE_UNAVAILABLE', message: 'not played' };
    }
  }

  #list(draft: Map<string, string>): Result {
    const all = new Map([...this.files, ...draft]);
    const entries = [...all]
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, content]) => {
        return { name, kind: 'file', bytes: Buffer.byteLength(content), mode: '644', modifiedMs: 0 };
      });
    return { success: true, path: '.', entries, truncated: false };
  }

  #review(draft: Map<string, string>): Result {
    const changes = [...draft].map(([path, content]) => {
      const kind = this.files.has(path) ? 'modified' : 'created';
      return { path, kind, type: 'file', byteCount: Buffer.byteLength(content), hostChanged: false };
    });
    return {
      success: true,
      changeCount: changes.length,
      changes,
      manifestDigest: digest(JSON.stringify([...draft])),
      rootIdentity: this.rootIdentity,
    };
  }
}

function read(path: string, content: string | undefined): Result {
  if (content === undefined) return { success: false, code: 'WORKSPACE_UNAVAILABLE', message: `${path} is not there` };
  const byteCount = Buffer.byteLength(content);
  return {
    success: true,
    path,
    offset: 0,
    byteCount,
    totalBytes: byteCount,
    sha256: digest(content),
    encoding: 'utf8',
    content,
    truncated: false,
  };
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
