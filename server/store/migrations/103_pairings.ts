import type { SchemaChange } from '../migrate.ts';
import { defineIndex, defineTable } from './define-table.ts';

/** Pairings of both flows. Of code and challenge there is a verifier and never the text. */
export const pairings: SchemaChange = {
  name: '103_pairings',
  up: async (database, types) => {
    await defineTable(database, types, 'pairings', [
      '"id" text primary key',
      `"flow" text not null check ("flow" in ('enrolment', 'code'))`,
      '"requestId" text not null unique',
      '"factsDigest" @bytes',
      '"stored" text not null',
      '"state" text not null',
      '"codeVerifier" @bytes unique',
      '"codeAttempt" @integer not null',
      '"challengeVerifier" @bytes',
      '"machineName" text',
      '"publicKey" @bytes',
      '"fingerprint" text',
      '"descriptor" text',
      '"descriptorPayload" @bytes',
      '"descriptorSignature" @bytes',
      '"executor" text references "executors" ("id")',
      '"claimedBy" text references "people" ("id")',
      '"claimedAt" @integer',
      '"replaces" text references "executors" ("id")',
      '"createdAt" @integer not null',
      '"expiresAt" @integer not null',
    ]);
    await defineIndex(database, 'pairings', ['publicKey']);
    await defineIndex(database, 'pairings', ['executor']);
  },
};
