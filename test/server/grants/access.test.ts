import assert from 'node:assert/strict';
import { workspaceBundle } from '../../../helpers/protocol/operations.ts';
import type { AgentId, ExecutorId, PersonId } from '../../../helpers/protocol/ids.ts';
import { resolve } from '../../../server/availability/store.ts';
import { newId } from '../../../server/new-id.ts';
import { confirmQuickly, pairThroughRoutes, proveOnline, startGovernance } from '../governance.ts';
import type { Governance } from '../governance.ts';

describe('access', () => {
  let plane: Governance;
  let base: string;
  let agent: string;

  beforeEach(async () => {
    plane = await startGovernance();
    const { executor } = await pairThroughRoutes(plane, plane.owner);
    base = `/api/page/executors/${executor}`;
    agent = (await plane.owner.post('/api/page/agents', { name: 'a' })).body.agent;
    await confirmQuickly(plane, executor);
  });
  afterEach(() => plane.stop());

  const granted = async () =>
    (
      await plane.context.store.read
        .selectFrom('grants')
        .select('operation')
        .where('agent', '=', agent as never)
        .execute()
    )
      .map((row) => row.operation)
      .toSorted();

  it('N-188 switching an agent on writes one grant for each approved operation, off removes all', async () => {
    assert.equal((await plane.owner.put(`${base}/agents/${agent}`, { access: 'on' })).status, 200);
    assert.deepEqual(await granted(), [...workspaceBundle].toSorted());
    assert.equal((await plane.owner.get(`${base}/agents`)).body.agents[0].access, 'on');
    await plane.owner.delete(`${base}/agents/${agent}/operations/file.write`);
    assert.equal((await plane.owner.get(`${base}/agents`)).body.agents[0].access, 'partial');
    await plane.owner.put(`${base}/agents/${agent}`, { access: 'off' });
    assert.deepEqual(await granted(), []);
    assert.equal((await plane.owner.get(`${base}/agents`)).body.agents[0].access, 'off');
  });

  it('nothing can be granted before a person confirmed a descriptor, and never an operation of persons or one that is not there', async () => {
    const { executor } = await pairThroughRoutes(plane, plane.owner);
    const unreviewed = await plane.owner.put(`/api/page/executors/${executor}/agents/${agent}`, { access: 'on' });
    assert.equal(unreviewed.body.code, 'DESCRIPTOR_UNREVIEWED');
    for (const key of [
      'workspace.promote',
      'review.difference',
      'coding.attach',
      'coding.prompt',
      'coding.interrupt',
      'coding.close',
      'browser.connected.open',
      'command.run',
      'nothing.such',
    ]) {
      assert.equal(
        (await plane.owner.put(`${base}/agents/${agent}/operations/${key}`)).body.code,
        'OPERATION_NOT_IMPLEMENTED',
        key,
      );
    }
    const foreign = await plane.owner.put(`${base}/agents/${newId('agt')}`, { access: 'on' });
    assert.equal(foreign.body.code, 'AGENT_ABSENT');
    assert.deepEqual(await granted(), []);
  });

  it('N-189 use and administration of a person, use for a project and for the own team, and each taken back', async () => {
    const guest = await plane.invite('guest');
    const sees = async () => (await guest.get(base)).status === 200;
    const administers = async () => (await guest.get(`${base}/sharing`)).status === 200;
    const { project, team } = plane.account;
    assert.equal(await sees(), false);
    await plane.owner.put(`${base}/people/${guest.person}`, { role: 'use' });
    assert.deepEqual([await sees(), await administers()], [true, false]);
    await plane.owner.put(`${base}/people/${guest.person}`, { role: 'admin' });
    assert.deepEqual([await sees(), await administers()], [true, true]);
    await plane.owner.delete(`${base}/people/${guest.person}`);
    assert.equal(await sees(), false);
    await plane.owner.put(`/api/page/projects/${project}/members/${guest.person}`, { role: 'owner' });
    await plane.owner.put(`${base}/shares/project/${project}`);
    assert.deepEqual([await sees(), await administers()], [true, false]);
    await plane.owner.delete(`${base}/shares/project/${project}`);
    assert.equal(await sees(), false);
    await plane.owner.put(`${base}/shares/team/${team}`);
    assert.deepEqual([await sees(), await administers()], [true, false]);
    await plane.owner.delete(`${base}/shares/team/${team}`);
    assert.equal(await sees(), false);
  });

  it('N-187 agent access and sharing take effect at once, with no second step, password or renewed sign-in', async () => {
    await plane.context.store.write((tx) => tx.updateTable('people').set({ password: null }).execute());
    const executor = base.split('/').at(-1) as ExecutorId;
    await proveOnline(plane, executor);
    const guest = await plane.invite('guest');
    const answer = async (person: PersonId) => {
      const origin = { project: plane.account.project };
      const question = { person, agent: agent as AgentId, operation: 'file.read', origin, executor };
      await proveOnline(plane, executor);
      const found = await resolve(plane.context, plane.context.store.read, question);
      return found.available ? 'available' : found.reason;
    };
    const own = plane.account.person;
    assert.equal(await answer(own), 'operation_ungranted');
    await plane.owner.put(`${base}/agents/${agent}`, { access: 'on' });
    assert.equal(await answer(own), 'available');
    assert.equal(await answer(guest.person), 'not_discoverable');
    await plane.owner.put(`${base}/shares/team/${plane.account.team}`);
    assert.equal(await answer(guest.person), 'available');
    await plane.owner.delete(`${base}/shares/team/${plane.account.team}`);
    assert.equal(await answer(guest.person), 'not_discoverable');
    await plane.owner.put(`${base}/agents/${agent}`, { access: 'off' });
    assert.equal(await answer(own), 'operation_ungranted');
  });

  it('use is shared with the machine’s own team and projects of the organisation only, and administration is assigned on private machines only', async () => {
    const { team } = (await plane.owner.post('/api/page/teams', { name: 'Other' })).body;
    assert.equal((await plane.owner.put(`${base}/shares/team/${team}`)).body.code, 'SHARE_INVALID');
    assert.equal((await plane.owner.put(`${base}/shares/project/${newId('prj')}`)).body.code, 'SHARE_INVALID');
    const guest = await plane.invite('guest');
    const { executor } = await pairThroughRoutes(plane, plane.owner, { scope: 'organization' });
    const admin = await plane.owner.put(`/api/page/executors/${executor}/people/${guest.person}`, { role: 'admin' });
    assert.equal(admin.body.code, 'SCOPE_ADMINISTERS');
  });

  it('a machine’s own data thief cannot give an agent administration: the store refuses it', async () => {
    const { executor } = await plane.context.store.read
      .selectFrom('assignments')
      .select('executor')
      .executeTakeFirstOrThrow();
    await assert.rejects(
      plane.context.store.write((tx) =>
        tx
          .insertInto('assignments')
          .values({
            executor,
            kind: 'agent',
            subject: agent as never,
            role: 'admin',
            createdAt: 1,
            createdBy: plane.account.person,
          })
          .execute(),
      ),
      /CHECK/,
    );
  });
});
