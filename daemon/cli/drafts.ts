/*
 * `drafts`: what agents drafted on this machine, and discarding it.
 */
import { runIdSchema } from '../../helpers/protocol/ids.ts';
import type { RunId } from '../../helpers/protocol/ids.ts';
import { withdrawConfirmations } from './confirmations.ts';
import { CliFailure } from './failure.ts';
import { askDaemon } from './owner-client.ts';
import type { Places } from './places.ts';
import { columns, counted, say, sayJson, typed } from './terminal.ts';
import type { Terminal } from './terminal.ts';

/** Reads a run id from the command line. Throws CliFailure: usage. */
export function readRun(text: string): RunId {
  const run = runIdSchema.safeParse(text);
  if (run.success) return run.data;
  throw new CliFailure('usage', 'that is no run; `nessie-executor drafts` lists them (run_ and 32 hexadecimal digits)');
}

/** Lists the drafts, newest change first. */
export async function listDrafts(terminal: Terminal, places: Places, isJson: boolean): Promise<void> {
  const { drafts } = await askDaemon(places.stateDir, 'daemon.drafts', {});
  if (isJson) return sayJson(terminal, { drafts });
  if (drafts.length === 0) return say(terminal, 'No draft is left on this machine.');
  const newest = drafts.toSorted((one, other) => other.changedAt - one.changedAt);
  const rows = newest.map(({ run, changeCount, byteCount, changedAt, damaged }) => [
    run,
    damaged ? 'damaged' : counted(changeCount, 'change'),
    counted(byteCount, 'byte'),
    new Date(changedAt).toISOString(),
  ]);
  for (const line of columns([['RUN', 'CHANGES', 'SIZE', 'LAST CHANGE'], ...rows])) say(terminal, line);
}

/** Removes a draft for good, with what was confirmed of it, after a person typed its last eight digits. Rejects with CliFailure: refused. */
export async function discardDraft(
  terminal: Terminal,
  places: Places,
  text: string,
  isConfirmed: boolean,
): Promise<void> {
  const run = readRun(text);
  const digits = run.slice(-8);
  if (!isConfirmed && !(await typed(terminal, `This draft is lost for good. Type ${digits} to discard it:`, digits))) {
    throw new CliFailure('refused', 'nothing was discarded');
  }
  withdrawConfirmations(places, run);
  const { discarded } = await askDaemon(places.stateDir, 'daemon.discard', { run });
  if (!discarded) throw new CliFailure('refused', 'there is no draft of that run');
  say(terminal, 'Discarded.');
}
