import fs from 'node:fs';
import path from 'node:path';

import type { Configuration } from './configuration.ts';
import type { Installation } from './installation.ts';

/** `dev:ino` of a folder and of each of its parents up to `/`, joined by slashes, as Node's Stats tell them. */
function chain(folder: string): string {
  const ids: string[] = [];
  for (let at = fs.realpathSync(folder); ; at = path.dirname(at)) {
    const { dev, ino } = fs.lstatSync(at, { bigint: true });
    ids.push(`${dev}:${ino}`);
    if (at === path.dirname(at)) return ids.join('/');
  }
}

/** The folders that no root may contain, equal or lie below: state, configuration and installation, each as its chain, joined by commas. */
export function forbiddenFolders({ stateDir, configDir }: Configuration, installation: Installation): string {
  return [stateDir, configDir, installation.folder].map(chain).join(',');
}
