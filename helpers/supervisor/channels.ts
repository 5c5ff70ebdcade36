import fs from 'node:fs';

import { isOwnersAlone, StartRefusal, type Configuration } from '../runtime/configuration.ts';
import { chainOf, overlapOf } from '../runtime/folder-chains.ts';
import { listenAt, unixSocket } from '../runtime/native-sockets.ts';
import type { Confined, DescriptorSource, RowName } from '../runtime/privileges.ts';
import { slotName } from '../runtime/slots.ts';
import { openBelow, openFolder, openStateFolder, type Owners, type StateFolders } from '../runtime/state-folder.ts';
import { userOf } from '../runtime/users.ts';
import { TABLE } from '../table.ts';

/** Everything that the supervisor holds open to hand out: `known` by source, two folders once more for what is asked of them here. */
export type Channels = {
  readonly configuration: Configuration;
  readonly configurationFolder: number;
  readonly state: StateFolders;
  readonly root: number;
  readonly known: ReadonlyMap<DescriptorSource, number>;
};

function openOrRefuse(folder: string, code: string, what: string): number {
  try {
    return openFolder(folder);
  } catch {
    // the cause would tell a path
    throw new StartRefusal(code, `${what} cannot be opened: run \`nessie-executor doctor\``);
  }
}

/**
 * As openOrRefuse, and the folder is the caller's own.
 * THREAT: another user who owns or may write it decides what root's executor permits, and which control plane it believes
 * (test/helpers/supervisor/refusals.test.ts).
 */
function openOwn(folder: string, code: string, what: string): number {
  const descriptor = openOrRefuse(folder, code, what);
  if (isOwnersAlone(fs.fstatSync(descriptor))) return descriptor;
  const rule = 'must belong to the user who starts this and be writable by nobody else';
  throw new StartRefusal('CONFIGURATION_UNSAFE', `${what} ${rule} (chown, chmod): run \`nessie-executor doctor\``);
}

/** Who owns the folders of rows: under root each row's own user, else nobody but the caller. */
function ownersUnder(root: number): Owners {
  const owner = (name: RowName): { uid: number; gid: number } | undefined => {
    const row = TABLE[name];
    return row.confined ? userOf(row, root) : undefined;
  };
  return {
    daemon: owner('daemon'),
    'key-store': owner('key-store'),
    drafts: owner('workspace'),
    promote: owner('promote'),
  };
}

/**
 * Checks that the open root and none of the executor's own folders, open too, lie inside one another. Throws StartRefusal.
 * THREAT: who can move or choose the root wants a promotion to write state, configuration or programs. workspace and promote
 * compare as far up as their uid may search; under root that may end below the first common folder, and this process may search
 * them all (test/helpers/supervisor/refusals.test.ts).
 */
export function checkRootApart(root: number, own: readonly number[]): void {
  const { folders, whole } = chainOf(root);
  const remedy = 'run `nessie-executor policy root FOLDER` to choose another';
  if (!whole) throw new StartRefusal('ROOT_UNREADABLE', `the folders above the root folder cannot be read: ${remedy}`);
  if (folders.length > 1 && own.every((folder) => overlapOf(folders, chainOf(folder).folders) === 'apart')) return;
  const said = 'the root folder is "/", or it and a folder of the executor itself lie inside one another';
  throw new StartRefusal('ROOT_OVERLAPS', `${said}: ${remedy}`);
}

/** Locks the state folder and opens all that rows are declared to get; throws StartRefusal. */
export function openChannels(configuration: Configuration): Channels {
  const { stateDir, configDir } = configuration;
  const root = openOrRefuse(configuration.root, 'ROOT_UNREADABLE', 'the root folder');
  const state = openStateFolder(stateDir, ownersUnder(root));
  const unreadable = 'CONFIGURATION_FOLDER_UNREADABLE';
  const configurationFolder = openOwn(configDir, unreadable, 'the configuration folder');
  const known = new Map<DescriptorSource, number>([
    ["daemon's listener", state.run],
    ['state/daemon', state.daemon],
    ['state/key-store', state['key-store']],
    ['state/drafts', state.drafts],
    ['state/promote', state.promote],
    ['configuration folder', configurationFolder],
    ["owner's folder", openOwn(`${configDir}/owner`, 'OWNER_FOLDER_UNREADABLE', "the owner's folder")],
    ['root folder', root],
  ]);
  return { configuration, configurationFolder, state, root, known };
}

/** Makes the daemon's listeners, one for each kind of peer; the caller closes them once the daemon has them. */
export function makeListeners(state: StateFolders): ReadonlyMap<DescriptorSource, number> {
  // a name is made with mode 0600, so there is no moment in which another user could connect
  const before = process.umask(0o177);
  const made = (['link', 'key-store', 'workspace', 'promote', 'cli'] as const).map((peer) => {
    const socket = unixSocket();
    listenAt(socket, `/proc/self/fd/${state.run}/${peer}.sock`, 16);
    return [`listener for ${peer}`, socket] as const;
  });
  process.umask(before);
  return new Map(made);
}

/** What stands behind each declared descriptor of a row, and what to close after its start. Throws NativeError for a slot without folder. */
export function descriptorsFor(
  row: Confined,
  slot: number,
  channels: Channels,
): { given: Map<number, number | 'channel' | 'log'>; opened: number[] } {
  const opened: number[] = [];
  const open = (source: DescriptorSource): number | 'channel' | 'log' => {
    if (source === "supervisor's log") return 'log';
    if (source === 'socket pair with the supervisor') return 'channel';
    const known = channels.known.get(source);
    if (known !== undefined) return known;
    const made =
      source === 'state/drafts/SLOT'
        ? openBelow(channels.state.drafts, slotName(slot))
        : fs.openSync(channels.configuration.caFile ?? '/dev/null', 'r');
    opened.push(made);
    return made;
  };
  const declared = row.descriptors.filter(({ kind }) => kind !== 'null');
  return { given: new Map(declared.map(({ number, source }) => [number, open(source)] as const)), opened };
}
