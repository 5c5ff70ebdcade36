import fs from 'node:fs';

import { StartRefusal, type Configuration } from '../runtime/configuration.ts';
import { listenAt, unixSocket } from '../runtime/native-sockets.ts';
import type { Confined, DescriptorSource } from '../runtime/privileges.ts';
import { openBelow, openFolder, openStateFolder, type StateFolders } from '../runtime/state-folder.ts';
import { slotName } from '../runtime/slots.ts';
import { userOf, type User } from '../runtime/users.ts';
import { TABLE } from '../table.ts';

/** Kinds of peers that reach the daemon, each over a listener of its own. */
const PEERS = ['link', 'key-store', 'workspace', 'promote', 'cli'] as const;
type PeerKind = (typeof PEERS)[number];

/** Everything that the supervisor holds open to hand out. */
export type Channels = {
  readonly configuration: Configuration;
  readonly state: StateFolders;
  readonly root: number;
  readonly config: number;
  readonly owner: number;
  readonly listeners: ReadonlyMap<PeerKind, number>;
};

function openOrRefuse(folder: string, code: string, what: string): number {
  try {
    return openFolder(folder);
  } catch {
    // the cause would tell a path
    throw new StartRefusal(code, `${what} cannot be opened: run \`nessie-executor doctor\``);
  }
}

function confined(name: 'daemon' | 'key-store' | 'workspace' | 'promote'): Confined {
  const row = TABLE[name];
  if (!row.confined) throw new Error(`${name} is declared unconfined`);
  return row;
}

function listen(run: number, peer: PeerKind): number {
  const socket = unixSocket();
  // the name is made with mode 0600, so there is no moment in which another user could connect
  const before = process.umask(0o177);
  try {
    listenAt(socket, `/proc/self/fd/${run}/${peer}.sock`, 16);
  } finally {
    process.umask(before);
  }
  return socket;
}

/** Locks the state folder and opens all that rows are declared to get; throws StartRefusal. */
export function openChannels(configuration: Configuration): Channels {
  const { stateDir, configDir } = configuration;
  const root = openOrRefuse(configuration.root, 'ROOT_UNREADABLE', 'the root folder');
  const owner = (name: 'daemon' | 'key-store' | 'workspace' | 'promote'): { [key: string]: User } => {
    const user = userOf(confined(name), root);
    return user === undefined ? {} : { [name === 'workspace' ? 'drafts' : name]: user };
  };
  const state = openStateFolder(stateDir, {
    ...owner('daemon'),
    ...owner('key-store'),
    ...owner('workspace'),
    ...owner('promote'),
  });
  const config = openOrRefuse(configDir, 'CONFIGURATION_FOLDER_UNREADABLE', 'the configuration folder');
  const ownerFolder = openOrRefuse(`${configDir}/owner`, 'OWNER_FOLDER_UNREADABLE', "the owner's folder");
  return { configuration, state, root, config, owner: ownerFolder, listeners: new Map() };
}

/** Makes the daemon's listeners; the caller closes them once the daemon has them. */
export function makeListeners(state: StateFolders): ReadonlyMap<PeerKind, number> {
  return new Map(PEERS.map((peer) => [peer, listen(state.run, peer)] as const));
}

/** The source behind a declared descriptor; `opened` are to be closed after the start. Throws NativeError for a slot without folder. */
export function descriptorFor(
  channels: Channels,
  source: DescriptorSource,
  slot: number,
  opened: number[],
): number | 'channel' | 'log' {
  const { state, listeners } = channels;
  const keep = (descriptor: number): number => {
    opened.push(descriptor);
    return descriptor;
  };
  const listener = (peer: PeerKind): number => {
    const found = listeners.get(peer);
    if (found === undefined) throw new Error(`the listener for ${peer} is handed out already`);
    return found;
  };
  const sources: Readonly<Record<Exclude<DescriptorSource, 'null device'>, () => number | 'channel' | 'log'>> = {
    "supervisor's log": () => 'log',
    "daemon's listener": () => state.run,
    'socket pair with the supervisor': () => 'channel',
    'listener for link': () => listener('link'),
    'listener for key-store': () => listener('key-store'),
    'listener for workspace': () => listener('workspace'),
    'listener for promote': () => listener('promote'),
    'listener for cli': () => listener('cli'),
    'state/daemon': () => state.daemon,
    'state/key-store': () => state['key-store'],
    'state/drafts': () => state.drafts,
    'state/drafts/SLOT': () => keep(openBelow(state.drafts, slotName(slot))),
    'state/promote': () => state.promote,
    'configuration folder': () => channels.config,
    "owner's folder": () => channels.owner,
    'root folder': () => channels.root,
    'CA file': () => keep(fs.openSync(channels.configuration.caFile ?? '/dev/null', 'r')),
  };
  if (source === 'null device') throw new Error('the null device is opened by launch');
  return sources[source]();
}
