/*
 * The threads beside the main loop. None runs while nothing is asked of them, so at rest they cost no memory; a thread that
 * has been idle for ten seconds ends.
 */
import { Piscina } from 'piscina';

import { OperationFailed } from './failures.ts';
import type * as tasks from './pool-tasks.ts';
import type { Answer } from './pool-tasks.ts';

type Tasks = Omit<typeof tasks, 'readWhole'>;
type Input<Name extends keyof Tasks> = Parameters<Tasks[Name]>[0];
type Value<Name extends keyof Tasks> = ReturnType<Tasks[Name]> extends Answer<infer Result> ? Result : never;

const IDLE_MS = 10_000;
const THREADS = 2;

/** Where the tasks are, and flags of node for the threads that load them. */
export interface PoolSource {
  readonly filename: string;
  readonly execArgv?: string[];
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
  #piscina: Piscina | undefined;

  constructor(source: PoolSource) {
    this.#source = source;
  }

  /** Runs one task. Throws OperationFailed as the task answered it. */
  async run<Name extends keyof Tasks>(name: Name, input: Input<Name>): Promise<Value<Name>> {
    this.#piscina ??= new Piscina({
      ...this.#source,
      minThreads: 0,
      maxThreads: THREADS,
      idleTimeout: IDLE_MS,
      recordTiming: false,
      // node does not see what native calls open, and would warn of each that is closed: a search would hold the warnings
      trackUnmanagedFds: false,
      resourceLimits: { maxOldGenerationSizeMb: 192 },
    });
    // Piscina carries any value; what a task of this name answers is known from its type
    const answer = (await this.#piscina.run(input, { name }).catch(withoutMemory)) as Answer<Value<Name>>;
    if ('value' in answer) return answer.value;
    throw new OperationFailed(answer.failure.code, answer.failure.message ?? 'the operation failed');
  }

  /** Ends all threads. */
  async close(): Promise<void> {
    await this.#piscina?.destroy();
    this.#piscina = undefined;
  }
}
