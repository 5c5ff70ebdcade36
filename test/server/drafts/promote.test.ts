import assert from 'node:assert/strict';
import { decode } from '../../../helpers/protocol/codec.ts';
import { admitKey, sha256, statementDigest } from '../../../helpers/protocol/signed.ts';
import { openStatement } from '../../../helpers/protocol/statements.ts';
import type { PersonId } from '../../../helpers/protocol/ids.ts';
import { hashPassword } from '../../../server/accounts/password.ts';
import { endRun } from '../../../server/runs/store.ts';
import { switchAgentOff } from '../../../server/grants/access.ts';
import type { FakeExecutor } from '../../fakes/fake-executor.ts';
import { machineDescriptor } from '../../fakes/fake-machine.ts';
import { FakeWorkspace } from '../../fakes/fake-workspace.ts';
import { confirmDescriptor, PASSWORD, startControlPlane, until } from '../control-plane.ts';
import type { ControlPlane, PairedMachine } from '../control-plane.ts';
import { openRun } from '../work-run.ts';
import type { OpenRun } from '../work-run.ts';

const stranger = `per_${'1'.repeat(32)}` as PersonId;

describe('reviews and promotions', () => {
  let plane: ControlPlane;
  let paired: PairedMachine;
  let machine: FakeExecutor;
  let workspace: FakeWorkspace;
  let run: OpenRun;

  beforeEach(async () => {
    plane = await startControlPlane({ password: PASSWORD });
    paired = await plane.pair();
    workspace = new FakeWorkspace({ 'a.txt': 'old' });
    machine = plane.machine(paired, workspace.play);
    await machine.online();
    run = await openRun(plane);
    await run.call('file.write', { path: 'a.txt', content: 'new', overwrite: true });
  });
  afterEach(() => plane.stop());

  const reviewed = async (): Promise<string> => {
    const { status, body } = await plane.page('POST', `/api/page/runs/${run.run.id}/review`);
    assert.equal(status, 200, JSON.stringify(body));
    return body.review;
  };
  const prepared = async (): Promise<string> => {
    const { status, body } = await plane.page('POST', `/api/page/reviews/${await reviewed()}/promotion`);
    assert.equal(status, 200, JSON.stringify(body));
    assert.equal(body.state, 'prepared');
    return body.promotion;
  };
  const approve = (promotion: string, password = PASSWORD) =>
    plane.page('POST', `/api/page/promotions/${promotion}/approve`, { password });
  /** The run is another person's from now on. */
  const giveTo = (person: typeof stranger) =>
    plane.context.store.write(async (tx) => {
      const { organisation } = plane.by;
      await tx
        .insertInto('people')
        .values({
          id: person,
          organisation,
          login: 'x',
          name: 'X',
          role: 'member',
          active: 1,
          password: null,
          createdAt: 0,
        })
        .execute();
      await tx.updateTable('runs').set({ person }).where('id', '=', run.run.id).execute();
    });
  const promotions = () => machine.delivered.filter(({ envelope }) => envelope.operation === 'workspace.promote');

  it('a reviewed draft is promoted after the current password, and the machine holds an approval that it can verify alone', async () => {
    const promotion = await prepared();
    const sent = await approve(promotion);
    assert.equal(sent.status, 200, JSON.stringify(sent.body));
    const end = await until('the promotion', async () => {
      const { body } = await plane.page('GET', `/api/page/promotions/${promotion}`);
      return body.outcome === null ? undefined : body;
    });
    assert.equal(end.outcome, 'promoted');
    assert.equal(workspace.files.get('a.txt'), 'new');
    const [command] = promotions();
    assert.ok(command);
    assert.equal(command.envelope.origin.agent, undefined);
    assert.deepEqual(Buffer.from(command.envelope.contentDigest), sha256(command.content));
    const signed = decode(command.content) as { payload: Uint8Array; signature: Uint8Array };
    const approval = openStatement('control.approval', admitKey(plane.key.publicKey), signed)?.statement;
    assert.ok(approval);
    assert.equal(approval.promotion, promotion);
    assert.equal(approval.fence, command.envelope.fence);
    assert.equal(Buffer.from(approval.rootIdentity).toString('hex'), workspace.rootIdentity);
    const { approvalDigest } = command.arguments as { approvalDigest: string };
    assert.equal(approvalDigest, statementDigest('control.approval', signed.payload).toString('hex'));
  });

  it('N-145 N-194 no password, an old or another one sends nothing, and neither a fresh sign-in nor a password that was typed a moment before replaces it', async () => {
    const promotion = await prepared();
    assert.equal((await approve(promotion, '')).status, 400);
    const wrong = await approve(promotion, 'another four words');
    assert.deepEqual([wrong.status, wrong.body.code], [403, 'PASSWORD_WRONG']);
    const password = await hashPassword('four newer unrelated words');
    await plane.context.store.write((tx) =>
      tx.updateTable('people').set({ password }).where('id', '=', plane.by.person).execute(),
    );
    assert.equal((await approve(promotion)).body.code, 'PASSWORD_WRONG');
    assert.equal(promotions().length, 0);
    const login = { login: 'ness', password: 'four newer unrelated words' };
    assert.equal((await plane.page('POST', '/api/page/sign-in', login)).status, 200);
    assert.equal((await approve(promotion, '')).status, 400);
    assert.equal(promotions().length, 0);
    assert.equal((await approve(promotion, 'four newer unrelated words')).status, 200);
    await until('the first promotion', () => promotions().length === 1);
    const next = await prepared();
    assert.equal((await approve(next, '')).status, 400, 'straight after the password of another promotion');
    assert.equal((await approve(next, 'another four words')).body.code, 'PASSWORD_WRONG');
    assert.equal(promotions().length, 1);
  });

  it('a prepared promotion lives ten minutes and serves once', async () => {
    const first = await prepared();
    assert.equal((await approve(first)).status, 200);
    const twice = await approve(first);
    assert.equal(twice.body.code, 'PROMOTION_USED');
    await until('the first promotion', () => promotions().length === 1);
    const second = await prepared();
    plane.clock.offsetMs += 599_000;
    machine.cut();
    await plane.work.sweep();
    assert.equal((await plane.page('GET', `/api/page/promotions/${second}`)).body.state, 'prepared');
    plane.clock.offsetMs += 2000;
    assert.equal((await approve(second)).body.code, 'PROMOTION_EXPIRED');
    await plane.work.sweep();
    assert.equal((await plane.page('GET', `/api/page/promotions/${second}`)).body.outcome, 'expired');
  });

  it('two presses at once make one command', async () => {
    const promotion = await prepared();
    const answers = await Promise.all([approve(promotion), approve(promotion)]);
    assert.deepEqual(
      answers.map(({ status }) => status).toSorted((a, b) => a - b),
      [200, 409],
    );
    await until('the command', () => promotions().length > 0);
    assert.equal(promotions().length, 1);
  });

  const changes: Record<string, { change: (promotion: string) => Promise<unknown>; code: string }> = {
    'the review digest': {
      change: (promotion) => alter(promotion, 'reviewDigest'),
      code: 'PROMOTION_REVIEW_CHANGED',
    },
    'the manifest digest, by a later review': {
      change: async () => {
        await run.call('file.write', { path: 'b.txt', content: 'more' });
        await reviewed();
      },
      code: 'PROMOTION_REVIEW_STALE',
    },
    'the originating run': {
      change: () =>
        plane.context.store.write((tx) =>
          tx.updateTable('runs').set({ executor: null }).where('id', '=', run.run.id).execute(),
        ),
      code: 'PROMOTION_RUN_CHANGED',
    },
    'the user': {
      change: () => giveTo(stranger),
      code: 'PROMOTION_PERSON_CHANGED',
    },
    'the grant of the operation': {
      change: async (promotion) => {
        const narrowed = machineDescriptor({ revision: 2, operations: ['file.read', 'workspace.review'] });
        await confirmDescriptor(plane.context, plane.by, { ...paired, descriptor: narrowed });
        await plane.context.store.write(async (tx) => {
          await tx
            .updateTable('executors')
            .set({ authorizationRevision: 0 })
            .where('id', '=', paired.executor)
            .execute();
          await tx
            .updateTable('promotions')
            .set({ authorizationRevision: 0 })
            .where('id', '=', promotion as never)
            .execute();
        });
      },
      code: 'PROMOTION_UNGRANTED',
    },
    'the agent': {
      change: () =>
        plane.context.store.write((tx) =>
          tx.updateTable('agents').set({ endedAt: 1 }).where('id', '=', plane.agent).execute(),
        ),
      code: 'PROMOTION_AGENT_CHANGED',
    },
    'the authorization revision, by a grant that went': {
      change: () => switchAgentOff(plane.context, plane.by, paired.executor, plane.agent),
      code: 'PROMOTION_AUTHORIZATION_CHANGED',
    },
    'the local policy': {
      change: (promotion) => alter(promotion, 'policyDigest'),
      code: 'PROMOTION_POLICY_CHANGED',
    },
  };
  const alter = (promotion: string, column: 'reviewDigest' | 'policyDigest') =>
    plane.context.store.write((tx) =>
      tx
        .updateTable('promotions')
        .set({ [column]: Buffer.alloc(32, 7) })
        .where('id', '=', promotion as never)
        .execute(),
    );
  for (const [fact, { change, code }] of Object.entries(changes)) {
    it(`N-146 a change of ${fact} after the preparation is refused by its own code, and there is no command`, async () => {
      const promotion = await prepared();
      await change(promotion);
      const answer = await approve(promotion);
      assert.equal(answer.body.code, code, JSON.stringify(answer.body));
      assert.equal(promotions().length, 0);
      const { body } = await plane.page('GET', `/api/page/promotions/${promotion}`);
      assert.deepEqual([body.outcome, body.code], ['refused', code]);
    });
  }

  it('N-142 a person sees reviews and promotions of runs that they started and of no other', async () => {
    const review = await reviewed();
    await giveTo(stranger);
    assert.equal((await plane.page('GET', `/api/page/reviews/${review}`)).body.code, 'REVIEW_ABSENT');
    assert.equal((await plane.page('POST', `/api/page/reviews/${review}/promotion`)).body.code, 'REVIEW_ABSENT');
    await plane.context.store.write((tx) => tx.updateTable('reviews').set({ person: stranger }).execute());
    assert.deepEqual((await plane.page('GET', '/api/page/reviews')).body, { reviews: [] });
  });

  it('the difference is passed through to the page and kept in no row', async () => {
    const review = await reviewed();
    const sealed = Buffer.from('planted-difference').toString('base64');
    const before = workspace.play;
    machine.machine.play = (delivered) =>
      delivered.envelope.operation === 'review.difference'
        ? {
            outcome: 'succeeded',
            result: { success: true, sealed, nonce: 'n'.repeat(32), senderKey: `${'s'.repeat(43)}=`, totalBytes: 18 },
          }
        : before(delivered);
    const answer = await plane.page('POST', `/api/page/reviews/${review}/difference`, {
      recipientKey: Buffer.alloc(32, 1).toString('base64'),
      part: { of: 'manifest' },
    });
    assert.equal(answer.body.sealed, sealed, JSON.stringify(answer.body));
    const command = machine.delivered.find(({ envelope }) => envelope.operation === 'review.difference');
    assert.equal(command?.envelope.origin.agent, undefined);
    const kept = await plane.context.store.read
      .selectFrom('payloads')
      .select('direction')
      .where('command', '=', command?.envelope.command as never)
      .execute();
    assert.deepEqual(
      kept.map(({ direction }) => direction),
      ['arguments'],
    );
  });

  it('a run that ended can still be reviewed results-in-hand and promoted', async () => {
    const promotion = await prepared();
    await endRun(plane.work, run.run.id, 'stopped', { person: plane.by.person });
    assert.equal((await approve(promotion)).status, 200);
    await until(
      'the promotion',
      async () => (await plane.page('GET', `/api/page/promotions/${promotion}`)).body.outcome === 'promoted',
    );
  });
});
