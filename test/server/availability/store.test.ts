/*
 * One generated matrix: every combination of the six conditions for every way in which a person may stand to a machine. Each false
 * condition is made by really withdrawing it in the store.
 */
import assert from 'node:assert/strict';
import { sql } from 'kysely';
import type { AvailabilityReason } from '../../../helpers/protocol/errors.ts';
import type { AgentId, ExecutorId, ProjectId } from '../../../helpers/protocol/ids.ts';
import { operations } from '../../../helpers/protocol/operations.ts';
import { candidates, resolve } from '../../../server/availability/store.ts';
import type { Question } from '../../../server/availability/store.ts';
import { stepExecutor } from '../../../server/executors/lifecycle.ts';
import { newId } from '../../../server/new-id.ts';
import type { Writer } from '../../../server/store/store.ts';
import type { Scope } from '../../../server/store/tables.ts';
import { machineDescriptor } from '../../fakes/fake-machine.ts';
import { confirmQuickly, pairThroughRoutes, proveOnline, startGovernance, submit } from '../governance.ts';
import type { Governance, Page, PairingMachine } from '../governance.ts';

const OPERATION = 'file.read';

/** Ways in which a person may use a machine, each with what takes discovery away from them. */
interface Way {
  readonly name: string;
  readonly scope: Scope;
  readonly give?: (tx: Writer, scene: Scene) => Promise<unknown>;
  readonly hide: (tx: Writer, scene: Scene) => Promise<unknown>;
}

interface Scene {
  readonly plane: Governance;
  readonly person: Page;
  readonly executor: ExecutorId;
  readonly machine: PairingMachine;
  readonly agent: AgentId;
  readonly project: ProjectId;
  readonly question: Question;
  /** A run of this project is outside the scope; undefined for private machines. */
  readonly elsewhere: ProjectId | undefined;
}

const assign = (tx: Writer, { executor, person, plane }: Scene, role: 'use' | 'admin') =>
  tx
    .insertInto('assignments')
    .values({ executor, kind: 'person', subject: person.person, role, createdAt: 1, createdBy: plane.account.person })
    .execute();
const share = (tx: Writer, { executor, plane }: Scene, kind: 'project' | 'team') =>
  tx
    .insertInto('shares')
    .values({ executor, kind, subject: plane.account[kind], createdAt: 1, createdBy: plane.account.person })
    .execute();
const join = (tx: Writer, { person, plane }: Scene) =>
  tx
    .insertInto('projectMembers')
    .values({ project: plane.account.project, person: person.person, role: 'member' })
    .execute();
const unassign = (tx: Writer, { person }: Scene) =>
  tx.deleteFrom('assignments').where('subject', '=', person.person).execute();
const leave = (tx: Writer, { person }: Scene) =>
  tx.deleteFrom('projectMembers').where('person', '=', person.person).execute();
const unshare = (tx: Writer) => tx.deleteFrom('shares').execute();
const deactivate = (tx: Writer, { person }: Scene) =>
  tx.updateTable('people').set({ active: 0 }).where('id', '=', person.person).execute();

const ways: readonly Way[] = [
  {
    name: 'administers a private machine',
    scope: 'private',
    give: (tx, scene) => assign(tx, scene, 'admin'),
    hide: unassign,
  },
  {
    name: 'is assigned a private machine',
    scope: 'private',
    give: (tx, scene) => assign(tx, scene, 'use'),
    hide: unassign,
  },
  {
    name: 'is of the team that a private machine is shared with',
    scope: 'private',
    give: (tx, scene) => share(tx, scene, 'team'),
    hide: unshare,
  },
  {
    name: 'is of the project that a private machine is shared with',
    scope: 'private',
    give: async (tx, scene) => {
      await join(tx, scene);
      await share(tx, scene, 'project');
    },
    hide: unshare,
  },
  { name: 'is of the project of a machine', scope: 'project', give: join, hide: leave },
  {
    name: 'is assigned a machine of a project',
    scope: 'project',
    give: (tx, scene) => assign(tx, scene, 'use'),
    hide: unassign,
  },
  { name: 'is of the organisation of a machine', scope: 'organization', hide: deactivate },
];

