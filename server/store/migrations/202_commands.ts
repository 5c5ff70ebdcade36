import { sql } from 'kysely';
import type { SchemaChange } from '../migrate.ts';
import { defineIndex, defineTable } from './define-table.ts';

const partial = {
  open: 'index NAME on "commands" ("executor", "run", "deadline") where "open" = 1',
  cancelWanted: 'index NAME on "commands" ("executor") where "cancelWanted" = 1',
  idempotencyKey: 'unique index NAME on "commands" ("idempotencyKey") where "idempotencyKey" <> "id"',
};

/** Commands, the one queue, signed statements of each chain, and sealed payloads. */
export const commands: SchemaChange = {
  name: '202_commands',
  up: async (database, types) => {
    const table = (name: string, lines: readonly string[], end?: 'clusteredEnd') =>
      defineTable(database, types, name, lines, end);
    await table('commands', [
      '"id" text primary key',
      '"run" text not null references "runs" ("id")',
      '"binding" text not null references "bindings" ("id")',
      '"executor" text not null references "executors" ("id")',
      '"operation" text not null',
      '"agent" text',
      '"idempotencyKey" text not null',
      '"stored" text not null',
      '"state" text not null',
      '"open" @integer not null check ("open" in (0, 1))',
      '"epoch" @integer',
      '"argumentsDigest" @bytes not null',
      '"contentDigest" @bytes not null',
      '"resultDigest" @bytes',
      '"outcome" text',
      '"gate" text',
      '"code" text',
      '"cancelWanted" @integer not null check ("cancelWanted" in (0, 1))',
      '"createdAt" @integer not null',
      '"deadline" @integer not null',
      '"leasedAt" @integer',
      '"endedAt" @integer',
    ]);
    // Partial: a command that ended costs no page of them.
    for (const [name, text] of Object.entries(partial)) {
      await sql.raw(`create ${text.replace('NAME', `"commands_${name}"`)}`).execute(database);
    }
    await defineIndex(database, 'commands', ['run', 'createdAt']);
    await table('jobs', [
      '"position" integer primary key not null',
      '"command" text not null unique references "commands" ("id")',
    ]);
    await table(
      'receipts',
      [
        '"command" text not null references "commands" ("id")',
        '"position" @integer not null',
        '"type" text not null',
        '"payload" @bytes not null',
        '"signature" @bytes not null',
        '"digest" @bytes not null',
        '"at" @integer not null',
        'primary key ("command", "position")',
      ],
      'clusteredEnd',
    );
    await table(
      'payloads',
      [
        '"command" text not null references "commands" ("id")',
        `"direction" text not null check ("direction" in ('arguments', 'content', 'result'))`,
        '"keyId" text not null',
        '"nonce" @bytes not null check (length("nonce") = 12)',
        '"sealed" @bytes not null check (length("sealed") <= 420016)',
        '"deleteAt" @integer not null',
        'primary key ("command", "direction")',
      ],
      'clusteredEnd',
    );
    await defineIndex(database, 'payloads', ['deleteAt']);
  },
};
