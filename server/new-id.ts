import { randomBytes } from 'node:crypto';
import type * as z from 'zod';

type Prefix = 'exr' | 'cmd' | 'run' | 'bnd' | 'per' | 'agt' | 'prj' | 'team' | 'org' | 'pair' | 'rev' | 'prm';

/** A fresh identifier of the prefix: 128 random bits (helpers/protocol/ids.ts). */
export function newId<const Kind extends Prefix>(prefix: Kind): string & z.$brand<Kind> {
  // The brand stands for exactly this spelling; ids.ts checks it wherever an id arrives from outside.
  return `${prefix}_${randomBytes(16).toString('hex')}` as string & z.$brand<Kind>;
}
