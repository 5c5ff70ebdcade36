/*
 * Who may use and who may administer a machine of each scope: every way in which a person stands to it, on the resolver and on the
 * routes that manage it.
 */
import assert from 'node:assert/strict';
import type { AgentId, ExecutorId, ProjectId } from '../../../helpers/protocol/ids.ts';
import { resolve } from '../../../server/availability/store.ts';
import { newId } from '../../../server/new-id.ts';
import { pairingCalls } from '../../../server/protocol.ts';
import type { Scope } from '../../../server/store/tables.ts';
import { confirmQuickly, pairThroughRoutes, PairingMachine, proveOnline, startGovernance } from '../governance.ts';
import type { Governance, Page } from '../governance.ts';

interface Expected {
  /** Uses it from a run of the machine's project with the named agent. */
  readonly uses: boolean;
  readonly administers: boolean;
}

const nobody: Expected = { uses: false, administers: false };
const user: Expected = { uses: true, administers: false };
const both: Expected = { uses: true, administers: true };

/** For each scope: each kind of person and what follows. `owner` owns the organisation and is not assigned. */
const table: Readonly<Record<Scope, Readonly<Record<string, Expected>>>> = {
  private: {
    'assigned admin': both,
    'assigned use': user,
    'of the shared project': user,
    'of the project': nobody,
    'owner of the project': nobody,
    'admin of the organisation': nobody,
    'owner of the organisation': nobody,
    'member of the organisation': nobody,
    'former member': nobody,
  },
  project: {
    'assigned use': user,
    'of the shared project': nobody,
    'of the project': user,
    'owner of the project': both,
    'admin of the organisation': both,
    'owner of the organisation': both,
    'member of the organisation': nobody,
    'former member': nobody,
  },
  organization: {
    'assigned use': user,
    'of the project': user,
    'owner of the project': user,
    'admin of the organisation': both,
    'owner of the organisation': both,
    'member of the organisation': user,
    'former member': nobody,
  },
};

