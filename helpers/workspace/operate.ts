/*
 * Runs one operation: the closed list, arguments checked again, the root checked, an end that is asked between pieces, and a
 * result that is bounded before it leaves.
 */
import type * as z from 'zod';

import {
  findOperation,
  operationShape,
  type OperationArguments,
  type OperationFailure,
  type OperationKey,
  type OperationSuccess,
} from '../protocol/operations.ts';
import type { Call, Services } from './call.ts';
import { sealDifference } from './difference.ts';
import { Ending } from './ending.ts';
import { denied, failureOf, OperationFailed } from './failures.ts';
import { listFolder, statPath } from './list.ts';
import type { WorkspaceBody } from './protocol.ts';
import { readFile, searchFiles } from './read.ts';
import { reviewDraft } from './review.ts';
import { Rules } from './rules.ts';
import { deletePath, makeFolder, renamePath } from './tree.ts';
import { appendFile, patchFile, setExecutable, writeFile } from './write.ts';

/** Operations that this process answers; `daemon` answers sandbox.stop, and `promote` applies. */
type Served = Exclude<OperationKey, 'sandbox.stop' | 'workspace.promote'>;
type Run<Key extends Served> = (call: Call, args: OperationArguments<Key>) => Promise<OperationSuccess<Key>>;

const table: { readonly [Key in Served]: Run<Key> } = {
  'file.list': listFolder,
  'file.stat': statPath,
  'file.read': readFile,
  'file.search': searchFiles,
  'file.write': writeFile,
  'file.append': appendFile,
  'file.patch': patchFile,
  'file.chmod': setExecutable,
  'file.delete': deletePath,
  'file.rename': renamePath,
  'file.mkdir': makeFolder,
  'workspace.review': reviewDraft,
  'review.difference': sealDifference,
};

const isServed = (key: string): key is Served => Object.hasOwn(table, key);

/** The operations that run now, by the name of their call. */
export class Running {
  readonly #endings = new Map<string, Ending>();
  #rules = new Rules([]);

  /** Ends a call at its next piece; a call that does not run is no error. */
  cancel(call: string): void {
    this.#endings.get(call)?.cancel();
  }

  /** Runs one operation to its success or failure; what is thrown is a bug. */
  async run(
    services: Services,
    body: WorkspaceBody<'workspace.operate'>,
  ): Promise<OperationSuccess<OperationKey> | OperationFailure> {
    const ending = Ending.within(body.withinMs);
    this.#endings.set(body.call, ending);
    try {
      services.guard.check();
      const call = { run: body.run, rules: this.#rulesOf(body.ignore), ending, services };
      return bounded(body.operation, await dispatch(call, body.operation, body.arguments));
    } catch (error) {
      const failure = failureOf(error);
      if (!failure) throw error;
      return failure;
    } finally {
      this.#endings.delete(body.call);
    }
  }

  /** The owner's rules change seldom, and reading them costs more than most operations. */
  #rulesOf(patterns: readonly string[]): Rules {
    if (!isSame(patterns, this.#rules.patterns)) this.#rules = new Rules(patterns);
    return this.#rules;
  }
}

function isSame(one: readonly string[], two: readonly string[]): boolean {
  return one.length === two.length && one.every((pattern, index) => pattern === two[index]);
}

function dispatch(call: Call, operation: string, args: unknown): Promise<OperationSuccess<OperationKey>> {
  if (!isServed(operation)) throw denied('this is no operation of the workspace');
  return runTyped(operation, call, args);
}

async function runTyped<Key extends Served>(key: Key, call: Call, args: unknown): Promise<OperationSuccess<Key>> {
  const parsed = operationShape(key).arguments.safeParse(args);
  if (!parsed.success) throw denied(whatIsWrong(parsed.error));
  // the schema of this key has passed them; the compiler cannot follow an indexed lookup through safeParse
  return table[key](call, parsed.data as OperationArguments<Key>);
}

function whatIsWrong({ issues }: z.ZodError): string {
  const [issue] = issues;
  const where = issue?.path.join('.') ?? '';
  return `argument ${where === '' ? 'list' : where}: ${issue?.message ?? 'not as expected'}`;
}

function bounded<Result>(operation: string, result: Result): Result {
  const limit = findOperation(operation)?.resultLimitBytes ?? 0;
  if (Buffer.byteLength(JSON.stringify(result)) <= limit) return result;
  throw new OperationFailed('RESULT_TOO_LARGE', `the result is larger than ${limit} bytes; ask for less at a time`);
}