/** The six conditions with what makes each false, and the reason that is then given. */
const conditions: readonly (readonly [AvailabilityReason, (tx: Writer, scene: Scene, way: Way) => Promise<unknown>])[] =
  [
    ['not_discoverable', (tx, scene, way) => way.hide(tx, scene)],
    [
      'operation_ungranted',
      (tx, { agent }) =>
        tx.deleteFrom('grants').where('agent', '=', agent).where('operation', '=', OPERATION).execute(),
    ],
    [
      'logical_tool_ungranted',
      (tx, { agent }) =>
        tx.deleteFrom('toolGrants').where('agent', '=', agent).where('operation', '=', OPERATION).execute(),
    ],
    [
      'scope_mismatch',
      async (tx, { agent }, way) =>
        way.scope === 'private' ? tx.deleteFrom('assignments').where('subject', '=', agent).execute() : undefined,
    ],
    ['offline', (tx, { plane, executor }) => stepExecutor(plane.context, tx, executor, { type: 'executor.silent' })],
    [
      'local_policy_denied',
      async (tx, { executor }) => {
        const document = JSON.stringify(
          machineDescriptor({
            revision: 2,
            operations: operations.map(({ key }) => key).filter((key) => key !== OPERATION),
          }),
        );
        await sql`insert into descriptors select executor, 2, digest, ${document}, "signedPayload", signature, stored, 'pending', 1, null, null
        from descriptors where executor = ${executor} and revision = 1`.execute(tx);
      },
    ],
  ];

const asked = (scene: Scene, isFalse: (reason: AvailabilityReason) => boolean): Question => {
  const project = isFalse('scope_mismatch') ? (scene.elsewhere ?? scene.project) : scene.project;
  return { ...scene.question, origin: { project } };
};

class RolledBack extends Error {}

