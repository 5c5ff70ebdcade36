import { descriptorSchema } from '../../helpers/protocol/descriptor.ts';
import type { Descriptor } from '../../helpers/protocol/descriptor.ts';
import type { ExecutorId } from '../../helpers/protocol/ids.ts';
import type { Reader } from '../store/store.ts';

/** The revision in force and the newest that arrived; the same one where nothing waits. */
export interface DescriptorsInForce {
  readonly confirmed: Descriptor | undefined;
  readonly latest: Descriptor | undefined;
}

/** Reads both revisions. Throws where the store holds what is no descriptor. */
export async function readDescriptors(reader: Reader, executor: ExecutorId): Promise<DescriptorsInForce> {
  const revisions = reader
    .selectFrom('descriptors')
    .select(['revision', 'document'])
    .where('executor', '=', executor)
    .orderBy('revision', 'desc')
    .limit(1);
  const confirmed = await revisions.where('state', '=', 'confirmed').executeTakeFirst();
  const latest = await revisions.executeTakeFirst();
  return { confirmed: parse(confirmed), latest: parse(latest) };
}

function parse(row: { readonly document: string } | undefined): Descriptor | undefined {
  return row === undefined ? undefined : descriptorSchema.parse(JSON.parse(row.document));
}
