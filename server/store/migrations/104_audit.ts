import type { SchemaChange } from '../migrate.ts';
import { defineIndex, defineTable } from './define-table.ts';

/** The audit chain and its head. */
export const audit: SchemaChange = {
  name: '104_audit',
  up: async (database, types) => {
    await defineTable(database, types, 'audit', [
      '"sequence" @integer primary key not null',
      '"at" @integer not null',
      '"action" text not null',
      '"organisation" text',
      '"person" text',
      '"agent" text',
      '"assistant" text',
      '"executor" text',
      '"run" text',
      '"command" text',
      '"outcome" text not null',
      '"reason" text',
      '"facts" text not null',
      '"previous" @bytes not null',
      '"digest" @bytes not null',
    ]);
    await defineIndex(database, 'audit', ['executor']);
    await defineIndex(database, 'audit', ['run']);
    await defineTable(database, types, 'auditHead', [
      '"id" @integer primary key not null',
      '"sequence" @integer not null',
      '"digest" @bytes not null',
    ]);
  },
};
