/* What the modelled rows say to the rules: the same facts that the control plane reads from its tables. */
import type { AvailabilityFacts } from '../../../server/availability/rules.ts';
import type { LeaseRow } from '../../../server/commands/rules.ts';
import type { ProofRow } from '../../../server/channel/rules.ts';
import { stateName } from '../../../server/commands/rules.ts';
import type { Setting } from './setting.ts';
import type { ExecutorRow } from './tables.ts';

/** Digest of the catalogue that both sides of this world have. */
export const CATALOGUE = 'catalogue';

/** Operations that an agent may be given in this world, and what they do on the machine. */
export const agentOperations = ['file.read', 'file.write', 'workspace.review'] as const;
/** The one operation that a person alone may ask for. */
export const PROMOTE = 'workspace.promote';

/** How long a command of an operation may take from its lease, in ms (N-050). */
export function lifetimeOf(operation: string): number {
  return operation === PROMOTE ? 120_000 : 25_000;
}

/** Whether an operation changes something on the machine. */
export function writes(operation: string): boolean {
  return operation === 'file.write' || operation === PROMOTE;
}

/** The resolver's answer. */
export function isAvailable(
  { rules }: Setting,
  row: ExecutorRow,
  operation: string,
): ReturnType<Setting['rules']['decideAvailability']> {
  return rules.decideAvailability(availabilityFacts(row, operation));
}

/** The facts that the resolver decides by. */
export function availabilityFacts(row: ExecutorRow, operation: string): AvailabilityFacts {
  const { confirmed, latest, stored } = row;
  const byPerson = operation === PROMOTE;
  return {
    discoverable: stored.context.listed && row.administrators.length > 0,
    granted: byPerson || row.granted.includes(operation),
    toolGranted: true,
    inScope: true,
    online: stateName(stored.value) === 'online' && stored.context.accepting,
    approved: confirmed !== undefined,
    permittedLocally:
      confirmed !== undefined &&
      latest !== undefined &&
      confirmed.operations.includes(operation) &&
      latest.operations.includes(operation),
  };
}

export function proofRow(row: ExecutorRow): ProofRow {
  const { stored, latest } = row;
  return { state: stateName(stored.value), epoch: stored.context.epoch, latestRevision: latest?.revision ?? 0 };
}

export function standingRow({ stored }: ExecutorRow): {
  readonly state: string;
  readonly epoch: number;
  readonly accepting: boolean;
} {
  const { epoch, accepting } = stored.context;
  return { state: stateName(stored.value), epoch, accepting };
}

export function leaseRow(row: ExecutorRow | undefined): LeaseRow | undefined {
  if (!row) return undefined;
  const { confirmed } = row;
  return {
    ...standingRow(row),
    confirmed: confirmed && {
      revision: confirmed.revision,
      policyDigest: confirmed.policyDigest,
      catalogueDigest: CATALOGUE,
      limits: { runtimeMs: confirmed.runtimeMs },
    },
  };
}

/** Version of the protocol that both sides of this world speak. */
export const PROTOCOL_VERSION = 1;
