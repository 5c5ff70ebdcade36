/* Answers of the workspace to `daemon`, one function a request of protocol.ts. */
import { RootRefused } from '../files/root.ts';
import { forbiddenChains } from '../runtime/folder-chains.ts';
import type { FailureCode } from '../protocol/operations.ts';
import type { Services } from './call.ts';
import { showDifference } from './difference.ts';
import { Digests } from './digests.ts';
import type { MachineLimits } from './draft-budget.ts';
import { DraftRefused, DraftStore } from './draft-store.ts';
import { failureOf } from './failures.ts';
import { Running } from './operate.ts';
import { Pool, type PoolSource } from './pool.ts';
import {
  workspaceRefusals,
  type WorkspaceBody,
  type WorkspaceRefusal,
  type WorkspaceReply,
  type WorkspaceRequest,
} from './protocol.ts';
import { RootGuard } from './root-guard.ts';
import { LastSealed } from './sealed.ts';

/** Largest manifest that a reply to `workspace.freeze` carries; `promote` reads the draft itself in any case. */
const MANIFEST_LIMIT_BYTES = 900_000;

/** What the process is born with: open descriptors, and the executor's own folders as the supervisor names them. */
export interface Held {
  readonly root: number;
  readonly drafts: number;
  readonly forbiddenFolders: string;
  readonly tasks: PoolSource;
  /** Those of every machine where none are given. */
  readonly limits?: MachineLimits | undefined;
}

/** One answer for each request. */
export type Handlers = {
  readonly [Type in WorkspaceRequest]: (body: WorkspaceBody<Type>) => Promise<WorkspaceReply<Type>>;
};

/** The services of one process; reads the drafts folder. Throws NativeError, SyntaxError. */
export function makeServices({ root, drafts, forbiddenFolders, tasks, limits }: Held): Services {
  const guard = new RootGuard(root, drafts, forbiddenChains(forbiddenFolders));
  const pool = new Pool(tasks);
  const store = new DraftStore(drafts, guard.facts.rootIdentity.toString('hex'), limits);
  return { root, guard, store, pool, digests: new Digests(pool), lastSealed: new LastSealed() };
}

/** The handlers over those services. */
export function makeHandlers(services: Services): Handlers {
  const { guard, store } = services;
  const running = new Running();
  return {
    'workspace.root': async () => refusing(async () => rootReply(guard)),
    'workspace.operate': async (body) => ({ result: await running.run(services, body) }),
    'workspace.cancel': async ({ call }) => {
      running.cancel(call);
      return {};
    },
    'workspace.drafts': () => refusing(async () => ({ drafts: store.list(), frozen: store.frozen() })),
    'workspace.discard': ({ run }) => refusing(async () => ({ discarded: await store.discard(run) })),
    'workspace.freeze': ({ run, promotion, manifestDigest }) =>
      refusing(async () => {
        const { slot, manifest } = await store.freeze(run, promotion, manifestDigest);
        return manifest.length <= MANIFEST_LIMIT_BYTES ? { slot, manifest } : { slot };
      }),
    'workspace.release': ({ run, promotion, promoted }) =>
      refusing(async () => {
        await store.release(run, promotion, promoted);
        return {};
      }),
    'workspace.difference': (body) => refusing(() => showDifference(services, body)),
  };
}

function rootReply(guard: RootGuard): WorkspaceReply<'workspace.root'> {
  const { rootName, rootIdentity } = guard.facts;
  try {
    guard.check();
    return { rootName, rootIdentity, changed: false };
  } catch (error) {
    if (error instanceof RootRefused && error.reason === 'moved') return { rootName, rootIdentity, changed: true };
    if (error instanceof RootRefused && error.reason === 'overlaps')
      throw new DraftRefused('ROOT_OVERLAPS', error.message);
    throw error;
  }
}

const isRefusal = (code: string): code is WorkspaceRefusal => workspaceRefusals.some((known) => known === code);

function refusalFor(code: FailureCode): WorkspaceRefusal {
  if (code === 'REVIEW_STALE') return 'MANIFEST_STALE';
  return isRefusal(code) ? code : 'WORKSPACE_UNAVAILABLE';
}

/** Turns what an operation would answer as a failure into a refusal of the protocol; a bug stays what it is. */
async function refusing<Reply>(work: () => Promise<Reply>): Promise<Reply> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof DraftRefused) throw error;
    const failure = failureOf(error);
    if (!failure) throw error;
    throw new DraftRefused(refusalFor(failure.code), failure.message ?? 'it could not be done');
  }
}
