import assert from 'node:assert/strict';
import type { ExecutorId } from '../../../helpers/protocol/ids.ts';
import { changeExecutor, stepExecutor } from '../../../server/executors/lifecycle.ts';
import { markSilent, touchExecutor } from '../../../server/executors/store.ts';
import { newId } from '../../../server/new-id.ts';
import { machineDescriptor } from '../../fakes/fake-machine.ts';
import {
  confirmQuickly,
  PairingMachine,
  pairThroughRoutes,
  proveOnline,
  startGovernance,
  submit,
} from '../governance.ts';
import type { Governance } from '../governance.ts';

describe('executors', () => {
  let plane: Governance;
  let executor: ExecutorId;
  let machine: PairingMachine;

  beforeEach(async () => {
    plane = await startGovernance();
    ({ executor, machine } = await pairThroughRoutes(plane, plane.owner));
  });
  afterEach(() => plane.stop());

  const row = () =>
    plane.context.store.read.selectFrom('executors').selectAll().where('id', '=', executor).executeTakeFirstOrThrow();
  const act = (action: string) => plane.owner.post(`/api/page/executors/${executor}/${action}`);
  const listed = async (): Promise<string[]> =>
    (await plane.owner.get('/api/page/executors')).body.executors.map((one: { executor: string }) => one.executor);
  const actions = async () => (await plane.owner.get(`/api/page/executors/${executor}`)).body.actions;

  it('N-200 the menu offers pause, resume once paused, disconnect and delete, as each state permits', async () => {
    assert.deepEqual(await actions(), ['delete']);
    await proveOnline(plane, executor);
    assert.deepEqual(await actions(), ['pause', 'disconnect', 'delete']);
    await act('pause');
    assert.deepEqual(await actions(), ['resume', 'disconnect', 'delete']);
    await act('resume');
    assert.deepEqual(await actions(), ['pause', 'disconnect', 'delete']);
    await act('drain');
    assert.deepEqual(await actions(), ['disconnect', 'delete']);
    await act('disconnect');
    assert.deepEqual(await actions(), ['delete']);
    await act('delete');
    assert.equal((await plane.owner.get(`/api/page/executors/${executor}`)).status, 404);
    assert.deepEqual((await plane.owner.get('/api/page/executors')).body.executors, []);
  });

  it('N-205 every access change, descriptor review and lifecycle transition advances the epoch', async () => {
    await proveOnline(plane, executor);
    const { agent } = (await plane.owner.post('/api/page/agents', { name: 'a' })).body;
    const guest = await plane.invite('guest');
    const base = `/api/page/executors/${executor}`;
    const { project, team } = plane.account;
    const steps: [string, () => Promise<unknown>][] = [
      ['descriptor confirmed', () => confirmQuickly(plane, executor)],
      ['agent on', () => plane.owner.put(`${base}/agents/${agent}`, { access: 'on' })],
      ['operation withdrawn', () => plane.owner.delete(`${base}/agents/${agent}/operations/file.read`)],
      ['operation granted', () => plane.owner.put(`${base}/agents/${agent}/operations/file.read`)],
      ['agent off', () => plane.owner.put(`${base}/agents/${agent}`, { access: 'off' })],
      ['person assigned', () => plane.owner.put(`${base}/people/${guest.person}`, { role: 'use' })],
      ['person unassigned', () => plane.owner.delete(`${base}/people/${guest.person}`)],
      ['project shared', () => plane.owner.put(`${base}/shares/project/${project}`)],
      ['project share ended', () => plane.owner.delete(`${base}/shares/project/${project}`)],
      ['team shared', () => plane.owner.put(`${base}/shares/team/${team}`)],
      [
        'member left the team',
        () => plane.owner.put(`/api/page/teams/${team}/members/${guest.person}`, { role: null }),
      ],
      ['silent', () => changeExecutor(plane.context, executor, { type: 'executor.silent' })],
      ['proved', () => proveOnline(plane, executor)],
      ['drain', () => act('drain')],
      ['disconnect', () => act('disconnect')],
    ];
    for (const [what, step] of steps) {
      const before = (await row()).epoch;
      await step();
      assert.ok((await row()).epoch > before, what);
    }
  });

  it('N-210 after sixty seconds of silence the first reader sees offline, and so does the store', async () => {
    for (const read of [
      () => plane.owner.get('/api/page/executors'),
      () => plane.owner.get(`/api/page/executors/${executor}`),
      () => markSilent(plane.context),
    ]) {
      await proveOnline(plane, executor);
      plane.clock.offsetMs += 55_000;
      await read();
      assert.equal((await row()).state, 'online');
      plane.clock.offsetMs += 6_000;
      await read();
      assert.equal((await row()).state, 'offline');
    }
    await proveOnline(plane, executor);
    plane.clock.offsetMs += 61_000;
    const { body } = await plane.owner.get('/api/page/executors');
    assert.equal(body.executors[0].state, 'offline');
  });

  it('a sign of life never moves backwards', async () => {
    await proveOnline(plane, executor);
    const before = (await row()).lastSeenAt ?? 0;
    await plane.context.store.write((tx) => touchExecutor(tx, executor, before - 5000));
    assert.equal((await row()).lastSeenAt, before);
  });

  it('N-202 disconnecting voids every candidate handle and cannot be undone', async () => {
    await proveOnline(plane, executor);
    const { agent } = (await plane.owner.post('/api/page/agents', { name: 'a' })).body;
    const run = newId('run');
    const { person, project } = plane.account;
    await plane.context.store.write(async (tx) => {
      const shared = { person, agent, project };
      await tx
        .insertInto('runs')
        .values({
          ...shared,
          id: run,
          conversation: 'c',
          bundle: 'workspace',
          openedBy: 'person',
          chosen: null,
          executor: null,
          state: 'active',
          endedBecause: null,
          startedAt: 1,
          activeAt: 1,
          endedAt: null,
          endTold: 0,
        })
        .execute();
      await tx
        .insertInto('candidates')
        .values({
          handleDigest: Buffer.alloc(32, 1),
          run,
          person,
          agent,
          operation: 'file.read',
          executor,
          expiresAt: 9e15,
          usedAt: null,
        })
        .execute();
    });
    await act('disconnect');
    assert.deepEqual(await plane.context.store.read.selectFrom('candidates').selectAll().execute(), []);
    for (const action of ['pause', 'resume', 'drain', 'disconnect']) {
      assert.equal((await act(action)).body.code, 'STATE_TRANSITION_INVALID', action);
    }
    const proof = { type: 'executor.proved', fingerprint: machine.fingerprint } as const;
    await assert.rejects(changeExecutor(plane.context, executor, proof), { code: 'STATE_TRANSITION_INVALID' });
    assert.equal((await row()).state, 'revoked');
  });

  it('N-195 disconnect and delete work in a session that every gated change rejects', async () => {
    await proveOnline(plane, executor);
    await plane.context.store.write((tx) => tx.updateTable('people').set({ password: null }).execute());
    const { body } = await plane.owner.get(`/api/page/executors/${executor}/descriptor`);
    const { revision, digest } = body.pending;
    const gated = { revision, digest, answer: 'confirm', password: 'anything at all' };
    const refused = await plane.owner.post(`/api/page/executors/${executor}/descriptor`, gated);
    assert.equal(refused.body.code, 'PASSWORD_NOT_SET');
    assert.match(refused.body.remedy, /one-time link/);
    assert.equal((await act('disconnect')).status, 200);
    assert.equal((await act('delete')).status, 200);
  });

  it('every change is recorded with who made it, in the transaction of the change', async () => {
    await proveOnline(plane, executor);
    await act('pause');
    const entries = await plane.context.store.read
      .selectFrom('audit')
      .selectAll()
      .where('executor', '=', executor)
      .execute();
    const last = entries.at(-1);
    assert.equal(last?.action, 'executor.pause');
    assert.equal(last?.person, plane.account.person);
    assert.equal(last?.assistant, null);
    await assert.rejects(
      plane.context.store.write(async (tx) => {
        await stepExecutor(plane.context, tx, executor, { type: 'executor.resume' });
        throw new Error('the rest failed');
      }),
    );
    const after = await plane.context.store.read
      .selectFrom('audit')
      .selectAll()
      .where('executor', '=', executor)
      .execute();
    assert.equal(after.length, entries.length);
    assert.equal((await row()).accepting, 0);
    await plane.context.store.write((tx) => tx.schema.dropTable('audit').execute());
    assert.equal((await act('resume')).status, 500);
    assert.equal((await row()).accepting, 0);
  });

  it('N-013 no route, share or new pairing changes the scope of a machine, and no field of any call names it', async () => {
    await proveOnline(plane, executor);
    await confirmQuickly(plane, executor);
    const { project, team } = plane.account;
    const base = `/api/page/executors/${executor}`;
    const { agent } = (await plane.owner.post('/api/page/agents', { name: 'a' })).body;
    const guest = await plane.invite('guest');
    const wish = { scope: 'organization', project, team };
    for (const method of ['PUT', 'PATCH', 'POST'])
      assert.equal((await plane.owner.request(method, base, wish)).status, 404, method);
    for (const [method, path, body] of [
      ['PUT', `${base}/agents/${agent}`, { access: 'on' }],
      ['PUT', `${base}/agents/${agent}/operations/file.read`, {}],
      ['PUT', `${base}/people/${guest.person}`, { role: 'use' }],
      ['PUT', `${base}/shares/team/${team}`, {}],
      ['PUT', `${base}/shares/project/${project}`, {}],
      ['POST', `${base}/pause`, {}],
      ['POST', `${base}/resume`, {}],
      ['POST', `${base}/drain`, {}],
    ] as const) {
      // Whether the call takes what it does not know or refuses it, nothing of it reaches the scope.
      await plane.owner.request(method, path, { ...body, ...wish });
      assert.deepEqual(
        [(await row()).scope, (await row()).project],
        ['private', null],
        `${method} ${path} with a scope`,
      );
      assert.ok((await plane.owner.request(method, path, body)).status < 500);
      assert.deepEqual([(await row()).scope, (await row()).project], ['private', null], `${method} ${path}`);
    }
    const again = await pairThroughRoutes(plane, plane.owner, { scope: 'organization' });
    assert.notEqual(again.executor, executor, 'another scope is another machine');
    const same = new PairingMachine(plane.origin, plane.clock, machine.key);
    assert.notEqual((await same.start()).status, 200, 'the key of a paired machine pairs with no other scope');
    assert.equal((await row()).scope, 'private');
  });

  it('N-203 delete is offered in every state and takes the machine off the list; disconnect keeps it; the history stays', async () => {
    const ways: [string, () => Promise<unknown>, boolean][] = [
      ['pending_pairing', async () => undefined, false],
      ['online', () => proveOnline(plane, executor), true],
      [
        'offline',
        async () => {
          await proveOnline(plane, executor);
          await changeExecutor(plane.context, executor, { type: 'executor.silent' });
        },
        true,
      ],
      [
        'draining',
        async () => {
          await proveOnline(plane, executor);
          await act('drain');
        },
        true,
      ],
      [
        'error',
        async () => {
          await proveOnline(plane, executor);
          await changeExecutor(plane.context, executor, { type: 'executor.damaged', fault: 'state-copied' });
        },
        true,
      ],
      [
        'revoked',
        async () => {
          await proveOnline(plane, executor);
          await act('disconnect');
        },
        false,
      ],
    ];
    for (const [state, reach, disconnects] of ways) {
      plane.clock.offsetMs += 601_000;
      ({ executor, machine } = await pairThroughRoutes(plane, plane.owner));
      await reach();
      assert.equal((await row()).state, state);
      const disconnected = await act('disconnect');
      assert.equal(disconnected.status === 200, disconnects, `disconnect while ${state}`);
      if (disconnects) assert.ok((await listed()).includes(executor), `listed after disconnect while ${state}`);

      plane.clock.offsetMs += 601_000;
      ({ executor, machine } = await pairThroughRoutes(plane, plane.owner));
      await reach();
      assert.equal((await act('delete')).status, 200, `delete while ${state}`);
      assert.equal((await row()).state, 'revoked', state);
      assert.equal((await listed()).includes(executor), false, state);
      const history = await plane.context.store.read
        .selectFrom('audit')
        .select('sequence')
        .where('executor', '=', executor)
        .execute();
      assert.ok(history.length > 2, `history of one deleted while ${state}`);
    }
  });

  it('a policy that arrives while offline waits as a revision and is shown', async () => {
    await confirmQuickly(plane, executor);
    await submit(plane, executor, machine, machineDescriptor({ revision: 2, promotion: 'machine' }));
    const { body } = await plane.owner.get(`/api/page/executors/${executor}`);
    assert.equal(body.pendingRevision, 2);
    assert.equal(body.promotion, 'page');
  });
});
