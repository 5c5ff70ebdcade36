/* The bundle that a thread of the pool starts: Piscina's own side of the thread, and the tasks that it looks up in this file. */
// the package's exports hide this file (build/plugins.ts finds it), and its side effect, listening for tasks, is all that is wanted of it
// @ts-expect-error
// oxlint-disable-next-line import/no-unassigned-import
import 'piscina/dist/worker.js';

export { compare, copy, digest, patch, search } from './pool-tasks.ts';
