import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { decode, encode } from '../../helpers/protocol/codec.ts';
import {
  commandIdSchema,
  personIdSchema,
  promotionIdSchema,
  reviewIdSchema,
  runIdSchema,
} from '../../helpers/protocol/ids.ts';
import type { CommandId, RunId } from '../../helpers/protocol/ids.ts';
import { statementDigest } from '../../helpers/protocol/signed.ts';
import { readUnverified } from '../../helpers/protocol/statements.ts';
import type { CommandFrame } from '../../server/protocol.ts';
import type { FakeControlPlane, Told, Wanted } from '../fakes/fake-control-plane.ts';
import { pairedExecutor } from '../fixtures/executor.ts';
import type { RealExecutor } from '../fixtures/executor.ts';
import { until } from '../fixtures/until.ts';
import { isFrozen, signal } from './processes.ts';

const hex = (prefix: string): string => `${prefix}_${randomBytes(16).toString('hex')}`;
const newRun = (): RunId => runIdSchema.parse(hex('run'));

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
  let end: () => Promise<void>;
  let sequence = 0;

  before(async () => {
    ({ plane, executor, end } = await pairedExecutor());
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
      await succeeds({ operation: 'file.write', arguments: { path: `${run}.txt`, content: 'draft' }, run });
      return promotion(run);
    },
    happened: (run) => Promise.resolve(fs.existsSync(path.join(executor.root, `${run}.txt`))),
  };

  for (const kind of [read, write, promote]) {
    it(`before a ${kind.name}: it never starts`, async () => {
      const run = newRun();
      const frame = await kind.make(run);
      await cancelNow(idOf(frame));
      plane.deliver(frame);
      assert.equal((await told(idOf(frame))).ending, 'CANCELLED_BEFORE_START');
      plane.cancel = [];
      assert.notEqual(await kind.happened?.(run), true);
    });

    it(`during a ${kind.name}: it ends as it truly was`, async () => {
      const run = newRun();
      const frame = await kind.make(run);
      const frozen = await freezeAt(kind, frame);
      await cancelNow(idOf(frame));
      signal(frozen, 'SIGCONT');
      const { ending } = await told(idOf(frame));
      plane.cancel = [];
      assert.ok(ending === 'succeeded' || ending === 'cancelled', `ended ${ending}`);
      if (kind.happened) assert.equal(await kind.happened(run), ending === 'succeeded');
    });

    it(`after a ${kind.name}: nothing changes and nothing is told again`, async () => {
      const run = newRun();
      const frame = await kind.make(run);
      plane.deliver(frame);
      assert.equal((await told(idOf(frame))).ending, 'succeeded');
      const count = plane.told.length;
      await cancelNow(idOf(frame));
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
    await cancelNow(idOf(second));
    plane.deliver(second, first);
    assert.equal((await told(idOf(second))).ending, 'CANCELLED_BEFORE_START');
    assert.equal((await told(idOf(first))).ending, 'succeeded');
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
    await cancelNow(idOf(second));
    assert.equal((await told(idOf(second))).ending, 'cancelled', 'it ends before the first one does');
    signal(frozen, 'SIGCONT');
    assert.equal((await told(idOf(first))).ending, 'succeeded', 'nobody asked for the first to end');
    assert.ok(await promote.happened?.(running));
    assert.equal((await told(idOf(second))).ending, 'cancelled');
    plane.cancel = [];
    assert.equal(await promote.happened?.(waiting), false);
  });

  /** Delivers a command and stops the process that does it, before or while it does. */
  async function freezeAt(kind: Cancellable, frame: CommandFrame): Promise<number> {
    const freeze = async (pid: number): Promise<number> => {
      signal(pid, 'SIGSTOP');
      await until('it stands still', () => isFrozen(pid) || undefined);
      return pid;
    };
    if (kind.role === 'workspace') {
      const pid = await freeze(executor.pidOf('workspace'));
      plane.deliver(frame);
      await until('it has started', () => plane.told.some(({ command }) => command === idOf(frame)) || undefined);
      return pid;
    }
    plane.deliver(frame);
    return freeze(await until('promote runs', () => pidOrNone('promote')));
  }

  function pidOrNone(row: string): number | undefined {
    try {
      return executor.pidOf(row);
    } catch {
      // It does not run yet.
      return undefined;
    }
  }

  /** Lets the next control answer carry the id, and waits until the daemon has asked again: it has heard. */
  async function cancelNow(command: CommandId): Promise<void> {
    plane.cancel = [...plane.cancel, command];
    const asked = controlQuestions();
    plane.wake();
    await until('the cancel was heard', () => controlQuestions() > asked || undefined);
  }

  function controlQuestions(): number {
    return plane.questions.filter((type) => type === 'control').length;
  }

  function told(id: CommandId): Promise<Told> {
    return until('its ending', () => plane.told.find(({ command, ending }) => command === id && ending !== undefined));
  }

  async function succeeds(wanted: Wanted): Promise<unknown> {
    const { ending, result } = await plane.call(wanted);
    assert.equal(ending, 'succeeded', JSON.stringify(result));
    return result;
  }

  async function promotion(run: RunId): Promise<CommandFrame> {
    // The result that operations.ts gives for workspace.review.
    const { manifestDigest, rootIdentity } = (await succeeds({ operation: 'workspace.review', run })) as {
      manifestDigest: string;
      rootIdentity: string;
    };
    const promotionId = promotionIdSchema.parse(hex('prm'));
    sequence += 1;
    const approval = plane.sign('control.approval', {
      promotion: promotionId,
      executor: plane.executor,
      run,
      person: personIdSchema.parse(hex('per')),
      agent:
        readUnverified('control.command', plane.frame({ operation: 'file.list', run }).envelope).origin.agent ??
        never(),
      review: reviewIdSchema.parse(hex('rev')),
      manifestDigest: Buffer.from(manifestDigest, 'hex'),
      rootIdentity: Buffer.from(rootIdentity, 'hex'),
      fence: 1,
      policyDigest: plane.confirmed.policyDigest,
      sequence,
      notBefore: Date.now() - 1000,
      expiresAt: Date.now() + 60_000,
    });
    const approvalDigest = statementDigest('control.approval', approval.payload).toString('hex');
    return plane.frame({
      operation: 'workspace.promote',
      arguments: { approvalDigest, manifestDigest, promotionId },
      content: encode(approval),
      run,
      byPerson: true,
    });
  }
});

function never(): never {
  throw new TypeError('commands of an agent name it');
}

function idOf(frame: CommandFrame): CommandId {
  return commandIdSchema.parse((decode(frame.envelope.payload) as { command: string }).command);
}