describe('scopes', () => {
  let plane: Governance;
  const people = new Map<string, Page>();
  let agent: AgentId;
  let otherAgent: AgentId;
  let shared: ProjectId;

  before(async () => {
    plane = await startGovernance();
    const { team, project } = plane.account;
    shared = (await plane.owner.post('/api/page/projects', { team, name: 'Shared' })).body.project;
    await plane.owner.put(`/api/page/projects/${shared}/members/${plane.owner.person}`, { role: null });
    agent = (await plane.owner.post('/api/page/agents', { name: 'named' })).body.agent;
    otherAgent = (await plane.owner.post('/api/page/agents', { name: 'other' })).body.agent;
    const join = async (name: string, to: ProjectId, role: string) => {
      const page = await plane.invite(name.replaceAll(' ', '-'));
      await plane.owner.put(`/api/page/projects/${to}/members/${page.person}`, { role });
      people.set(name, page);
    };
    people.set('owner of the organisation', plane.owner);
    people.set('admin of the organisation', await plane.invite('administrator', 'admin'));
    for (const name of ['assigned admin', 'assigned use', 'member of the organisation', 'former member']) {
      people.set(name, await plane.invite(name.replaceAll(' ', '-')));
    }
    await join('of the project', project, 'member');
    await join('owner of the project', project, 'owner');
    await join('of the shared project', shared, 'member');
    await plane.context.store.write((tx) =>
      tx.updateTable('people').set({ active: 0 }).where('login', '=', 'former-member').execute(),
    );
  });
  after(() => plane.stop());

  /** A machine of the scope that somebody outside the table made, with its assignments, shares and grants. */
  const makeMachine = async (scope: Scope): Promise<ExecutorId> => {
    plane.clock.offsetMs += 601_000;
    const { project } = plane.account;
    const maker = scope === 'private' ? await plane.invite(`maker${plane.clock.offsetMs}`) : plane.owner;
    const wish = { scope, project: scope === 'project' ? project : null };
    const { executor } = await pairThroughRoutes(plane, maker, wish);
    await plane.context.store.write(async (tx) => {
      const made = { executor, createdAt: 1, createdBy: plane.account.person };
      const subjects = { 'assigned use': 'use', ...(scope === 'private' ? { 'assigned admin': 'admin' } : {}) };
      for (const [name, role] of Object.entries(subjects)) {
        const subject = people.get(name)?.person ?? newId('per');
        await tx
          .insertInto('assignments')
          .values({ ...made, kind: 'person', subject, role: role === 'admin' ? 'admin' : 'use' })
          .execute();
      }
      await tx
        .insertInto('assignments')
        .values({ ...made, kind: 'agent', subject: agent, role: 'use' })
        .execute();
      await tx
        .insertInto('shares')
        .values({ ...made, kind: 'project', subject: shared })
        .execute();
      for (const each of [agent, otherAgent]) {
        await tx
          .insertInto('grants')
          .values({ ...made, agent: each, operation: 'file.read' })
          .execute();
      }
      await tx.updateTable('descriptors').set({ state: 'confirmed' }).where('executor', '=', executor).execute();
    });
    await proveOnline(plane, executor);
    return executor;
  };

  const uses = async (executor: ExecutorId, name: string, by: AgentId, project: ProjectId): Promise<boolean> => {
    const person = people.get(name)?.person ?? newId('per');
    const question = { executor, person, agent: by, operation: 'file.read', origin: { project } };
    return (await resolve(plane.context, plane.context.store.read, question)).available;
  };

  const expectation = {
    private: { otherAgent: false, otherProject: false },
    project: { otherAgent: true, otherProject: false },
    organization: { otherAgent: true, otherProject: true },
  } as const;

  const holds = async (scope: Scope): Promise<void> => {
    const executor = await makeMachine(scope);
    const base = `/api/page/executors/${executor}`;
    const { project } = plane.account;
    for (const [name, expected] of Object.entries(table[scope])) {
      const page = people.get(name) as Page;
      const own = name === 'of the shared project' ? shared : project;
      const says = `${name} of ${scope}`;
      assert.equal(await uses(executor, name, agent, own), expected.uses, `${says} uses`);
      const byOther = await uses(executor, name, otherAgent, own);
      assert.equal(byOther, expected.uses && expectation[scope].otherAgent, `${says} with another agent`);
      if (name !== 'of the shared project' && !name.startsWith('assigned')) {
        const elsewhere = await uses(executor, name, agent, shared);
        assert.equal(elsewhere, expected.uses && expectation[scope].otherProject, `${says} from another project`);
      }
      for (const [method, path, body] of [
        ['GET', `${base}/sharing`, undefined],
        ['GET', `${base}/agents`, undefined],
        ['PUT', `${base}/agents/${agent}/operations/file.stat`, {}],
        ['DELETE', `${base}/agents/${agent}/operations/file.stat`, undefined],
        ['PUT', `${base}/shares/team/${plane.account.team}`, {}],
        ['DELETE', `${base}/shares/team/${plane.account.team}`, undefined],
        ['POST', `${base}/pause`, {}],
        ['POST', `${base}/resume`, {}],
      ] as const) {
        const { status } = await page.request(method, path, body);
        assert.equal(status === 200, expected.administers, `${says}: ${method} ${path}: ${status}`);
      }
      await proveOnline(plane, executor);
    }
  };

  it('N-009 a private machine is used by assignees and whom a share covers, with the named agent, and administered by assigned admins', () =>
    holds('private'));

  it('N-010 a project’s machine is used by who is entitled to it, from its own runs only, and administered by its and the organisation’s administrators', () =>
    holds('project'));

  it('N-011 an organisation’s machine is used by its members and administered by its owner and admins', () =>
    holds('organization'));

  it('N-012 a machine is made with exactly one scope: none, two and an unknown one are refused', async () => {
    const { team, project } = plane.account;
    for (const scope of [undefined, null, '', 'everybody', ['private', 'project'], 'private,project']) {
      const wish = { label: 'x', team, project: null, ...(scope === undefined ? {} : { scope }) };
      assert.equal((await plane.owner.post('/api/page/enrolments', wish)).body.code, 'REQUEST_INVALID', String(scope));
    }
    const doubled = await plane.owner.post('/api/page/enrolments', {
      label: 'x',
      team,
      project,
      scope: 'organization',
    });
    assert.equal(doubled.body.code, 'SCOPE_INVALID', 'a project beside another scope');
    await assert.rejects(
      plane.context.store.write((tx) =>
        tx
          .updateTable('executors')
          .set({ scope: 'everybody' as Scope })
          .execute(),
      ),
      /CHECK/,
    );
    for (const scope of ['private', 'organization'] as const) {
      assert.equal(
        (await plane.owner.post('/api/page/enrolments', { label: 'x', team, project: null, scope })).status,
        200,
      );
    }
    const ofProject = { label: 'x', team, project, scope: 'project' };
    assert.equal((await plane.owner.post('/api/page/enrolments', ofProject)).status, 200);
  });

  it('N-185 leave to use a machine is four things, and each missing in turn is enough to refuse', async () => {
    const executor = await makeMachine('organization');
    await confirmQuickly(plane, executor).catch(() => undefined);
    const ask = () => uses(executor, 'member of the organisation', agent, plane.account.project);
    assert.equal(await ask(), true);
    const { store } = plane.context;
    const missing: [string, (tx: Parameters<Parameters<typeof store.write>[0]>[0]) => Promise<unknown>][] = [
      [
        'the grant on this machine',
        (tx) => tx.deleteFrom('grants').where('executor', '=', executor).where('agent', '=', agent).execute(),
      ],
      ['the ordinary tool policy', (tx) => tx.deleteFrom('toolGrants').where('agent', '=', agent).execute()],
      ['the local policy', (tx) => tx.deleteFrom('descriptors').where('executor', '=', executor).execute()],
    ];
    for (const [what, withdraw] of missing) {
      await assert.rejects(
        store.write(async (tx) => {
          await withdraw(tx);
          const question = {
            executor,
            person: people.get('member of the organisation')?.person ?? newId('per'),
            agent,
            operation: 'file.read',
            origin: { project: plane.account.project },
          };
          assert.equal((await resolve(plane.context, tx, question)).available, false, what);
          throw new Error('taken back');
        }),
        /taken back/,
      );
    }
    const outside = {
      executor,
      person: plane.account.person,
      agent,
      operation: 'file.read',
      origin: { project: newId('prj') },
    };
    assert.equal((await resolve(plane.context, store.read, outside)).available, false, 'the scope');
    assert.equal(await ask(), true);
  });

  it('N-064 of a machine’s key the public half and its fingerprint are kept, and nothing of the private half', async () => {
    const machine = new PairingMachine(plane.origin, plane.clock);
    plane.clock.offsetMs += 601_000;
    await pairThroughRoutes(plane, plane.owner, { machine });
    const { readFile } = await import('node:fs/promises');
    const seed = machine.key.privateKey.export({ format: 'der', type: 'pkcs8' }).subarray(-32);
    const { body } = await plane.owner.get(`/api/page/executors`);
    const shown = body.executors.map((one: { fingerprint: string }) => one.fingerprint);
    assert.ok(shown.includes(machine.fingerprint));
    let found = false;
    for (const file of ['store.db', 'store.db-wal']) {
      const bytes = await readFile(`${plane.folder}/${file}`);
      assert.equal(bytes.includes(seed), false, file);
      found ||= bytes.includes(machine.key.publicKey);
    }
    assert.ok(found, 'the public half is kept');
    for (const { body: shape } of Object.values(pairingCalls)) {
      assert.equal(/private|secret|seed/i.test(Object.keys(shape.shape).join()), false);
    }
  });
});
