/** How a command ends, by a word that code uses and the number that a shell sees. */
export const EXIT_CODES = {
  done: { code: 0, means: 'done' },
  difference: {
    code: 1,
    means: 'a check found a difference: audit, doctor, receipts verify, trace replay or diff, simulate',
  },
  usage: { code: 2, means: 'the command line is wrong' },
  refused: { code: 3, means: 'a rule or a person said no; nothing was changed' },
  unreachable: { code: 4, means: 'the daemon does not run, or does not answer' },
  failed: { code: 5, means: 'it was tried and did not work' },
  violation: { code: 64, means: 'a process broke the protocol; `nessie-executor repair`' },
  ended: { code: 69, means: 'the daemon ended by itself' },
  bug: { code: 70, means: 'this program did what it should not; please report it' },
  running: { code: 75, means: 'another executor serves this state folder' },
  configuration: { code: 78, means: 'the configuration cannot be used' },
} as const;

/** A way to end. */
export type Ending = keyof typeof EXIT_CODES;

/** Ends a command with one sentence on standard error; never a path, key or content of a file. */
export class CliFailure extends Error {
  override readonly name = 'CliFailure';
  readonly ending: Ending;

  constructor(ending: Exclude<Ending, 'done'>, message: string, options?: ErrorOptions) {
    super(message, options);
    this.ending = ending;
  }
}
