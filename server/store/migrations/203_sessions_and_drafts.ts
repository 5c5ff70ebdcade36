import type { SchemaChange } from '../migrate.ts';
import { defineIndex, defineTable } from './define-table.ts';

/** Sessions of model clients, reviews and promotions. */
export const sessionsAndDrafts: SchemaChange = {
  name: '203_sessions_and_drafts',
  up: async (database, types) => {
    const table = (name: string, lines: readonly string[]) => defineTable(database, types, name, lines);
    await table('mcpSessions', [
      '"id" text primary key',
      '"person" text not null references "people" ("id")',
      '"agent" text not null references "agents" ("id")',
      '"project" text not null references "projects" ("id")',
      '"initialize" text not null',
      '"run" text references "runs" ("id")',
      '"createdAt" @integer not null',
      '"activeAt" @integer not null',
      '"endedAt" @integer',
    ]);
    await defineIndex(database, 'mcpSessions', ['endedAt', 'activeAt']);
    await table('reviews', [
      '"id" text primary key',
      '"run" text not null references "runs" ("id")',
      '"person" text not null references "people" ("id")',
      '"agent" text not null references "agents" ("id")',
      '"executor" text not null references "executors" ("id")',
      '"command" text not null unique references "commands" ("id")',
      '"digest" @bytes not null',
      '"manifestDigest" @bytes not null',
      '"rootIdentity" @bytes not null',
      '"changeCount" @integer not null',
      '"createdAt" @integer not null',
    ]);
    await defineIndex(database, 'reviews', ['person', 'createdAt']);
    await defineIndex(database, 'reviews', ['run', 'createdAt']);
    await table('promotions', [
      '"id" text primary key',
      '"run" text not null references "runs" ("id")',
      '"review" text not null references "reviews" ("id")',
      '"person" text not null references "people" ("id")',
      '"agent" text not null references "agents" ("id")',
      '"executor" text not null references "executors" ("id")',
      '"stored" text not null',
      '"state" text not null',
      '"reviewDigest" @bytes not null',
      '"manifestDigest" @bytes not null',
      '"authorizationRevision" @integer not null',
      '"policyDigest" @bytes not null',
      '"approvalDigest" @bytes',
      '"approvalPayload" @bytes',
      '"approvalSignature" @bytes',
      '"command" text references "commands" ("id")',
      '"outcome" text',
      '"code" text',
      '"createdAt" @integer not null',
      '"expiresAt" @integer not null',
      '"endedAt" @integer',
    ]);
    await defineIndex(database, 'promotions', ['person', 'createdAt']);
    await defineIndex(database, 'promotions', ['command']);
  },
};
