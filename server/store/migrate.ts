import { Migrator } from 'kysely';
import type { Kysely, Migration } from 'kysely';
import { migrations } from './migrations/list.ts';
import { StoreFailed } from './store.ts';
import type { Store } from './store.ts';
import type { Tables } from './tables.ts';

/** Names of column types where the dialects differ. */
export interface ColumnTypes {
  readonly integer: 'integer' | 'bigint';
  readonly bytes: 'blob' | 'bytea';
  /** Ends a `create table`: SQLite checks types only where it is told to. */
  readonly tableEnd: 'strict' | '';
  /** Ends one whose rows lie in its primary key. */
  readonly clusteredEnd: 'strict, without rowid' | '';
}

/** One change of the schema, the same for every dialect; never edited once it was released. */
export interface SchemaChange {
  readonly name: string;
  up(database: Kysely<unknown>, types: ColumnTypes): Promise<void>;
}

const types: Readonly<Record<Store['dialect'], ColumnTypes>> = {
  sqlite: { integer: 'integer', bytes: 'blob', tableEnd: 'strict', clusteredEnd: 'strict, without rowid' },
  postgres: { integer: 'bigint', bytes: 'bytea', tableEnd: '', clusteredEnd: '' },
};

/** Brings a database to the newest schema. Throws StoreFailed naming the change that failed; a newer schema than this program knows is refused too. */
export async function migrate(database: Kysely<Tables>, dialect: Store['dialect']): Promise<void> {
  const all: Record<string, Migration> = {};
  for (const change of migrations) {
    all[change.name] = { up: (kysely: Kysely<unknown>) => change.up(kysely, types[dialect]) };
  }
  const migrator = new Migrator({
    db: database,
    provider: { getMigrations: () => Promise.resolve(all) },
    allowUnorderedMigrations: true,
  });
  const { error, results } = await migrator.migrateToLatest();
  if (error === undefined) return;
  const failed = results?.find((result) => result.status === 'Error');
  const where = failed === undefined ? 'reading the schema' : `schema change ${failed.migrationName}`;
  throw new StoreFailed(`the store could not be brought to this version: ${where} failed`, { cause: error });
}
