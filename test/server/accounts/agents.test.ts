import assert from 'node:assert/strict';
import { agentOfToken } from '../../../server/accounts/agents.ts';
import { addressSubject } from '../../../server/accounts/limits.ts';
import { workspaceBundle } from '../../../helpers/protocol/operations.ts';
import { newId } from '../../../server/new-id.ts';
import { startGovernance } from '../governance.ts';
import type { Governance, Page } from '../governance.ts';

describe('agents', () => {
  let plane: Governance;
  beforeEach(async () => {
    plane = await startGovernance();
  });
  afterEach(() => plane.stop());

  const makeToken = async (page: Page, mayOpenRuns = false) => {
    const { agent } = (await page.post('/api/page/agents', { name: 'helper' })).body;
    const wish = { project: plane.account.project, mayOpenRuns };
    const issued = await page.post(`/api/page/agents/${agent}/tokens`, wish);
    return { agent, ...issued.body };
  };
  const whose = (token: string) => agentOfToken(plane.context.store.read, token);

  it('a token names person, agent and project and is shown once', async () => {
    const { agent, id, token, endpoint } = await makeToken(plane.owner, true);
    const { person, project } = plane.account;
    assert.deepEqual(await whose(token), { person, agent, project, mayOpenRuns: true });
    assert.equal(endpoint, 'http://127.0.0.1:7420/mcp');
    const listed = await plane.owner.get('/api/page/agents');
    assert.equal(listed.text.includes(token), false);
    assert.equal(listed.body.agents[0].tokens[0].id, id);
    assert.deepEqual(listed.body.agents[0].tools.toSorted(), [...workspaceBundle].toSorted());
  });

  it('an ended token, an ended agent, an unknown one and a person without the project are nobody', async () => {
    assert.equal(await whose('nessie_guess'), undefined);
    assert.equal(await whose('x'.repeat(10_000)), undefined);
    const first = await makeToken(plane.owner);
    await plane.owner.delete(`/api/page/agents/${first.agent}/tokens/${first.id}`);
    assert.equal(await whose(first.token), undefined);
    assert.equal(
      (await plane.owner.delete(`/api/page/agents/${first.agent}/tokens/${first.id}`)).body.code,
      'TOKEN_ABSENT',
    );
    const second = await makeToken(plane.owner);
    await plane.owner.post(`/api/page/agents/${second.agent}/end`);
    assert.equal(await whose(second.token), undefined);
    const guest = await plane.invite('guest');
    const members = `/api/page/projects/${plane.account.project}/members/${guest.person}`;
    await plane.owner.put(members, { role: 'member' });
    const third = await makeToken(guest);
    assert.notEqual(await whose(third.token), undefined);
    await plane.owner.put(members, { role: null });
    assert.equal(await whose(third.token), undefined);
  });

  it('nobody looks after another member’s agent, and a token is for a project of one’s own', async () => {
    const guest = await plane.invite('guest');
    const { agent, id } = await makeToken(plane.owner);
    const wish = { project: plane.account.project };
    assert.equal((await guest.post(`/api/page/agents/${agent}/tokens`, wish)).body.code, 'AGENT_ABSENT');
    assert.equal((await guest.delete(`/api/page/agents/${agent}/tokens/${id}`)).body.code, 'AGENT_ABSENT');
    assert.equal((await guest.put(`/api/page/agents/${agent}/tools`, { operations: [] })).body.code, 'AGENT_ABSENT');
    assert.equal((await guest.post(`/api/page/agents/${agent}/end`)).body.code, 'AGENT_ABSENT');
    assert.deepEqual((await guest.get('/api/page/agents')).body.agents, []);
    const own = (await guest.post('/api/page/agents', { name: 'own' })).body.agent;
    assert.equal((await guest.post(`/api/page/agents/${own}/tokens`, wish)).body.code, 'PROJECT_ABSENT');
    assert.equal(
      (await guest.post(`/api/page/agents/${own}/tokens`, { project: newId('prj') })).body.code,
      'PROJECT_ABSENT',
    );
  });

  it('tool grants name operations that agents may call and no other', async () => {
    const { agent } = await makeToken(plane.owner);
    const set = (operations: string[]) => plane.owner.put(`/api/page/agents/${agent}/tools`, { operations });
    for (const key of ['workspace.promote', 'command.run', 'coding.attach', 'nothing.such']) {
      assert.equal((await set([key])).body.code, 'OPERATION_UNKNOWN', key);
    }
    await set(['file.read', 'file.read']);
    assert.deepEqual((await plane.owner.get('/api/page/agents')).body.agents[0].tools, ['file.read']);
  });

  it('members see and change only what their role permits', async () => {
    const guest = await plane.invite('guest');
    const { team, project } = plane.account;
    for (const [method, path, body] of [
      ['POST', '/api/page/people', { login: 'x', name: 'x', team }],
      ['POST', `/api/page/people/${plane.owner.person}/offboard`, {}],
      ['POST', `/api/page/people/${plane.owner.person}/link`, {}],
      ['POST', '/api/page/teams', { name: 'x' }],
      ['POST', '/api/page/projects', { name: 'x', team }],
      ['PUT', `/api/page/teams/${team}/members/${guest.person}`, { role: 'admin' }],
      ['PUT', `/api/page/projects/${project}/members/${guest.person}`, { role: 'owner' }],
    ] as const) {
      assert.equal((await guest.request(method, path, body)).body.code, 'NOT_ADMINISTRATOR', path);
    }
    const admin = await plane.invite('admin', 'admin');
    const owner = { login: 'y', name: 'y', role: 'owner', team };
    assert.equal((await admin.post('/api/page/people', owner)).body.code, 'OWNER_REQUIRED');
    assert.equal((await admin.post(`/api/page/people/${guest.person}/link`)).body.code, 'PERSON_ENTERED');
    assert.equal(
      (await admin.post('/api/page/people', { ...owner, role: 'member', login: 'guest' })).body.code,
      'LOGIN_TAKEN',
    );
  });

  it('one subscriber’s IPv6 addresses count as one', () => {
    assert.equal(addressSubject('2001:db8:1:2:3:4:5:6'), addressSubject('2001:db8:1:2::9'));
    assert.notEqual(addressSubject('2001:db8:1:2::9'), addressSubject('2001:db8:1:3::9'));
    assert.equal(addressSubject('192.0.2.7'), '192.0.2.7');
  });
});
