/*
 * The threads beside the main loop. None runs while nothing is asked of them, so at rest they cost no memory; a thread that
 * has been idle for ten seconds ends.
 */
import type { Piscina } from 'piscina';

import { OperationFailed } from './failures.ts';
import type * as tasks from './pool-tasks.ts';
import type { Answer } from './pool-tasks.ts';

type Tasks = typeof tasks;
type Input<Name extends keyof Tasks> = Parameters<Tasks[Name]>[0];
type Value<Name extends keyof Tasks> = ReturnType<Tasks[Name]> extends Answer<infer Result> ? Result : never;

const IDLE_MS = 10_000;
const THREADS = 2;

/** Where the tasks are, and flags of node for the threads that load them. */
export interface PoolSource {
  readonly filename: string;
  readonly execArgv?: string[];
}

/** Loads Piscina with the first task: a workspace that was only read from never holds it in memory. */
async function startPool(source: PoolSource): Promise<Piscina> {
  const { Piscina } = await import('piscina');
  return new Piscina({
    ...source,
    minThreads: 0,
    maxThreads: THREADS,
    idleTimeout: IDLE_MS,
    recordTiming: false,
    // node does not see what native calls open, and would warn of each that is closed: a search would hold the warnings
    trackUnmanagedFds: false,
    resourceLimits: { maxOldGenerationSizeMb: 192 },
  });
}

/** A thread that used up its memory has ended alone: its task failed, the process goes on. */
function withoutMemory(error: unknown): never {
  if (!(error instanceof Error && 'code' in error && error.code === 'ERR_WORKER_OUT_OF_MEMORY')) throw error;
  throw new OperationFailed(
    'WORKSPACE_UNAVAILABLE',
    'this needs more memory than one operation may use; ask for less',
    { cause: error },
  );
}

/** The pool of one process. */
export class Pool {
  readonly #source: PoolSource;
  #piscina: Promise<Piscina> | undefined;

  constructor(source: PoolSource) {
    this.#source = source;
  }

  /** Runs one task. Throws OperationFailed as the task answered it. */
  async run<Name extends keyof Tasks>(name: Name, input: Input<Name>): Promise<Value<Name>> {
    this.#piscina ??= startPool(this.#source);
    const piscina = await this.#piscina;
    // Piscina carries any value; what a task of this name answers is known from its type
    const answer = (await piscina.run(input, { name }).catch(withoutMemory)) as Answer<Value<Name>>;
    if ('value' in answer) return answer.value;
    throw new OperationFailed(answer.failure.code, answer.failure.message ?? 'the operation failed');
  }

  /** Ends all threads. */
  async close(): Promise<void> {
    const piscina = await this.#piscina;
    this.#piscina = undefined;
    await piscina?.destroy();
  }
}
