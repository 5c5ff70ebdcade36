import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sql } from 'kysely';
import { record, verifyAudit } from '../../../server/audit/record.ts';
import { secretsFrom } from '../../../server/secrets.ts';
import { openSqliteStore } from '../../../server/store/sqlite.ts';
import type { Store } from '../../../server/store/store.ts';

describe('audit chain', () => {
  const secrets = secretsFrom(Buffer.alloc(32, 7));
  const context = { secrets, clock: { now: () => 1000 } };
  let folder: string;
  let store: Store;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'nessie-audit-'));
    store = await openSqliteStore(join(folder, 'store.db'));
    for (let index = 1; index <= 9; index += 1) {
      await store.write((tx) =>
        record(context, tx, {
          action: 'executor.paused',
          person: `person ${index}`,
          outcome: 'done',
          facts: { index },
        }),
      );
    }
  });
  afterEach(async () => {
    await store.close();
    await rm(folder, { recursive: true });
  });

  const faults = async () => (await verifyAudit(store.read, secrets)).faults;
  const tamper = (statement: string) => store.write((tx) => sql.raw(statement).execute(tx));

  it('an untouched chain verifies, over more rows than one page', async () => {
    await store.write(async (tx) => {
      for (let index = 0; index < 1200; index += 1) await record(context, tx, { action: 'a.b', outcome: 'done' });
    });
    assert.deepEqual(await verifyAudit(store.read, secrets), { rows: 1209, faults: [] });
  });

  it('names the row that was altered, whichever column it was', async () => {
    for (const [column, value] of [
      ['person', `'other'`],
      ['at', '1001'],
      ['facts', `'{}'`],
      ['outcome', `'refused'`],
      ['assistant', `'a'`],
    ]) {
      const kept = await store.read.selectFrom('audit').selectAll().where('sequence', '=', 4).executeTakeFirstOrThrow();
      await tamper(`update audit set "${column}" = ${value} where sequence = 4`);
      assert.deepEqual(await faults(), [{ fault: 'altered', sequence: 4 }], String(column));
      await store.write((tx) => tx.updateTable('audit').set(kept).where('sequence', '=', 4).execute());
    }
    assert.deepEqual(await faults(), []);
  });

  it('names rows that were deleted, at the start, inside and at the end', async () => {
    await tamper('delete from audit where sequence in (1, 5, 9)');
    assert.deepEqual(
      await faults(),
      [1, 5, 9].map((sequence) => ({ fault: 'deleted', sequence })),
    );
  });

  it('names rows that changed places', async () => {
    await tamper('update audit set sequence = 100 where sequence = 3');
    await tamper('update audit set sequence = 3 where sequence = 4');
    await tamper('update audit set sequence = 4 where sequence = 100');
    assert.deepEqual(
      await faults(),
      [3, 4, 5].map((sequence) => ({ fault: 'reordered', sequence })),
    );
  });

  it('somebody who can write the database alone cannot make a chain that verifies', async () => {
    const forger = { ...context, secrets: secretsFrom(Buffer.alloc(32, 8)) };
    await store.write((tx) => record(forger, tx, { action: 'executor.resumed', outcome: 'done' }));
    assert.deepEqual(await faults(), [{ fault: 'altered', sequence: 10 }]);
  });

  it('an effect that fails leaves no record, and a record that fails leaves no effect', async () => {
    await assert.rejects(
      store.write(async (tx) => {
        await record(context, tx, { action: 'a.b', outcome: 'done' });
        throw new Error('the effect failed');
      }),
    );
    assert.deepEqual(await verifyAudit(store.read, secrets), { rows: 9, faults: [] });
  });
});
