/*
 * The state folder of one executor, 0700. Below it:
 *
 *   lock               held by the supervisor as long as it lives
 *   supervisor.json    what the supervisor opens and starts for
 *   run/               listeners, one for each kind of peer
 *   audit/             what each launch applied, one file a process
 *   daemon/            ledger, records, snapshots
 *   key-store/         keys and guards
 *   drafts/SLOT/       drafts, SLOT as eight hexadecimal digits; 00000000 is always empty
 *   promote/           journal, history, fence mark, used approvals
 */
import fs from 'node:fs';
import path from 'node:path';

import { StartRefusal } from './configuration.ts';
import { AT_FDCWD, openat2, RESOLVE } from './native-files.ts';
import { tryLock } from './native-locks.ts';
import { slotName } from './slots.ts';

/** Folders below the state folder. */
export const STATE_FOLDERS = ['run', 'audit', 'daemon', 'key-store', 'drafts', 'promote'] as const;
/** One of them. */
export type StateFolder = (typeof STATE_FOLDERS)[number];

const FOLDER = fs.constants.O_RDONLY | fs.constants.O_DIRECTORY;

/** Opens a folder by an absolute path whose last name is no link. */
export function openFolder(folder: string): number {
  return fs.openSync(folder, FOLDER | fs.constants.O_NOFOLLOW);
}

/** Opens a folder by one name below an open one, following no link; throws NativeError. */
export function openBelow(parent: number, name: string): number {
  const resolve = RESOLVE.BENEATH | RESOLVE.NO_SYMLINKS | RESOLVE.NO_MAGICLINKS;
  return openat2(parent, Buffer.from(name), { flags: FOLDER, resolve });
}

function refuseUnlessPrivate(descriptor: number, owner: number, what: string): void {
  const status = fs.fstatSync(descriptor);
  if (status.uid !== owner || (status.mode & 0o077) !== 0) {
    throw new StartRefusal(
      'STATE_FOLDER_MODE',
      `${what} must be 0700 and belong to its user: run \`nessie-executor repair\``,
    );
  }
}

/** A state folder whose lock this process holds, with its folders open. */
export type StateFolders = { readonly top: number; readonly lock: number } & Readonly<Record<StateFolder, number>>;

/** Who owns each folder; a folder that is not named belongs to the caller. */
export type Owners = Partial<Readonly<Record<StateFolder, { readonly uid: number; readonly gid: number } | undefined>>>;

/** Runs what touches the state folder; a cause that is not a refusal would tell a path, and its remedy is the same for each. */
function orRefuse<T>(what: string, run: () => T): T {
  try {
    return run();
  } catch (error) {
    if (error instanceof StartRefusal) throw error;
    throw new StartRefusal('STATE_FOLDER_UNREADABLE', `${what} cannot be opened: run \`nessie-executor doctor\``);
  }
}

function openOrMake(top: number, name: StateFolder, owner: { uid: number; gid: number } | undefined): number {
  const at = `/proc/self/fd/${top}/${name}`;
  if (fs.lstatSync(at, { throwIfNoEntry: false }) === undefined) {
    fs.mkdirSync(at, { mode: 0o700 });
    if (name === 'drafts') {
      fs.mkdirSync(`${at}/${slotName(0)}`, { mode: 0o500 });
      if (owner !== undefined) fs.chownSync(`${at}/${slotName(0)}`, owner.uid, owner.gid);
    }
    if (owner !== undefined) fs.chownSync(at, owner.uid, owner.gid);
  }
  const opened = openBelow(top, name);
  refuseUnlessPrivate(opened, owner?.uid ?? process.getuid?.() ?? 0, `the folder ${name} of the state folder`);
  return opened;
}

function openLock(top: number): number {
  return openat2(top, Buffer.from('lock'), {
    flags: fs.constants.O_RDWR | fs.constants.O_CREAT,
    mode: 0o600,
    resolve: RESOLVE.BENEATH | RESOLVE.NO_SYMLINKS,
  });
}

/**
 * Opens a state folder, takes its lock before anything else (N-232, N-546) and makes what is missing. Throws StartRefusal
 * DAEMON_ALREADY_RUNNING, STATE_FOLDER_MODE or STATE_FOLDER_UNREADABLE.
 */
export function openStateFolder(stateDir: string, owners: Owners): StateFolders {
  const how = { flags: FOLDER, resolve: RESOLVE.NO_MAGICLINKS };
  const top = orRefuse('the state folder', () => openat2(AT_FDCWD, Buffer.from(stateDir), how));
  refuseUnlessPrivate(top, process.getuid?.() ?? 0, 'the state folder');
  const lock = orRefuse('its lock', () => openLock(top));
  if (!tryLock(lock)) {
    throw new StartRefusal('DAEMON_ALREADY_RUNNING', 'another executor serves this state folder: stop it first');
  }
  const open = (name: StateFolder): number => orRefuse(`its folder ${name}`, () => openOrMake(top, name, owners[name]));
  return {
    top,
    lock,
    run: open('run'),
    audit: open('audit'),
    daemon: open('daemon'),
    'key-store': open('key-store'),
    drafts: open('drafts'),
    promote: open('promote'),
  };
}

/** Removes what an earlier run left in `run/` and `audit/`. The lock must be held. */
export function clearLeftovers(folders: StateFolders): void {
  for (const folder of [folders.run, folders.audit]) {
    const at = `/proc/self/fd/${folder}`;
    for (const name of fs.readdirSync(at)) fs.rmSync(path.join(at, name), { force: true });
  }
}
