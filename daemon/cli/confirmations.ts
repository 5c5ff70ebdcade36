/*
 * Confirmations of the person at this machine: one file a list of changes or an undo, which promote reads. Each serves once within
 * an hour, and goes when it is taken back, when its draft is discarded, or, once it counts no more, with the next one.
 */
import fs from 'node:fs';
import path from 'node:path';
import { CONFIRMATION_MS } from '../../helpers/promote/protocol.ts';
import type { OwnerConfirmation, UndoConfirmation } from '../../helpers/promote/protocol.ts';
import type { RunId } from '../../helpers/protocol/ids.ts';
import { configurationReaders, makeFolder, removeOwnerFile, writeOwnerFile } from './owner-files.ts';
import type { Places } from './places.ts';

const folderOf = ({ ownerDir }: Places): string => path.join(ownerDir, 'confirmations');

const fileOf = (places: Places, digest: string): string => path.join(folderOf(places), `${digest}.json`);

/** Writes what a person confirmed of a draft. Called after the person's answer and never before. */
export function writeConfirmation(places: Places, confirmation: OwnerConfirmation): void {
  write(places, confirmation.manifestDigest, confirmation);
}

/** Writes that the owner confirmed an undo. Called after the owner's answer and never before. */
export function writeUndoConfirmation(places: Places, confirmation: UndoConfirmation): void {
  write(places, confirmation.journalDigest, confirmation);
}

/** Removes a confirmation that has served, or that nobody took. */
export function removeConfirmation(places: Places, digest: string): void {
  removeOwnerFile(fileOf(places, digest));
}

function write(places: Places, digest: string, confirmation: OwnerConfirmation | UndoConfirmation): void {
  removeWhere(places, ({ at }) => typeof at !== 'number' || confirmation.at - at > CONFIRMATION_MS);
  const readers = configurationReaders(process.getuid?.() ?? -1);
  makeFolder(folderOf(places), readers);
  writeOwnerFile(fileOf(places, digest), `${JSON.stringify(confirmation, null, 2)}\n`, readers);
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
