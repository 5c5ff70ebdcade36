/*
 * Watches the owner's policy file. Each change is read whole; a file that is being replaced is read again when it settles.
 */
import fs from 'node:fs';
import { watch } from 'chokidar';
import { readOwnersText } from './owners-text.ts';

const POLICY = 'policy.json';
const POLL_MS = 250;
const LIMIT_BYTES = 1_048_576;

/** Calls `changed` with the file's text now and after each change; undefined when it cannot be read. Returns how to stop. */
export async function watchPolicy(
  folder: string,
  changed: (text: string | undefined) => void,
): Promise<() => Promise<void>> {
  const file = `${folder}/${POLICY}`;
  let last: string | undefined | null = null;
  const read = (): void => {
    const text = readOwnersText(file, LIMIT_BYTES);
    if (text === last) return;
    last = text;
    changed(text);
  };
  read();
  // The folder is watched, not the file: editors replace files, and a watch on the old one would see nothing.
  // By the clock, not by inotify: a watch of the kernel needs no right that Landlock knows, so no role may make one.
  const watcher = watch(folder, { depth: 0, ignoreInitial: true, usePolling: true, interval: POLL_MS });
  watcher.on('all', read);
  // chokidar resolves the folder's path; where a role's own uid cannot walk it, the inherited descriptor is asked by the clock.
  watcher.on('error', () => fs.watchFile(file, { interval: POLL_MS }, read));
  await new Promise<void>((resolve) => watcher.once('ready', resolve));
  read();
  return async () => {
    fs.unwatchFile(file, read);
    await watcher.close();
  };
}
