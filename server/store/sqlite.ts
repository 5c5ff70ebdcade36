import { existsSync } from 'node:fs';
import { chmod, open } from 'node:fs/promises';
import Database from 'libsql';
import {
  CompiledQuery,
  Kysely,
  SqliteAdapter,
  SqliteDriver,
  SqliteIntrospector,
  SqliteQueryCompiler,
  sql,
} from 'kysely';
import type { DatabaseConnection, Dialect, SqliteDatabase, SqliteStatement } from 'kysely';
import { Flush } from './flush.ts';
import { GroupCommit } from './group-commit.ts';
import { migrate } from './migrate.ts';
import type { Store } from './store.ts';
import type { Tables } from './tables.ts';

/** Prepared statements kept for each connection. */
const STATEMENT_LIMIT = 400;
/** Pages of the log, 4 KiB each, after which a commit moves them into the database itself: rare, since that commit is a slow one. */
const LOG_LIMIT_PAGES = 8000;
/** Quiet after which the log is moved while nobody waits, in ms. */
const QUIET_MS = 2000;
/** How long one process waits for another one that writes, in ms. */
const BUSY_MS = 5000;

/** Opens the embedded store, migrated to the newest schema. `file` is made with mode 0600. Throws where it is no database or cannot be written. */
export async function openSqliteStore(file: string): Promise<Store> {
  await (await open(file, 'a', 0o600)).close();
  await chmod(file, 0o600);
  const writer = connect(file, 'writer');
  await migrate(writer.kysely, 'sqlite');
  const reader = connect(file, 'reader');
  const log = await open(`${file}-wal`, 'r');
  const commits = new GroupCommit(writer.kysely, new Flush(log.fd));
  const quiet = setTimeout(() => void moveLog(writer.kysely), QUIET_MS).unref();
  return {
    dialect: 'sqlite',
    read: reader.kysely,
    write: (job) => {
      quiet.refresh();
      return commits.write(job);
    },
    scrub: async () => {
      await commits.idle();
      await sql`pragma wal_checkpoint(truncate)`.execute(writer.kysely);
    },
    backup: async (target) => {
      if (existsSync(target)) throw new Error('the backup file exists already; name one that does not');
      await commits.idle();
      await sql`vacuum into ${target}`.execute(writer.kysely);
      await chmod(target, 0o600);
    },
    faults: () => faultsOf(reader.kysely),
    close: async () => {
      clearTimeout(quiet);
      await commits.idle();
      await log.close();
      await reader.kysely.destroy();
      await writer.kysely.destroy();
    },
  };
}

async function moveLog(writer: Kysely<Tables>): Promise<void> {
  try {
    await sql`pragma wal_checkpoint(passive)`.execute(writer);
  } catch {
    // The store is closed, or its disk is in trouble, which the next write tells its caller.
  }
}

async function faultsOf(database: Kysely<Tables>): Promise<string[]> {
  const pages = await sql<{ integrity_check: string }>`pragma integrity_check`.execute(database);
  const references = await sql<{ table: string; parent: string }>`pragma foreign_key_check`.execute(database);
  return [
    ...pages.rows.map((row) => row.integrity_check).filter((text) => text !== 'ok'),
    ...references.rows.map((row) => `a row of ${row.table} names a row of ${row.parent} that does not exist`),
  ];
}

function connect(file: string, use: 'reader' | 'writer'): { readonly kysely: Kysely<Tables> } {
  const raw = new Database(file);
  for (const setting of [
    'journal_mode = WAL',
    // A commit appends to the log and GroupCommit flushes that; a checkpoint flushes log and database in its own order.
    'synchronous = NORMAL',
    'secure_delete = ON',
    'foreign_keys = ON',
    'trusted_schema = OFF',
    `busy_timeout = ${BUSY_MS}`,
    `wal_autocheckpoint = ${LOG_LIMIT_PAGES}`,
  ]) {
    raw.exec(`pragma ${setting}`);
  }
  if (use === 'reader') raw.exec('pragma query_only = ON');
  const database = cached(raw);
  const driver = () => (use === 'reader' ? new SqliteDriver({ database }) : new ImmediateDriver({ database }));
  return { kysely: new Kysely<Tables>({ dialect: dialectWith(driver) }) };
}

function dialectWith(createDriver: () => SqliteDriver): Dialect {
  return {
    createAdapter: () => new SqliteAdapter(),
    createDriver,
    createIntrospector: (kysely) => new SqliteIntrospector(kysely),
    createQueryCompiler: () => new SqliteQueryCompiler(),
  };
}

/**
 * Takes the write lock at the start: a transaction that reads first and writes later fails when another process wrote in between. Never
 * for readers, whose transactions would wait for the writer of their own process.
 */
class ImmediateDriver extends SqliteDriver {
  override async beginTransaction(connection: DatabaseConnection): Promise<void> {
    await connection.executeQuery(CompiledQuery.raw('begin immediate'));
  }
}

/** Statements prepared once, and their rows as Kysely wants them: libsql gives bytes as ArrayBuffer. */
function cached(raw: Database.Database): SqliteDatabase {
  const statements = new Map<string, SqliteStatement>();
  return {
    close: () => raw.close(),
    prepare: (text) => {
      const known = statements.get(text);
      if (known !== undefined) return known;
      const statement = raw.prepare(text);
      const made: SqliteStatement = {
        reader: statement.reader,
        all: (parameters) => statement.all(parameters).map(withBuffers),
        run: (parameters) => statement.run(parameters),
        iterate: (parameters) => statement.iterate(parameters),
      };
      if (statements.size >= STATEMENT_LIMIT) statements.clear();
      statements.set(text, made);
      return made;
    },
  };
}

function withBuffers(row: unknown): unknown {
  if (typeof row !== 'object' || row === null) return row;
  return Object.fromEntries(
    Object.entries(row).map(([name, value]) => [name, value instanceof ArrayBuffer ? Buffer.from(value) : value]),
  );
}
