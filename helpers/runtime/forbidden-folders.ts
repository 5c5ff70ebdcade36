import fs from 'node:fs';

import type { Configuration } from './configuration.ts';
import type { Installation } from './installation.ts';

/** Device and inode of the folders that no root may contain, equal or lie below, as Node's Stats tell them. */
export function forbiddenFolders({ stateDir, configDir }: Configuration, installation: Installation): string {
  return [stateDir, configDir, installation.folder]
    .map((folder) => {
      const { dev, ino } = fs.statSync(folder, { bigint: true });
      return `${dev}:${ino}`;
    })
    .join(',');
}
