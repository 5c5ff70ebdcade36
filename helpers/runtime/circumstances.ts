import path from 'node:path';

import type { LaunchPlan } from './launch-plan.ts';
import type { Circumstances } from './platform/linux.ts';
import { NO_ADDONS, type Confined, type PathRule } from './privileges.ts';
import { thisProgram } from './program.ts';
import { thisArchitecture } from './syscall-numbers.ts';

/** What a rendering depends on beside the declaration; launch and `audit` both take it from here, so their digests can be compared. */
export function circumstancesOf(
  plan: Pick<LaunchPlan, 'row' | 'program' | 'installation' | 'slot' | 'origin' | 'loopback' | 'forbiddenFolders'>,
  landlockAbi: number,
  pid: number,
): Circumstances {
  const at = (file: string): string => path.join(plan.installation, file);
  return {
    architecture: thisArchitecture(),
    landlockAbi,
    pid,
    places: {
      ...thisProgram(),
      ownBundle: at(plan.program === 'probe' ? 'probe.mjs' : `${plan.row}.mjs`),
      koffi: at('koffi.node'),
      worker: at('workspace-worker.mjs'),
    },
    values: { origin: plan.origin, loopback: plan.loopback, slot: plan.slot, forbiddenFolders: plan.forbiddenFolders },
  };
}

const PROBE_RULE: PathRule = {
  subject: { of: 'installation', file: 'koffi.node' },
  rights: 'read file',
  reason: 'the probe tries calls that Node has no name for; the only difference between a twin and its row',
};

/** The declaration of a row's twin: the row's own, but that the probe may load native calls to try. */
export function twinOf(row: Confined): Confined {
  const nodeFlags = row.nodeFlags.filter((flag) => flag !== NO_ADDONS);
  return { ...row, nodeFlags, paths: [...row.paths, PROBE_RULE] };
}
