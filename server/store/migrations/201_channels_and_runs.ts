import type { SchemaChange } from '../migrate.ts';
import { defineIndex, defineTable } from './define-table.ts';

/** What is remembered of each machine's statements; runs, candidates of which only a digest is kept, and bindings. */
export const channelsAndRuns: SchemaChange = {
  name: '201_channels_and_runs',
  up: async (database, types) => {
    const table = (name: string, lines: readonly string[]) => defineTable(database, types, name, lines);
    await table('channels', [
      '"executor" text primary key references "executors" ("id")',
      '"ledgerCount" @integer not null',
      '"ledgerHead" @bytes not null',
      '"guard" @integer not null',
      '"fence" @integer not null',
      '"approval" @integer not null',
    ]);
    await table('runs', [
      '"id" text primary key',
      '"person" text not null references "people" ("id")',
      '"agent" text not null references "agents" ("id")',
      '"project" text not null references "projects" ("id")',
      '"conversation" text not null',
      `"bundle" text not null check ("bundle" in ('workspace'))`,
      `"openedBy" text not null check ("openedBy" in ('person', 'agent'))`,
      '"chosen" text references "executors" ("id")',
      '"executor" text references "executors" ("id")',
      `"state" text not null check ("state" in ('active', 'ended'))`,
      '"endedBecause" text',
      '"startedAt" @integer not null',
      '"activeAt" @integer not null',
      '"endedAt" @integer',
      '"endTold" @integer not null check ("endTold" in (0, 1))',
    ]);
    await defineIndex(database, 'runs', ['person', 'startedAt']);
    await defineIndex(database, 'runs', ['agent', 'state']);
    await defineIndex(database, 'runs', ['executor', 'endTold']);
    await table('candidates', [
      '"handleDigest" @bytes primary key not null',
      '"run" text not null references "runs" ("id")',
      '"person" text not null',
      '"agent" text',
      '"operation" text not null',
      '"executor" text not null references "executors" ("id")',
      '"expiresAt" @integer not null',
      '"usedAt" @integer',
    ]);
    await defineIndex(database, 'candidates', ['expiresAt']);
    await table('bindings', [
      '"id" text primary key',
      '"run" text not null references "runs" ("id")',
      '"operation" text not null',
      '"executor" text not null references "executors" ("id")',
      '"fence" @integer not null',
      '"handleDigest" @bytes not null',
      '"createdAt" @integer not null',
      'unique ("run", "operation")',
      'unique ("executor", "fence")',
    ]);
  },
};
