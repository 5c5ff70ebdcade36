import type { SchemaChange } from '../migrate.ts';
import { defineIndex, defineTables } from './define-table.ts';

const tables: Readonly<Record<string, readonly string[]>> = {
  executors: [
    '"id" text primary key',
    '"organisation" text not null references "organisations" ("id")',
    '"team" text not null references "teams" ("id")',
    '"project" text references "projects" ("id")',
    `"scope" text not null check ("scope" in ('private', 'project', 'organization'))`,
    '"label" text not null',
    '"stored" text not null',
    `"state" text not null check ("state" in ('pending_pairing', 'online', 'offline', 'draining', 'revoked', 'error'))`,
    '"epoch" @integer not null',
    '"accepting" @integer not null check ("accepting" in (0, 1))',
    '"listed" @integer not null check ("listed" in (0, 1))',
    '"publicKey" @bytes unique',
    '"fingerprint" text',
    '"rotation" @integer not null',
    '"authorizationRevision" @integer not null',
    '"lastSeenAt" @integer',
    '"createdAt" @integer not null',
    '"createdBy" text not null references "people" ("id")',
    `check (("scope" = 'project') = ("project" is not null))`,
  ],
  assignments: [
    '"executor" text not null references "executors" ("id")',
    `"kind" text not null check ("kind" in ('person', 'agent'))`,
    '"subject" text not null',
    `"role" text not null check ("role" in ('use', 'admin'))`,
    '"createdAt" @integer not null',
    '"createdBy" text not null references "people" ("id")',
    'primary key ("executor", "kind", "subject")',
    `check ("kind" = 'person' or "role" = 'use')`,
  ],
  shares: [
    '"executor" text not null references "executors" ("id")',
    `"kind" text not null check ("kind" in ('project', 'team'))`,
    '"subject" text not null',
    '"createdAt" @integer not null',
    '"createdBy" text not null references "people" ("id")',
    'primary key ("executor", "kind", "subject")',
  ],
  grants: [
    '"executor" text not null references "executors" ("id")',
    '"agent" text not null references "agents" ("id")',
    '"operation" text not null',
    '"createdAt" @integer not null',
    '"createdBy" text not null references "people" ("id")',
    'primary key ("executor", "agent", "operation")',
  ],
  descriptors: [
    '"executor" text not null references "executors" ("id")',
    '"revision" @integer not null',
    '"digest" @bytes not null',
    '"document" text not null',
    '"signedPayload" @bytes not null',
    '"signature" @bytes not null',
    '"stored" text not null',
    `"state" text not null check ("state" in ('pending', 'confirmed', 'refused', 'superseded'))`,
    '"arrivedAt" @integer not null',
    '"decidedAt" @integer',
    '"decidedBy" text references "people" ("id")',
    'primary key ("executor", "revision")',
  ],
};

/** Executors, who may use and administer them, what agents may do on them, and their descriptors. */
export const executors: SchemaChange = {
  name: '102_executors',
  up: async (database, types) => {
    await defineTables(database, types, tables);
    await defineIndex(database, 'executors', ['organisation']);
    await defineIndex(database, 'executors', ['state', 'lastSeenAt']);
    await defineIndex(database, 'assignments', ['subject']);
    await defineIndex(database, 'grants', ['agent', 'operation']);
  },
};
