import type { Descriptor } from '../../helpers/protocol/descriptor.ts';
import type { ExecutorId } from '../../helpers/protocol/ids.ts';
import type { Reader } from '../store/store.ts';

/** The revision in force and the newest that arrived; the same one where nothing waits. */
export interface DescriptorsInForce {
  readonly confirmed: Descriptor | undefined;
  readonly latest: Descriptor | undefined;
}

/** Reads both revisions; asked for every command, so one row is read where nothing waits. */
export async function readDescriptors(reader: Reader, executor: ExecutorId): Promise<DescriptorsInForce> {
  const revisions = reader
    .selectFrom('descriptors')
    .select(['state', 'document'])
    .where('executor', '=', executor)
    .orderBy('revision', 'desc')
    .limit(1);
  const newest = await revisions.executeTakeFirst();
  if (newest === undefined) return { confirmed: undefined, latest: undefined };
  const latest = documentOf(newest);
  if (newest.state === 'confirmed') return { confirmed: latest, latest };
  const confirmed = await revisions.where('state', '=', 'confirmed').executeTakeFirst();
  return { confirmed: confirmed === undefined ? undefined : documentOf(confirmed), latest };
}

/** The descriptor of a stored row. */
export function documentOf({ document }: { readonly document: string }): Descriptor {
  // TRUST: the column is written by submit.ts alone, after parseDescriptor has passed these very bytes.
  return JSON.parse(document) as Descriptor;
}
