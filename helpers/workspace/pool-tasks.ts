/*
 * What runs in the threads of the pool: work whose time follows the size of a file or a tree. Descriptors are opened and
 * closed by the main thread, except those of a search. A task answers a failure as a value, since an error that crosses
 * threads loses its kind.
 */
import { writeSync } from 'node:fs';

import { digestDescriptor, readWhole, type FileDigest } from '../files/digest.ts';
import type { OperationFailure, OperationSuccess } from '../protocol/operations.ts';
import { compareTexts, type Compared, type CompareTask } from './comparing.ts';
import { Ending, type EndingMark } from './ending.ts';
import { failureOf } from './failures.ts';
import { patchBytes, type Edit, type Patched } from './patching.ts';
import { searchBelow, type SearchTask } from './searching.ts';

/** How a task ended. */
export type Answer<Value> = { readonly value: Value } | { readonly failure: OperationFailure };

function answer<Value>(work: () => Value): Answer<Value> {
  try {
    return { value: work() };
  } catch (error) {
    const failure = failureOf(error);
    if (!failure) throw error;
    return { failure };
  }
}

/** SHA-256 of an open file. */
export function digest({ descriptor, ending }: { descriptor: number; ending: EndingMark }): Answer<FileDigest> {
  const end = new Ending(ending);
  return answer(() => digestDescriptor(descriptor, () => end.check()));
}

/** Copies one open file to the beginning of another and hashes it on the way. */
export function copy({ from, to, ending }: { from: number; to: number; ending: EndingMark }): Answer<FileDigest> {
  const end = new Ending(ending);
  return answer(() =>
    digestDescriptor(from, (chunk, offset) => {
      end.check();
      for (let done = 0; done < chunk.length;) done += writeSync(to, chunk, done, chunk.length - done, offset + done);
    }),
  );
}

/** Applies edits to the content of an open file of known size. */
export function patch(task: {
  descriptor: number;
  bytes: number;
  edits: readonly Edit[];
  ending: EndingMark;
}): Answer<Patched> {
  const end = new Ending(task.ending);
  return answer(() => patchBytes(readWhole(task.descriptor, task.bytes), task.edits, () => end.check()));
}

/** Searches names or contents below a folder. */
export function search(task: SearchTask): Answer<OperationSuccess<'file.search'>> {
  return answer(() => searchBelow(task));
}

/** Compares two sides of a change. */
export function compare(task: CompareTask): Answer<Compared> {
  return answer(() => compareTexts(task));
}
