import { sql } from 'kysely';
import type { Kysely } from 'kysely';
import type { ColumnTypes } from '../migrate.ts';

/**
 * Makes one table from its lines, in which `@integer` and `@bytes` stand for the dialect's types. Lines are constants of a
 * migration, never text from outside. Rows of a clustered table lie in the order of its primary key: a write costs one page, not two.
 */
export async function defineTable(
  database: Kysely<unknown>,
  types: ColumnTypes,
  name: string,
  lines: readonly string[],
  end: 'tableEnd' | 'clusteredEnd' = 'tableEnd',
): Promise<void> {
  const body = lines.join(',\n  ').replaceAll('@integer', types.integer).replaceAll('@bytes', types.bytes);
  await sql.raw(`create table "${name}" (\n  ${body}\n) ${types[end]}`).execute(database);
}

/** Makes tables in the order given, so that a reference finds what it names. */
export async function defineTables(
  database: Kysely<unknown>,
  types: ColumnTypes,
  tables: Readonly<Record<string, readonly string[]>>,
): Promise<void> {
  for (const [name, lines] of Object.entries(tables)) await defineTable(database, types, name, lines);
}

/** Makes one index over columns of a table. */
export async function defineIndex(
  database: Kysely<unknown>,
  table: string,
  columns: readonly string[],
  unique: 'unique' | '' = '',
): Promise<void> {
  const list = columns.map((column) => `"${column}"`).join(', ');
  await sql.raw(`create ${unique} index "${table}_${columns.join('_')}" on "${table}" (${list})`).execute(database);
}
