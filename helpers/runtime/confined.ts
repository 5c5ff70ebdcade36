import fs from 'node:fs';

/** Fields of `/proc/self/status` that a confined row must show (proc_pid_status(5)). */
const EXPECTED: Readonly<Record<string, RegExp>> = {
  NoNewPrivs: /^1$/,
  Seccomp: /^2$/,
  CapInh: /^0+$/,
  CapPrm: /^0+$/,
  CapEff: /^0+$/,
  CapAmb: /^0+$/,
};

/** The first field that shows a lack of confinement, or undefined where all are as launch leaves them. */
export function missingConfinement(status: string): string | undefined {
  const fields = new Map(
    status.split('\n').map((line) => {
      const [name = '', value = ''] = line.split(':');
      return [name, value.trim()] as const;
    }),
  );
  return Object.entries(EXPECTED).find(([name, expected]) => !expected.test(fields.get(name) ?? ''))?.[0];
}

/** Ends this process with a sentence unless launch has confined it: a role never reads a byte of a peer before that is sure. */
export function endUnlessConfined(): void {
  const missing = missingConfinement(fs.readFileSync('/proc/self/status', 'utf8'));
  if (missing === undefined) return;
  fs.writeSync(2, `not confined (${missing}): a role is started by the supervisor, never by hand\n`);
  process.exit(1);
}
