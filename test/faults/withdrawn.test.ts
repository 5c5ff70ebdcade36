/*
 * What a person takes back between two steps of a command, or cancels, on a real machine under a real control plane: the step that
 * has not begun does not begin, and what is said of the one that had is true.
 */
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { defaultPolicy } from '../../daemon/config.ts';
import { writePolicy } from '../../daemon/cli/set-up.ts';
import type { Agent } from '../../daemon/demo/agent.ts';
import { until } from '../../daemon/demo/children.ts';
import { confirmDescriptor } from '../../daemon/demo/settle.ts';
import { inLedger } from './records.ts';
import { append, COUNTER, isDrafted, phase, traced } from './steps.ts';
import type { UnderWay } from './steps.ts';
import { PASSWORD, World } from './world.ts';

const STEP_MS = 45_000;

/** Commands of one run, each between two other steps of its way: lease, acceptance, start, result. */
interface Held {
  readonly started: UnderWay;
  readonly accepted: UnderWay;
}

describe('what a person takes back', function () {
  this.timeout(180_000);
  let world: World;

  before(async () => {
    world = await World.begin({ prepare: (root) => fs.writeFileSync(path.join(root, COUNTER), '') });
  });
  afterEach(() => world.thawAll());
  after(() => world.end());

  const base = () => `/api/page/executors/${world.executorId}`;
  const access = (to: 'on' | 'off') => world.person.put(`${base()}/agents/${world.access.agent}`, { access: to });
  const outcomeOf = ({ command }: UnderWay) => {
    const stored = world.records.command(command);
    return stored?.outcome ?? stored?.state;
  };
  /** Waits until both sides are done with a command, and holds what they say against what happened. */
  const settle = async (call: UnderWay): Promise<string> => {
    const outcome = await until('its outcome', STEP_MS, () => {
      return world.records.command(call.command)?.open === 0 ? outcomeOf(call) : undefined;
    });
    const happened = isDrafted(world, call.line);
    if (outcome === 'succeeded') assert.ok(happened, 'a success without its effect');
    else if (outcome !== 'unknown') assert.ok(!happened, `an effect that is called ${outcome}`);
    return outcome;
  };

  /** One command that began and one that waits for it, in the agent's run. */
  const hold = async (agent: Agent = world.agent): Promise<Held> => {
    await world.freeze('workspace');
    const started = await append(world, agent);
    await phase(world, started, 'started');
    const accepted = await append(world, agent);
    await phase(world, accepted, 'accepted');
    return { started, accepted };
  };
  const hasStarted = ({ command }: UnderWay): boolean =>
    world.records.receiptTypes(command).includes('machine.started') ||
    inLedger(world.places.stateDir, command)?.phase === 'started';

  describe('N-506 a cancel', () => {
    const cancel = ({ command }: UnderWay) => world.person.post(`/api/page/commands/${command}/cancel`);

    it('that overtakes its command prevents the start; of one that runs the outcome is the true one', async () => {
      const { started, accepted } = await hold();
      await cancel(accepted);
      assert.equal(await settle(accepted), 'cancelled');
      assert.ok(!hasStarted(accepted));
      await cancel(started);
      world.thaw('workspace');
      assert.ok(['succeeded', 'cancelled'].includes(await settle(started)));
    });

    it('that comes after the end changes nothing', async () => {
      const call = await append(world, world.agent);
      await phase(world, call, 'acknowledged');
      await cancel(call).catch(() => undefined);
      assert.equal(await settle(call), 'succeeded');
    });

    it('in reverse order: the later of two commands is cancelled first, and only the earlier happens', async () => {
      const { started, accepted } = await hold();
      await cancel(accepted);
      world.thaw('workspace');
      assert.equal(await settle(started), 'succeeded');
      assert.equal(await settle(accepted), 'cancelled');
    });

    it('of one whose machine is gone before it can say is unknown', async () => {
      const { started } = await hold();
      await world.freeze('daemon');
      await cancel(started);
      await world.kill('daemon');
      await world.recover();
      assert.equal(await settle(started), 'unknown');
    });

    it('is what the end of its run is to every command of it', async () => {
      const agent = await world.anotherAgent();
      await until('a binding', STEP_MS, async () => (await agent.tools()).length > 0);
      const { started, accepted } = await hold(agent);
      await world.person.post(`/api/page/runs/${world.records.runOf(accepted.command)}/stop`);
      assert.equal(await settle(accepted), 'cancelled');
      assert.ok(!hasStarted(accepted));
      world.thaw('workspace');
      assert.ok(['succeeded', 'cancelled'].includes(await settle(started)));
      await agent.disconnect();
    });
  });

  interface Change {
    readonly make: () => Promise<unknown>;
    readonly undo: () => Promise<unknown>;
  }
  const changes: Readonly<Record<string, Change>> = {
    'the permission': { make: () => access('off'), undo: () => access('on').then(() => world.settled()) },
    'the policy of the machine': {
      make: async () => {
        const policy = defaultPolicy();
        writePolicy(world.places, { ...policy, operations: { ...policy.operations, deny: ['file.append'] } });
        await until('the policy to be read', STEP_MS, async () => (await world.status()).policy.state !== 'in-force');
      },
      undo: async () => {
        const { stated } = (await world.status()).revision;
        writePolicy(world.places, defaultPolicy());
        await until('the policy to be read', STEP_MS, async () => (await world.status()).revision.stated > stated);
        await world.online();
        await confirmDescriptor(world.person, world.places, world.executorId, PASSWORD);
        await world.settled();
      },
    },
    'the machine itself': { make: () => world.person.post(`${base()}/disconnect`), undo: async () => undefined },
  };

  describe('N-103 between any two steps', () => {
    /** How often the machine has found its control plane silent: it starts nothing then. */
    const unheard = async (): Promise<number> => (await traced(world)).match(/unheard/g)?.length ?? 0;

    for (const [what, { make, undo }] of Object.entries(changes)) {
      it(`${what} is withdrawn: what has not begun does not begin, and what had is told as it truly was`, async () => {
        const { started, accepted } = await hold();
        // The question that is held open takes the first; the second waits for one that never comes.
        await world.freeze('link');
        const leased = await append(world, world.agent);
        await until('the lease', STEP_MS, () => world.records.command(leased.command)?.state === 'leased');
        const queued = await append(world, world.agent);
        assert.equal(world.records.command(queued.command)?.state, 'queued');
        const missed = await unheard();
        await make();
        await until('the machine to miss its control plane', STEP_MS, async () => (await unheard()) > missed);
        world.thaw('link');
        world.thaw('workspace');
        for (const call of [accepted, leased, queued]) assert.notEqual(await settle(call), 'succeeded', what);
        await settle(started);
        for (const call of [accepted, leased, queued]) {
          assert.ok(!hasStarted(call) && !isDrafted(world, call.line), `${what}: no start and no effect`);
        }
        const bound = await world.agent.call('file_append', { path: COUNTER, content: 'late' }).catch(() => undefined);
        assert.notEqual(bound?.failed, false, `${what}: between binding and call`);
        const next = await world.anotherAgent();
        const tools = await next.tools();
        if (what !== 'the policy of the machine') assert.deepEqual(tools, [], `${what}: before binding`);
        else assert.ok(!tools.includes('file_append'), `${what}: before binding`);
        await next.disconnect();
        await undo();
      });
    }
  });
});
