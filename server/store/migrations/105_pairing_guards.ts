import { sql } from 'kysely';
import type { SchemaChange } from '../migrate.ts';

/** Highest guard that a pairing's machine has used in a statement of it; null before its first one. */
export const pairingGuards: SchemaChange = {
  name: '105_pairing_guards',
  up: async (database, types) => {
    await sql.raw(`alter table "pairings" add column "guard" ${types.integer}`).execute(database);
  },
};
