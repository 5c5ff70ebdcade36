/*
 * Confirmations of the person at this machine: one file a list of changes, which promote reads. Each serves one promotion within
 * an hour, and goes when it is taken back, when its draft is discarded, or, once it counts no more, with the next one.
 */
import fs from 'node:fs';
import path from 'node:path';
import { CONFIRMATION_MS } from '../../helpers/promote/protocol.ts';
import type { OwnerConfirmation } from '../../helpers/promote/protocol.ts';
import type { RunId } from '../../helpers/protocol/ids.ts';
import { configurationReaders, makeFolder, removeOwnerFile, writeOwnerFile } from './owner-files.ts';
import type { Places } from './places.ts';

const folderOf = ({ ownerDir }: Places): string => path.join(ownerDir, 'confirmations');

/** Writes what a person confirmed. Called after the person's answer and never before. */
export function writeConfirmation(places: Places, confirmation: OwnerConfirmation): void {
  removeWhere(places, ({ at }) => typeof at !== 'number' || confirmation.at - at > CONFIRMATION_MS);
  const readers = configurationReaders(process.getuid?.() ?? -1);
  makeFolder(folderOf(places), readers);
  const file = path.join(folderOf(places), `${confirmation.manifestDigest}.json`);
  writeOwnerFile(file, `${JSON.stringify(confirmation, null, 2)}\n`, readers);
}

/** Takes back whatever was confirmed of a run's draft; how many confirmations that were. */
export function withdrawConfirmations(places: Places, run: RunId): number {
  return removeWhere(places, (confirmation) => confirmation.run === run);
}

function removeWhere(
  places: Places,
  is: (confirmation: { readonly run?: unknown; readonly at?: unknown }) => boolean,
): number {
  const folder = folderOf(places);
  const names = fs.existsSync(folder) ? fs.readdirSync(folder).filter((name) => name.endsWith('.json')) : [];
  const found = names.filter((name) => {
    const value = valueIn(path.join(folder, name));
    return typeof value === 'object' && value !== null && is(value);
  });
  for (const name of found) removeOwnerFile(path.join(folder, name));
  return found.length;
}

/** What a file holds; undefined for one that is no JSON, which confirms nothing either. */
function valueIn(file: string): unknown {
  try {
    return JSON.parse(fs.readFileSync(file, 'utf8'));
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
