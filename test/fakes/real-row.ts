import fs from 'node:fs';
import type { Socket } from 'node:net';
import os from 'node:os';
import path from 'node:path';

import { bundle, ENTRIES } from '../../helpers/build/bundle.ts';
import type { Entry } from '../../helpers/build/bundle.ts';
import { readInstallation } from '../../helpers/runtime/installation.ts';
import { UID_BASE } from '../../helpers/runtime/privileges.ts';
import type { RowName } from '../../helpers/runtime/privileges.ts';
import { startRow } from '../../helpers/runtime/start.ts';
import type { Started } from '../../helpers/runtime/start.ts';

/** Bundles of some rows in a folder that every uid can read; `remove` deletes it. */
export interface RealInstallation {
  readonly folder: string;
  remove(): void;
}

/** Bundles launch and the named rows. */
export async function installRows(...rows: readonly RowName[]): Promise<RealInstallation> {
  const names: ReadonlySet<string> = new Set(['launch', ...rows]);
  return install(ENTRIES.filter(({ name }) => names.has(name)));
}

/** Bundles launch and, under the name and so with the privileges of promote, one that dies where it is ordered to. */
export async function installVictim(): Promise<RealInstallation> {
  const victim = 'test/fixtures/roles/promote-victim.ts';
  const asPromote = ENTRIES.map((entry) => (entry.name === 'promote' ? { ...entry, source: victim } : entry));
  return install(asPromote.filter(({ name }) => name === 'launch' || name === 'promote'));
}

async function install(entries: readonly Entry[]): Promise<RealInstallation> {
  const top = path.resolve(import.meta.dirname, '..', '..');
  const parent = fs.mkdtempSync(path.join(os.tmpdir(), 'rows-'));
  fs.chmodSync(parent, 0o755);
  const folder = path.join(parent, 'dist');
  await bundle(top, folder, entries);
  return { folder, remove: () => fs.rmSync(parent, { recursive: true }) };
}

/** What a row gets beside its channel. */
export interface RealRow {
  readonly row: RowName;
  /** Descriptors beside 3, by their number in the row. */
  readonly descriptors: Readonly<Record<number, number>>;
  readonly origin?: string;
  readonly loopback?: boolean;
}

/** Uid that a row takes under root, or undefined where the tests run as an ordinary user. */
export function uidOf(offset: number): number | undefined {
  return process.getuid?.() === 0 ? UID_BASE + offset : undefined;
}

/** Starts a row through launch, confined, with a new channel. */
export function startRealRow(
  { folder }: RealInstallation,
  { row, descriptors, origin, loopback = false }: RealRow,
  uid: number | undefined,
): Started & { readonly channel: Socket } {
  const others = Object.entries(descriptors).map(([number, open]) => [Number(number), open] as const);
  const started = startRow({
    row,
    program: 'role',
    installation: readInstallation(folder),
    connect: undefined,
    user: uid === undefined ? undefined : { uid, gid: uid },
    slot: 0,
    origin,
    loopback,
    forbiddenFolders: '',
    records: undefined,
    descriptors: new Map<number, number | 'channel' | 'log'>([[3, 'channel'], ...others]),
  });
  const { channel } = started;
  if (!channel) throw new TypeError('a row without a channel');
  return { ...started, channel };
}
