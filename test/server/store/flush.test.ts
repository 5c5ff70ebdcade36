import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Flush } from '../../../server/store/flush.ts';
import { GroupCommit } from '../../../server/store/group-commit.ts';
import { openSqliteStore } from '../../../server/store/sqlite.ts';
import type { Store } from '../../../server/store/store.ts';
import { StoreFailed } from '../../../server/store/store.ts';

describe('flush of the log', () => {
  let folder: string;
  let store: Store;
  let unflushable: number;
  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'flush-'));
    store = await openSqliteStore(join(folder, 'store.db'));
    // The kernel refuses to flush a pipe, as it refuses a disk that is broken.
    execFileSync('mkfifo', [join(folder, 'pipe')]);
    unflushable = openSync(join(folder, 'pipe'), 'r+');
  });
  afterEach(async () => {
    closeSync(unflushable);
    await store.close();
    rmSync(folder, { recursive: true });
  });

  it('nobody is told of a job before the flush, and after a failed one no job runs', async () => {
    // Its transactions are real and written nowhere that outlives them: only the flush is asked about here.
    const commits = new GroupCommit(store.read, new Flush(unflushable));
    let ran = 0;
    const job = (): Promise<number> => Promise.resolve((ran += 1));
    const together = await Promise.allSettled([commits.write(job), commits.write(job)]);
    for (const result of together) {
      assert.ok(result.status === 'rejected' && result.reason instanceof StoreFailed);
      assert.match(result.reason.message, /refused a flush/);
    }
    assert.equal(ran, 2);
    await assert.rejects(commits.write(job), StoreFailed);
    assert.equal(ran, 2);
    await commits.idle();
  });

  it('what is written while a flush runs waits for the next one', async () => {
    const log = openSync(join(folder, 'log'), 'w');
    const flush = new Flush(log);
    const first = flush.written();
    // The flush is under way: its call was handed to the thread pool within this turn.
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
    const [second, third] = [flush.written(), flush.written()];
    assert.notEqual(second, first);
    assert.equal(third, second);
    await Promise.all([first, second]);
    await flush.idle();
    closeSync(log);
  });
});