describe('availability from the store', () => {
  let plane: Governance;

  before(async () => {
    plane = await startGovernance();
  });
  after(() => plane.stop());

  let people = 0;
  const makeScene = async (way: Way): Promise<Scene> => {
    people += 1;
    const { agent } = (await plane.owner.post('/api/page/agents', { name: 'assistant' })).body;
    const person = await plane.invite(`person${people}`);
    plane.clock.offsetMs += 601_000;
    const { project } = plane.account;
    const wish = { scope: way.scope, project: way.scope === 'project' ? project : null };
    const { executor, machine } = await pairThroughRoutes(plane, plane.owner, wish);
    await proveOnline(plane, executor);
    await confirmQuickly(plane, executor);
    await plane.owner.put(`/api/page/executors/${executor}/agents/${agent}`, { access: 'on' });
    const elsewhere = way.scope === 'private' ? undefined : await otherProject(way.scope);
    const question = { person: person.person, agent, operation: OPERATION, origin: { project }, executor };
    const scene = { plane, person, executor, machine, agent, project, question, elsewhere };
    await plane.context.store.write(async (tx) => way.give?.(tx, scene));
    return scene;
  };

  /** A project outside the scope: of the same organisation, or, where that does not matter, of another one. */
  const otherProject = async (scope: Scope): Promise<ProjectId> => {
    const id = newId('prj');
    await plane.context.store.write(async (tx) => {
      const other = scope === 'organization';
      const organisation = other ? newId('org') : plane.account.organisation;
      const team = other ? newId('team') : plane.account.team;
      if (other) {
        await tx.insertInto('organisations').values({ id: organisation, name: 'Other', createdAt: 1 }).execute();
        await tx.insertInto('teams').values({ id: team, organisation, name: 'Other', createdAt: 1 }).execute();
      }
      await tx.insertInto('projects').values({ id, organisation, team, name: 'Other', createdAt: 1 }).execute();
    });
    return id;
  };

  for (const way of ways) {
    it(`N-090 N-091 N-092 N-093 N-095 all 64 combinations are the conjunction, each false one alone gives its reason, for who ${way.name}`, async () => {
      const scene = await makeScene(way);
      for (let bits = 0; bits < 64; bits += 1) {
        const withdrawn = conditions.filter((_, index) => (bits & (1 << index)) !== 0);
        const first = withdrawn[0]?.[0];
        await assert.rejects(
          plane.context.store.write(async (tx) => {
            for (const [, withdraw] of withdrawn) await withdraw(tx, scene, way);
            const question = asked(scene, (reason) => withdrawn.some(([name]) => name === reason));
            const answer = await resolve(plane.context, tx, question);
            const expected = first === undefined ? { available: true } : { available: false, reason: first };
            assert.deepEqual(answer, expected, `${way.name}: ${withdrawn.map(([name]) => name).join(', ')}`);
            throw new RolledBack();
          }),
          RolledBack,
        );
      }
    });

    it(`every caller gets the same answer, available or not, for who ${way.name}`, async () => {
      for (const [reason, withdraw] of [undefined, ...conditions].map(
        (row) => row ?? ([undefined, undefined] as const),
      )) {
        const scene = await makeScene(way);
        await plane.context.store.write(async (tx) => withdraw?.(tx, scene, way));
        const question = asked(scene, (name) => name === reason);
        const expected = reason === undefined ? { available: true } : { available: false, reason };
        assert.deepEqual(await resolve(plane.context, plane.context.store.read, question), expected, 'lister');
        const bound = await plane.context.store.write((tx) => resolve(plane.context, tx, question));
        assert.deepEqual(bound, expected, 'binder and dispatcher');
        const { executors } = await candidates(plane.context, plane.context.store.read, question);
        assert.equal([...executors].includes(scene.executor), reason === undefined, 'candidate maker');
        const path = `/api/page/executors/${scene.executor}/availability?agent=${scene.agent}&project=${question.origin.project}`;
        const page = await scene.person.get(path);
        if (reason === 'not_discoverable') assert.ok([401, 404].includes(page.status));
        else {
          const shown = page.body.operations.find((row: { operation: string }) => row.operation === OPERATION);
          assert.deepEqual(
            shown,
            { operation: OPERATION, available: reason === undefined, reason: reason ?? null },
            'page',
          );
        }
      }
    });
  }

  it('N-094 a machine that is offline is offline; one whose descriptor nobody confirmed, or whose root changed since, is unreviewed', async () => {
    const way = ways[6] as Way;
    const scene = await makeScene(way);
    await plane.context.store.write((tx) =>
      stepExecutor(plane.context, tx, scene.executor, { type: 'executor.silent' }),
    );
    const silent = await resolve(plane.context, plane.context.store.read, scene.question);
    assert.deepEqual(silent, { available: false, reason: 'offline' });
    await proveOnline(plane, scene.executor);
    await submit(plane, scene.executor, scene.machine, machineDescriptor({ revision: 2, rootName: 'elsewhere' }));
    assert.deepEqual(await resolve(plane.context, plane.context.store.read, scene.question), {
      available: false,
      reason: 'descriptor_unreviewed',
    });
    await plane.context.store.write((tx) =>
      tx.deleteFrom('descriptors').where('executor', '=', scene.executor).execute(),
    );
    assert.deepEqual(await resolve(plane.context, plane.context.store.read, scene.question), {
      available: false,
      reason: 'descriptor_unreviewed',
    });
  });

  describe('N-096 a refusal', () => {
    it('a fact that cannot be read is false and names its condition', async () => {
      const scene = await makeScene(ways[6] as Way);
      for (const [table, reason] of [
        ['people', 'not_discoverable'],
        ['teamMembers', 'not_discoverable'],
        ['projectMembers', 'not_discoverable'],
        ['executors', 'not_discoverable'],
        ['assignments', 'not_discoverable'],
        ['shares', 'not_discoverable'],
        ['grants', 'operation_ungranted'],
        ['toolGrants', 'logical_tool_ungranted'],
        ['agents', 'logical_tool_ungranted'],
        ['projects', 'scope_mismatch'],
        ['descriptors', 'descriptor_unreviewed'],
      ] as const) {
        await plane.context.store.write((tx) => sql.raw(`alter table "${table}" rename to "gone"`).execute(tx));
        const answer = await resolve(plane.context, plane.context.store.read, scene.question);
        await plane.context.store.write((tx) => sql.raw(`alter table "gone" rename to "${table}"`).execute(tx));
        assert.deepEqual(answer, { available: false, reason }, table);
      }
      assert.deepEqual(await resolve(plane.context, plane.context.store.read, scene.question), { available: true });
    });

    it('what may not be discovered answers every route with the same bytes as what does not exist', async () => {
      const scene = await makeScene(ways[0] as Way);
      const stranger = await plane.invite('stranger');
      const answers = async (executor: string) => {
        const base = `/api/page/executors/${executor}`;
        const to = { revision: 1, digest: '0'.repeat(64) };
        return [
          await stranger.get(base),
          await stranger.get(`${base}/descriptor`),
          await stranger.get(`${base}/agents`),
          await stranger.get(`${base}/sharing`),
          await stranger.get(`${base}/availability?agent=${scene.agent}&project=${scene.project}`),
          await stranger.post(`${base}/pause`),
          await stranger.post(`${base}/disconnect`),
          await stranger.post(`${base}/delete`),
          await stranger.post(`${base}/descriptor`, { ...to, answer: 'refuse' }),
          await stranger.post(`${base}/descriptor`, { ...to, answer: 'confirm', password: 'whatever it is' }),
          await stranger.put(`${base}/agents/${scene.agent}`, { access: 'on' }),
          await stranger.put(`${base}/people/${stranger.person}`, { role: 'admin' }),
          await stranger.put(`${base}/shares/team/${plane.account.team}`),
        ].map(({ status, text }) => ({ status, text }));
      };
      const hidden = await answers(scene.executor);
      assert.deepEqual(hidden, await answers(newId('exr')));
      assert.ok(hidden.every(({ status }) => status === 404));
    });
  });

  it('N-186 a grant on one machine authorises nothing on its twin, a capability update widens nothing, and an agent reaches no operation of persons', async () => {
    const first = await makeScene(ways[6] as Way);
    const { executor } = await pairThroughRoutes(plane, plane.owner, { scope: 'organization' });
    await proveOnline(plane, executor);
    await confirmQuickly(plane, executor);
    const { store } = plane.context;
    assert.deepEqual(await resolve(plane.context, store.read, { ...first.question, executor }), {
      available: false,
      reason: 'operation_ungranted',
    });
    for (const operation of ['workspace.promote', 'review.difference', 'command.run', 'browser.open', 'nothing.such']) {
      const answer = await resolve(plane.context, store.read, { ...first.question, operation });
      assert.deepEqual(answer, { available: false, reason: 'operation_ungranted' }, operation);
    }
    const narrow = machineDescriptor({ revision: 2, operations: ['file.list', 'file.stat'] });
    await submit(plane, first.executor, first.machine, narrow);
    await confirmQuickly(plane, first.executor);
    await submit(plane, first.executor, first.machine, machineDescriptor({ revision: 3 }));
    await confirmQuickly(plane, first.executor);
    await proveOnline(plane, first.executor);
    const updated = await resolve(plane.context, store.read, first.question);
    assert.deepEqual(updated, { available: false, reason: 'operation_ungranted' }, 'it came back with an update');
    const alone = { ...first.question, agent: undefined };
    assert.deepEqual(await resolve(plane.context, store.read, { ...alone, operation: 'workspace.promote' }), {
      available: true,
    });
    assert.deepEqual(await resolve(plane.context, store.read, alone), {
      available: false,
      reason: 'operation_ungranted',
    });
  });

  it('a paused machine, one that drains and one that was silent for a minute take no work', async () => {
    const scene = await makeScene(ways[6] as Way);
    const answer = () => resolve(plane.context, plane.context.store.read, scene.question);
    await plane.owner.post(`/api/page/executors/${scene.executor}/pause`);
    assert.deepEqual(await answer(), { available: false, reason: 'offline' });
    await plane.owner.post(`/api/page/executors/${scene.executor}/resume`);
    await proveOnline(plane, scene.executor);
    assert.deepEqual(await answer(), { available: true });
    plane.clock.offsetMs += 60_500;
    assert.deepEqual(await answer(), { available: false, reason: 'offline' });
    await proveOnline(plane, scene.executor);
    await plane.owner.post(`/api/page/executors/${scene.executor}/drain`);
    assert.deepEqual(await answer(), { available: false, reason: 'offline' });
  });
});
