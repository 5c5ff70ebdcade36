import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import type { RunId } from '../../helpers/protocol/ids.ts';
import type { CommandFrame } from '../../server/protocol.ts';
import type { FakeControlPlane } from '../fakes/fake-control-plane.ts';
import { pairedExecutor } from '../fixtures/executor.ts';
import type { RealExecutor } from '../fixtures/executor.ts';
import { idOf, newRun, Promotions } from '../fixtures/promotions.ts';
import { until } from '../fixtures/until.ts';
import { isFrozen, signal } from './processes.ts';

/** An operation with a way to see whether it truly happened. */
interface Cancellable {
  readonly name: string;
  /** Process that does it. */
  readonly role: 'workspace' | 'promote';
  /** Prepares one command of a run of its own. */
  make(run: RunId): Promise<CommandFrame>;
  /** Whether its effect is there; undefined for one that has none. */
  happened?(run: RunId): Promise<boolean>;
}

describe('a cancel', function () {
  this.timeout(120_000);
  let plane: FakeControlPlane;
  let executor: RealExecutor;
  let promotions: Promotions;
  let end: () => Promise<void>;

  before(async () => {
    ({ plane, executor, end } = await pairedExecutor());
    promotions = new Promotions(plane, executor);
    fs.writeFileSync(path.join(executor.root, 'a.txt'), 'hello\n');
  });
  after(() => end());
  afterEach(async () => {
    plane.cancel = [];
    await executor.is('online');
  });

  const read: Cancellable = {
    name: 'read',
    role: 'workspace',
    make: (run) => Promise.resolve(plane.frame({ operation: 'file.read', arguments: { path: 'a.txt' }, run })),
  };
  const write: Cancellable = {
    name: 'write',
    role: 'workspace',
    make: (run) => {
      const input = { path: 'new.txt', content: 'draft' };
      return Promise.resolve(plane.frame({ operation: 'file.write', arguments: input, run }));
    },
    happened: async (run) => {
      const seen = await plane.call({ operation: 'file.read', arguments: { path: 'new.txt' }, run });
      return seen.ending === 'succeeded';
    },
  };
  const promote: Cancellable = {
    name: 'promotion',
    role: 'promote',
    make: async (run) => {
      await promotions.draft(run, `${run}.txt`, 'draft');
      return promotions.approved(run);
    },
    happened: (run) => Promise.resolve(fs.existsSync(path.join(executor.root, `${run}.txt`))),
  };

  for (const kind of [read, write, promote]) {
    it(`before a ${kind.name}: it never starts`, async () => {
      const run = newRun();
      const frame = await kind.make(run);
      await promotions.cancel(idOf(frame));
      plane.deliver(frame);
      assert.equal((await promotions.told(idOf(frame))).ending, 'CANCELLED_BEFORE_START');
      plane.cancel = [];
      assert.notEqual(await kind.happened?.(run), true);
    });

    it(`during a ${kind.name}: it ends as it truly was`, async () => {
      const run = newRun();
      const frame = await kind.make(run);
      const frozen = await freezeAt(kind, frame);
      await promotions.cancel(idOf(frame));
      signal(frozen, 'SIGCONT');
      const { ending } = await promotions.told(idOf(frame));
      plane.cancel = [];
      assert.ok(ending === 'succeeded' || ending === 'cancelled', `ended ${ending}`);
      if (kind.happened) assert.equal(await kind.happened(run), ending === 'succeeded');
    });

    it(`after a ${kind.name}: nothing changes and nothing is told again`, async () => {
      const run = newRun();
      const frame = await kind.make(run);
      plane.deliver(frame);
      assert.equal((await promotions.told(idOf(frame))).ending, 'succeeded');
      const count = plane.told.length;
      await promotions.cancel(idOf(frame));
      assert.equal(plane.told.length, count);
      plane.cancel = [];
      if (kind.happened) assert.equal(await kind.happened(run), true);
    });
  }

  it('in reverse order: of two commands of one run the later is cancelled first, and only the earlier happens', async () => {
    const run = newRun();
    const write = (name: string): CommandFrame =>
      plane.frame({ operation: 'file.write', arguments: { path: name, content: 'draft' }, run });
    const [first, second] = [write('first.txt'), write('second.txt')];
    await promotions.cancel(idOf(second));
    plane.deliver(second, first);
    assert.equal((await promotions.told(idOf(second))).ending, 'CANCELLED_BEFORE_START');
    assert.equal((await promotions.told(idOf(first))).ending, 'succeeded');
    plane.cancel = [];
    const listed = JSON.stringify((await plane.call({ operation: 'file.list', run })).result);
    assert.ok(listed.includes('first.txt') && !listed.includes('second.txt'));
  });

  it('of a promotion that waits for another one ends the one that waits', async () => {
    const [running, waiting] = [newRun(), newRun()];
    const first = await promote.make(running);
    const second = await promote.make(waiting);
    const frozen = await freezeAt(promote, first);
    plane.deliver(second);
    await until(
      'the second has started',
      () =>
        plane.told.some(
          ({ command, frame }) =>
            command === idOf(second) && frame.receipts.some(({ type }) => type === 'machine.started'),
        ) || undefined,
    );
    await promotions.cancel(idOf(second));
    assert.equal((await promotions.told(idOf(second))).ending, 'cancelled', 'it ends before the first one does');
    signal(frozen, 'SIGCONT');
    assert.equal((await promotions.told(idOf(first))).ending, 'succeeded', 'nobody asked for the first to end');
    assert.ok(await promote.happened?.(running));
    assert.equal((await promotions.told(idOf(second))).ending, 'cancelled');
    plane.cancel = [];
    assert.equal(await promote.happened?.(waiting), false);
  });

  /** Delivers a command and stops the process that does it, before or while it does. */
  async function freezeAt(kind: Cancellable, frame: CommandFrame): Promise<number> {
    if (kind.role === 'promote') {
      plane.deliver(frame);
      return promotions.freeze();
    }
    const pid = executor.pidOf('workspace');
    signal(pid, 'SIGSTOP');
    await until('it stands still', () => isFrozen(pid) || undefined);
    plane.deliver(frame);
    await until('it has started', () => plane.told.some(({ command }) => command === idOf(frame)) || undefined);
    return pid;
  }
});
