import type { SchemaChange } from '../migrate.ts';
import { defineIndex, defineTables } from './define-table.ts';

const tables: Readonly<Record<string, readonly string[]>> = {
  organisations: ['"id" text primary key', '"name" text not null', '"createdAt" @integer not null'],
  teams: [
    '"id" text primary key',
    '"organisation" text not null references "organisations" ("id")',
    '"name" text not null',
    '"createdAt" @integer not null',
  ],
  projects: [
    '"id" text primary key',
    '"organisation" text not null references "organisations" ("id")',
    '"team" text not null references "teams" ("id")',
    '"name" text not null',
    '"createdAt" @integer not null',
  ],
  people: [
    '"id" text primary key',
    '"organisation" text not null references "organisations" ("id")',
    '"login" text not null unique',
    '"name" text not null',
    `"role" text not null check ("role" in ('owner', 'admin', 'member'))`,
    '"active" @integer not null check ("active" in (0, 1))',
    '"password" text',
    '"enteredAt" @integer',
    '"createdAt" @integer not null',
  ],
  teamMembers: [
    '"team" text not null references "teams" ("id")',
    '"person" text not null references "people" ("id")',
    `"role" text not null check ("role" in ('admin', 'member'))`,
    'primary key ("team", "person")',
  ],
  projectMembers: [
    '"project" text not null references "projects" ("id")',
    '"person" text not null references "people" ("id")',
    `"role" text not null check ("role" in ('owner', 'admin', 'member'))`,
    'primary key ("project", "person")',
  ],
  sessions: [
    '"id" text primary key',
    '"person" text not null references "people" ("id")',
    '"tokenDigest" @bytes not null unique',
    '"previousDigest" @bytes unique',
    '"previousUntil" @integer',
    '"createdAt" @integer not null',
    '"rotatedAt" @integer not null',
    '"seenAt" @integer not null',
    '"byLink" @integer not null check ("byLink" in (0, 1))',
  ],
  links: [
    '"digest" @bytes primary key not null',
    `"purpose" text not null check ("purpose" in ('setup', 'sign-in'))`,
    '"person" text references "people" ("id")',
    '"expiresAt" @integer not null',
    '"usedAt" @integer',
  ],
  limits: ['"bucket" @bytes primary key not null', '"hits" @bytes not null', '"expiresAt" @integer not null'],
  agents: [
    '"id" text primary key',
    '"organisation" text not null references "organisations" ("id")',
    '"owner" text not null references "people" ("id")',
    '"name" text not null',
    '"createdAt" @integer not null',
    '"endedAt" @integer',
  ],
  agentTokens: [
    '"id" text primary key',
    '"digest" @bytes not null unique',
    '"agent" text not null references "agents" ("id")',
    '"person" text not null references "people" ("id")',
    '"project" text not null references "projects" ("id")',
    '"mayOpenRuns" @integer not null check ("mayOpenRuns" in (0, 1))',
    '"createdAt" @integer not null',
    '"endedAt" @integer',
  ],
  toolGrants: [
    '"agent" text not null references "agents" ("id")',
    '"operation" text not null',
    '"grantedAt" @integer not null',
    '"grantedBy" text not null references "people" ("id")',
    'primary key ("agent", "operation")',
  ],
};

/** People and what they belong to, their sessions and one-time links, agents and their tokens, and the counters of limits. */
export const accounts: SchemaChange = {
  name: '101_accounts',
  up: async (database, types) => {
    await defineTables(database, types, tables);
    await defineIndex(database, 'sessions', ['person']);
    await defineIndex(database, 'limits', ['expiresAt']);
  },
};
