import { sql } from 'kysely';
import type { SchemaChange } from '../migrate.ts';

/** Finds commands of an unknown outcome by their machine; partial, so that every other one costs no page of it. */
export const unknownCommands: SchemaChange = {
  name: '204_unknown_commands',
  up: async (database) => {
    await sql
      .raw(`create index "commands_unknown" on "commands" ("executor", "deadline") where "state" = 'unknown'`)
      .execute(database);
  },
};
