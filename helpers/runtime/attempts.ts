/** One thing that a process tries to reach. None of them changes anything when it succeeds. */
export type Attempt =
  | {
      readonly what:
        | 'read a file'
        | 'open a file for writing'
        | 'list a folder'
        | 'make an unnamed file'
        | 'watch a folder';
      readonly path: string;
    }
  | {
      readonly what: 'set the mode it has' | 'set the times it has' | 'set the mode by descriptor';
      readonly path: string;
    }
  | {
      readonly what: 'connect over TCP' | 'connect by multipath TCP' | 'connect by a first send' | 'send a datagram';
      readonly port: number;
    }
  | { readonly what: 'connect to a Unix socket'; readonly path: string }
  | {
      readonly what:
        | 'listen on a network'
        | 'bind a UDP port'
        | 'make a socket pair'
        | 'start a child'
        | 'look at shared memory';
    }
  | { readonly what: 'signal a process' | 'signal a thread' | 'queue a signal'; readonly pid: number }
  | { readonly what: 'execve a program' | 'execveat an absolute path'; readonly path: string; readonly number: number }
  | { readonly what: 'execveat a memory file'; readonly number: number }
  | { readonly what: 'execveat an own file'; readonly folder: string; readonly number: number };

/** What came of it: the object was reached, or the errno name that kept it away. */
export type Outcome = { readonly reached: true } | { readonly reached: false; readonly code: string };

/** Whether a success replaces the process, so that it cannot tell of it. */
export function replacesProcess(attempt: Attempt): boolean {
  return attempt.what.startsWith('exec');
}

/** Exit code of the tiny program that the probe writes and runs; `/bin/true` exits 0. */
export const OWN_PROGRAM_EXIT = 42;

/** Lines that a probe writes on its channel, as JSON. */
export type ProbeLine =
  | { readonly trying: number }
  | { readonly tried: number; readonly outcome: Outcome }
  | { readonly finished: true };
