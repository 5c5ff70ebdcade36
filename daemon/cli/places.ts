/*
 * Where an executor of this machine keeps its things. One executor has one name; `default` is the one that nobody named.
 *
 *   as a user   $XDG_STATE_HOME/nessie-executor/NAME     $XDG_CONFIG_HOME/nessie-executor/NAME
 *   as root     /var/lib/nessie-executor/executors/NAME  /etc/nessie-executor/NAME
 *   --in DIR    DIR/state                                DIR/config
 */
import fs from 'node:fs';
import path from 'node:path';
import { CliFailure } from './failure.ts';

/** Absolute folders of one executor. */
export interface Places {
  readonly name: string;
  readonly stateDir: string;
  readonly configDir: string;
  /** Pin and confirmations: written by the owner's command line alone. */
  readonly ownerDir: string;
}

/** Environment as far as places depend on it. */
export type PlaceEnvironment = Readonly<Record<string, string | undefined>>;

const NAME = /^[a-z0-9][a-z0-9-]{0,31}$/;

/** Places of a named executor; `uid` 0 keeps them in the system's folders. Throws CliFailure for a name that is none. */
export function placesOf(name: string, environment: PlaceEnvironment, uid: number): Places {
  if (!NAME.test(name)) {
    throw new CliFailure('usage', `"${name}" is no name; use up to 32 small letters, digits and dashes`);
  }
  const { state, config } = bases(environment, uid);
  return places(name, path.join(state, name), path.join(config, name));
}

/** Places of an executor that lives in one folder, such as a trial. */
export function placesIn(folder: string): Places {
  const top = path.resolve(folder);
  return places('default', path.join(top, 'state'), path.join(top, 'config'));
}

/** Every executor of this user that was set up, in the order of their names. */
export function knownPlaces(environment: PlaceEnvironment, uid: number): Places[] {
  const { state } = bases(environment, uid);
  const names = fs.existsSync(state) ? fs.readdirSync(state).toSorted() : [];
  return names
    .filter((name) => NAME.test(name) && fs.existsSync(path.join(state, name, 'supervisor.json')))
    .map((name) => placesOf(name, environment, uid));
}

function places(name: string, stateDir: string, configDir: string): Places {
  return { name, stateDir, configDir, ownerDir: path.join(configDir, 'owner') };
}

function bases(environment: PlaceEnvironment, uid: number): { readonly state: string; readonly config: string } {
  if (uid === 0) return { state: '/var/lib/nessie-executor/executors', config: '/etc/nessie-executor' };
  return {
    state: path.join(base(environment, 'XDG_STATE_HOME', '.local/state'), 'nessie-executor'),
    config: path.join(base(environment, 'XDG_CONFIG_HOME', '.config'), 'nessie-executor'),
  };
}

function base(environment: PlaceEnvironment, variable: string, below: string): string {
  const set = environment[variable];
  // XDG Base Directory Specification 0.8: a relative path in these variables is to be ignored.
  if (set !== undefined && path.isAbsolute(set)) return set;
  const home = environment['HOME'];
  if (home === undefined || !path.isAbsolute(home)) {
    throw new CliFailure('usage', 'HOME is not set; set it, or say --in FOLDER');
  }
  return path.join(home, below);
}
