import assert from 'node:assert/strict';
import { activeAdministrators } from '../../../server/grants/access.ts';
import { changeExecutor } from '../../../server/executors/lifecycle.ts';
import { pairThroughRoutes, proveOnline, startGovernance } from '../governance.ts';
import type { Governance, Page } from '../governance.ts';

describe('administrators of private machines', () => {
  let plane: Governance;
  beforeEach(async () => {
    plane = await startGovernance();
  });
  afterEach(() => plane.stop());

  const assignments = () =>
    plane.context.store.read
      .selectFrom('assignments')
      .select(['executor', 'subject', 'role'])
      .orderBy('executor')
      .orderBy('subject')
      .execute();
  const stateOf = async (executor: string) =>
    (
      await plane.context.store.read
        .selectFrom('executors')
        .select('state')
        .where('id', '=', executor as never)
        .executeTakeFirstOrThrow()
    ).state;

  it('N-015 the last administrator is not removed, by nobody and in no way, and nothing is changed', async () => {
    const { executor } = await pairThroughRoutes(plane, plane.owner);
    const second = await plane.invite('second');
    const own = `/api/page/executors/${executor}/people/`;
    const before = await assignments();
    for (const removal of [
      plane.owner.delete(own + plane.owner.person),
      plane.owner.put(own + plane.owner.person, { role: 'use' }),
    ]) {
      assert.equal((await removal).body.code, 'PRIVATE_FINAL_ADMIN_REQUIRED');
    }
    assert.deepEqual(await assignments(), before);
    await plane.owner.put(own + second.person, { role: 'admin' });
    const both = await Promise.all([plane.owner.delete(own + second.person), second.delete(own + plane.owner.person)]);
    assert.deepEqual(
      both.map(({ status }) => status === 200).toSorted((a, b) => Number(a) - Number(b)),
      [false, true],
    );
    const left = await plane.context.store.write((tx) => activeAdministrators(tx, executor));
    assert.equal(left.length, 1);
  });

  it('N-014 random and parallel additions, removals and offboardings leave a private machine an active administrator, or it takes no new work', async () => {
    const { executor } = await pairThroughRoutes(plane, plane.owner);
    const people: Page[] = [plane.owner];
    for (const login of ['anna', 'bob', 'carl', 'dora', 'emil', 'fay']) people.push(await plane.invite(login));
    let seed = 7;
    const random = (limit: number): number => {
      seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
      return seed % limit;
    };
    const change = (by: Page, on: Page, kind: number) => {
      const path = `/api/page/executors/${executor}/people/${on.person}`;
      if (kind === 3) return plane.owner.post(`/api/page/people/${on.person}/offboard`);
      if (kind === 0) return by.delete(path);
      return by.put(path, { role: kind === 1 ? 'use' : 'admin' });
    };
    const pick = (): Page => people[random(people.length)] as Page;
    for (let round = 0; round < 40; round += 1) {
      await Promise.all(Array.from({ length: 4 }, () => change(pick(), pick(), random(round < 30 ? 3 : 4))));
      const left = await plane.context.store.write((tx) => activeAdministrators(tx, executor));
      const state = await stateOf(executor);
      assert.ok(left.length >= 1 || state === 'draining' || state === 'revoked', `round ${round}: ${state}`);
    }
  });

  it('offboarding the last administrator drains the machine, which then revokes itself; an idle one that is damaged ends at once', async () => {
    const guest = await plane.invite('guest');
    const working = (await pairThroughRoutes(plane, guest, { label: 'working' })).executor;
    const waiting = (await pairThroughRoutes(plane, guest, { label: 'waiting' })).executor;
    const damaged = (await pairThroughRoutes(plane, guest, { label: 'damaged' })).executor;
    await proveOnline(plane, working);
    await proveOnline(plane, damaged);
    await changeExecutor(plane.context, damaged, { type: 'executor.damaged', fault: 'ledger-damaged' });
    assert.equal((await plane.owner.post(`/api/page/people/${guest.person}/offboard`)).status, 200);
    assert.equal(await stateOf(working), 'draining');
    assert.equal(await stateOf(damaged), 'revoked');
    assert.notEqual(await stateOf(waiting), 'online');
    await changeExecutor(plane.context, working, { type: 'executor.drained' });
    assert.equal(await stateOf(working), 'revoked');
    assert.equal((await guest.get('/api/page/executors')).status, 401);
  });

  it('N-019 offboarding, emergency ending and team changes leave everybody else’s assignments as they were', async () => {
    const guest = await plane.invite('guest');
    const other = await plane.invite('other');
    const { executor } = await pairThroughRoutes(plane, other);
    const { executor: shared } = await pairThroughRoutes(plane, guest);
    await guest.put(`/api/page/executors/${shared}/people/${other.person}`, { role: 'admin' });
    const ofOthers = async () => (await assignments()).filter((row) => row.subject !== guest.person);
    const before = await ofOthers();
    await plane.owner.put(`/api/page/teams/${plane.account.team}/members/${guest.person}`, { role: null });
    assert.deepEqual(await ofOthers(), before);
    await plane.owner.post(`/api/page/people/${guest.person}/offboard`);
    assert.deepEqual(await ofOthers(), before);
    await plane.owner.post(`/api/page/executors/${executor}/end`);
    assert.deepEqual(await ofOthers(), before);
  });

  it('N-017 an owner ends a machine that others manage, and can do nothing else with it', async () => {
    const guest = await plane.invite('guest');
    const { executor } = await pairThroughRoutes(plane, guest, { label: 'secret desk' });
    await proveOnline(plane, executor);
    const base = `/api/page/executors/${executor}`;
    for (const [method, path, body] of [
      ['GET', base],
      ['GET', `${base}/descriptor`],
      ['GET', `${base}/agents`],
      ['GET', `${base}/sharing`],
      ['POST', `${base}/pause`],
      ['POST', `${base}/drain`],
      ['POST', `${base}/disconnect`],
      ['POST', `${base}/delete`],
      ['PUT', `${base}/people/${plane.owner.person}`, { role: 'admin' }],
      ['PUT', `${base}/shares/team/${plane.account.team}`],
    ] as const) {
      const answer = await plane.owner.request(method, path, method === 'GET' ? undefined : (body ?? {}));
      assert.equal(answer.body.code, 'EXECUTOR_ABSENT', `${method} ${path}`);
    }
    assert.equal((await guest.post(`${base}/end`)).body.code, 'NOT_OWNER');
    const admin = await plane.invite('admin', 'admin');
    assert.equal((await admin.post(`${base}/end`)).body.code, 'NOT_OWNER');
    assert.equal((await plane.owner.post(`${base}/end`)).status, 200);
    assert.equal(await stateOf(executor), 'revoked');
  });

  it('N-018 the emergency path shows a fixed list of fields and nothing of roster, sessions or content', async () => {
    const guest = await plane.invite('guest');
    await pairThroughRoutes(plane, guest);
    const { body, text } = await plane.owner.get('/api/page/emergency');
    assert.deepEqual(Object.keys(body.executors[0]).toSorted(), ['createdAt', 'executor', 'label', 'state', 'team']);
    assert.equal(text.includes(guest.person), false);
    const ended = await plane.owner.post(`/api/page/executors/${body.executors[0].executor}/end`);
    assert.deepEqual(ended.body, { done: true });
    assert.equal((await guest.get('/api/page/emergency')).body.code, 'NOT_OWNER');
  });
});
