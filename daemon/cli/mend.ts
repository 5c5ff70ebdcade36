/*
 * `repair`, `rotate-key` and `forget`: what a person does to an executor that is theirs.
 */
import fs from 'node:fs';
import { remove } from 'fs-extra/esm';
import path from 'node:path';
import { CliFailure } from './failure.ts';
import { askDaemon, isDaemonUp } from './owner-client.ts';
import type { Places } from './places.ts';
import { draftCount } from './policy.ts';
import { requireSetUp } from './set-up.ts';
import { withDaemon } from './supervised.ts';
import { grouped, say, sayJson, typed, visible, withProgress } from './terminal.ts';
import type { Terminal } from './terminal.ts';

/** What may be done with a journal that recovery could not settle. */
export type JournalChoice = 'leave' | 'restore' | 'set-aside';

/** Makes the folders private again, and lets a daemon in its error state try again. */
export async function repair(
  terminal: Terminal,
  places: Places,
  journal: JournalChoice,
  isJson: boolean,
): Promise<void> {
  requireSetUp(places);
  const closed = closeFolders(places);
  const isUp = await isDaemonUp(places.stateDir);
  if (!isJson) for (const name of closed) say(terminal, `${name} is private again`);
  if (!isUp && isJson) return sayJson(terminal, { closed, state: null, settled: [] });
  if (!isUp) return say(terminal, 'The daemon does not run; start it with `nessie-executor daemon`.');
  const { state, settled } = await askDaemon(places.stateDir, 'daemon.repair', { journal });
  if (isJson) return sayJson(terminal, { closed, state, settled });
  for (const name of settled) say(terminal, `kept beside: ${visible(name)}`);
  return say(terminal, `The daemon goes on: ${state}.`);
}

function closeFolders({ stateDir }: Places): string[] {
  const own = process.getuid?.();
  const folders: [string, string][] = [['the state folder', stateDir]];
  for (const name of ['run', 'audit']) folders.push([`the folder ${name}`, path.join(stateDir, name)]);
  return folders.flatMap(([what, folder]) => {
    const stat = fs.lstatSync(folder, { throwIfNoEntry: false });
    if (!stat?.isDirectory() || stat.uid !== own || (stat.mode & 0o077) === 0) return [];
    fs.chmodSync(folder, 0o700);
    return [what];
  });
}

/** Puts a new machine key in place of the old one; a rotation that was interrupted goes on. */
export async function rotateKey(terminal: Terminal, places: Places, isJson: boolean): Promise<void> {
  const work = askDaemon(places.stateDir, 'daemon.rotate-key', {});
  const { fingerprint } = await withProgress(terminal, 'rotating the key', work);
  if (isJson) return sayJson(terminal, { fingerprint });
  return say(terminal, `The machine's key is now ${grouped(fingerprint)}. The old one is erased.`);
}

/** Erases key, drafts, policy and configuration of an executor after a person typed its name; the control plane's record stays. Rejects with CliFailure: refused. */
export async function forget(terminal: Terminal, places: Places, isConfirmed: boolean): Promise<void> {
  requireSetUp(places);
  say(
    terminal,
    `Forgetting erases the key, the policy, the ledger and ${draftCount(places)} drafts of "${places.name}" on this machine.`,
  );
  say(terminal, 'The record on the control plane stays; an owner can revoke it there.');
  if (!isConfirmed && !(await typed(terminal, `Type ${places.name} to forget it:`, places.name))) {
    throw new CliFailure('refused', 'nothing was erased');
  }
  await withDaemon(places, () => askDaemon(places.stateDir, 'daemon.forget', {})).catch((error: unknown) => {
    // A daemon that cannot start must not keep its owner from erasing what is theirs.
    say(
      terminal,
      `The daemon could not erase the key itself (${error instanceof CliFailure ? error.message : 'failed'}); its folder goes now.`,
    );
  });
  await untilStopped(places);
  for (const folder of [places.stateDir, places.configDir]) await remove(folder);
  say(terminal, 'Forgotten.');
}

const STOP_MS = 15_000;

async function untilStopped(places: Places): Promise<void> {
  const deadline = performance.now() + STOP_MS;
  while (await isDaemonUp(places.stateDir)) {
    if (performance.now() > deadline)
      throw new CliFailure('failed', 'the daemon does not stop; stop it and run this again');
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
