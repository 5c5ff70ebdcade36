import path from 'node:path';

import type { Configuration } from './configuration.ts';
import type { DescriptorSource } from './privileges.ts';

/** The folder or file that stands behind a declared descriptor, where it has a name. */
export function pathBehind(
  source: DescriptorSource,
  { stateDir, configDir, root, caFile }: Configuration,
  slot: string,
): string | undefined {
  if (source === 'state/drafts/SLOT') return path.join(stateDir, 'drafts', slot);
  if (source.startsWith('state/')) return path.join(stateDir, source.slice('state/'.length));
  if (source === 'configuration folder') return configDir;
  if (source === "owner's folder") return path.join(configDir, 'owner');
  if (source === 'root folder') return root;
  return source === 'CA file' ? (caFile ?? '/dev/null') : undefined;
}
