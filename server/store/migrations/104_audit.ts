import type { SchemaChange } from '../migrate.ts';
import { defineTable } from './define-table.ts';

/** The audit chain and its head; no index, since each would cost every write a page and readers go through it from the newest on. */
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
    await defineTable(database, types, 'auditHead', [
      '"id" @integer primary key not null',
      '"sequence" @integer not null',
      '"digest" @bytes not null',
    ]);
  },
};
