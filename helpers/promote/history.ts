/* Promotions that can be rolled back later, and how many of them are kept: the newest, up to a size and an age. */
import { closeSync } from 'node:fs';
import { AT_REMOVEDIR, fsync, statx, unlinkat } from '../runtime/native-files.ts';
import { restingIds, RestingFolder } from './resting-place.ts';
import { namesIn, openFolderAt } from './tree.ts';

/** Old files of all kept promotions together, in bytes; of one promotion alone no more are kept either. */
export const HISTORY_LIMIT_BYTES = 1_073_741_824;
/** A promotion older than this is forgotten, in ms. */
const HISTORY_LIMIT_MS = 30 * 86_400_000;

interface Kept {
  readonly id: string;
  readonly bytes: number;
  readonly atNs: bigint;
}

/** Forgets the oldest promotions beyond the limits; the newest stays whatever its size, since it shows that it was committed. `now` in ms since the Unix epoch. Throws NativeError. */
export function pruneHistory(own: number, now: number): void {
  const kept = restingIds(own, 'history').map((id) => sizeOf(own, id));
  kept.sort((one, two) => (one.atNs > two.atNs ? -1 : 1));
  let bytes = 0;
  for (const [index, promotion] of kept.entries()) {
    bytes += promotion.bytes;
    const isOld = promotion.atNs < BigInt(now - HISTORY_LIMIT_MS) * 1_000_000n;
    if (isOld || (index > 0 && bytes > HISTORY_LIMIT_BYTES)) forget(own, promotion.id);
  }
}

function sizeOf(own: number, id: string): Kept {
  const folder = new RestingFolder(own, 'history', id);
  try {
    const files = namesIn(folder.open()).map((name) => statx(folder.open(), name));
    const bytes = files.reduce((sum, { size }) => sum + Number(size), 0);
    const atNs = files.reduce((latest, { ctimeNs }) => (ctimeNs > latest ? ctimeNs : latest), 0n);
    return { id, bytes, atNs };
  } finally {
    folder.close();
  }
}

function forget(own: number, id: string): void {
  const history = openFolderAt(own, Buffer.from('history'));
  try {
    const folder = openFolderAt(history, Buffer.from(id));
    for (const name of namesIn(folder)) unlinkat(folder, name, 0);
    closeSync(folder);
    unlinkat(history, Buffer.from(id), AT_REMOVEDIR);
    fsync(history);
  } finally {
    closeSync(history);
  }
}
