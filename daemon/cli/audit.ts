/*
 * `audit`: what each process can really do, from the kernel's own view and by trying, held against the table.
 */
import fs from 'node:fs';
import path from 'node:path';
import { copyForOtherUsers, readInstallation, verifyFiles } from '../../helpers/runtime/installation.ts';
import type { Installation } from '../../helpers/runtime/installation.ts';
import { inspectTree } from '../../helpers/runtime/inspect.ts';
import type { Inspection } from '../../helpers/runtime/inspect.ts';
import { runTwins } from '../../helpers/runtime/twins.ts';
import type { TwinFinding } from '../../helpers/runtime/twins.ts';
import { TABLE } from '../../helpers/table.ts';
import { CliFailure } from './failure.ts';
import { isDaemonUp } from './owner-client.ts';
import type { Places } from './places.ts';
import { requireSetUp } from './set-up.ts';
import { installationFolder } from './supervised.ts';
import { columns, say, sayJson, styled, withProgress } from './terminal.ts';
import type { Terminal } from './terminal.ts';

/** The installation as rows of this user see it: under root a copy that every uid can read. Throws InstallationError for a file that is not as built. */
export function installationOfRows(): Installation {
  const built = readInstallation(installationFolder());
  verifyFiles(built, [...built.hashes.keys()]);
  return process.getuid?.() === 0 ? copyForOtherUsers(built) : built;
}

/** Prints what was found. Rejects with CliFailure: difference where anything is not as the table says. */
export async function audit(terminal: Terminal, places: Places, isJson: boolean): Promise<void> {
  const configuration = requireSetUp(places);
  const installation = installationOfRows();
  if (!fs.existsSync(path.join(places.stateDir, 'drafts'))) {
    throw new CliFailure('refused', 'the folders of the rows are made when the daemon first starts; start it once');
  }
  const tree = (await isDaemonUp(places.stateDir)) ? inspectTree(installation, configuration) : undefined;
  const twins = await withProgress(
    terminal,
    'trying what each row must not reach',
    runTwins(installation, configuration),
  );
  const differences = [
    ...(tree?.differences ?? []),
    ...twins.filter(({ isDifference }) => isDifference).map(sentenceOf),
  ];
  if (isJson)
    sayJson(terminal, {
      installation: installation.digest,
      running: tree ?? null,
      tries: twins,
      unconfined: unconfined(),
      differences,
    });
  else print(terminal, installation, tree, twins);
  if (differences.length > 0) {
    if (!isJson) for (const difference of differences) say(terminal, styled(terminal, 'red', `  ${difference}`));
    throw new CliFailure('difference', `${differences.length} things are not as the table says`);
  }
}

/** What a try showed that is not as the table says, in a sentence. */
export function sentenceOf({ row, title, expected, twin, control }: TwinFinding): string {
  if (!control.reached) return `${row}: "${title}" shows nothing, because it fails without confinement too`;
  return `${row}: "${title}" was ${twin.reached ? 'reached' : 'refused'}, expected ${expected}`;
}

function unconfined(): { readonly row: string; readonly reason: string }[] {
  return Object.values(TABLE).flatMap((row) => (row.confined ? [] : [{ row: row.row, reason: row.reason }]));
}

function print(
  terminal: Terminal,
  installation: Installation,
  tree: Inspection | undefined,
  twins: readonly TwinFinding[],
): void {
  say(terminal, `installation ${installation.digest}, every file as built`);
  if (tree === undefined)
    say(terminal, 'The daemon does not run: shown is what rows could do, not what running ones do.');
  else
    say(
      terminal,
      `Landlock ABI ${tree.landlockAbi ?? 'unknown'}; ${tree.landlockAbi === undefined ? '' : missingRights(tree.landlockAbi)}`,
    );
  const rows = (tree?.processes ?? []).map(({ row, slot, pid, threads, differences }) => [
    row ?? 'unknown',
    slot === 0 ? '' : `slot ${slot}`,
    `pid ${pid}`,
    `${threads.length} threads`,
    differences.length === 0 ? 'as the table says' : `${differences.length} differences`,
  ]);
  for (const line of columns(rows)) say(terminal, `  ${line}`);
  for (const { row, tries, wrong } of byRow(twins)) {
    const result = wrong === 0 ? `${tries} tries, each as the table says` : `${wrong} of ${tries} tries otherwise`;
    say(terminal, `  ${row.padEnd(12)}${styled(terminal, wrong === 0 ? 'green' : 'red', result)}`);
  }
  for (const { row, reason } of unconfined()) say(terminal, `  ${row.padEnd(12)}not confined: ${reason}`);
}

// What older kernels lack, by the ABI that brought it (landlock(7)).
function missingRights(abi: number): string {
  const missing = [
    ...(abi < 4 ? ['ports of TCP are not limited by the kernel (ABI 4)'] : []),
    ...(abi < 6 ? ['signals are not limited by the kernel (ABI 6)'] : []),
  ];
  return missing.length === 0 ? 'ports and signals are limited' : missing.join(', ');
}

function byRow(twins: readonly TwinFinding[]): { row: string; tries: number; wrong: number }[] {
  const rows = new Map<string, { row: string; tries: number; wrong: number }>();
  for (const { row, isDifference } of twins) {
    const one = rows.get(row) ?? { row, tries: 0, wrong: 0 };
    rows.set(row, { row, tries: one.tries + 1, wrong: one.wrong + (isDifference ? 1 : 0) });
  }
  return [...rows.values()];
}
