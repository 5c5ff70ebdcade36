/* Runs, bindings and calls as tests of several subjects need them. */
import assert from 'node:assert/strict';
import type { OperationKey } from '../../helpers/protocol/operations.ts';
import { bind, resolveBundle } from '../../server/runs/bind.ts';
import { call } from '../../server/runs/call.ts';
import type { Call, Called } from '../../server/runs/call.ts';
import { findRun, makeRun } from '../../server/runs/store.ts';
import type { BindingRow, RunRow } from '../../server/runs/store.ts';
import type { ProjectId } from '../../helpers/protocol/ids.ts';
import { submitDescriptor } from '../../server/descriptors/submit.ts';
import { newId } from '../../server/new-id.ts';
import { machineDescriptor } from '../fakes/fake-machine.ts';
import { signDescriptor } from './control-plane.ts';
import type { ControlPlane, PairedMachine } from './control-plane.ts';

/** A run of the plane's agent with all that it may use bound. */
export interface OpenRun {
  readonly run: RunRow;
  readonly bindings: ReadonlyMap<string, BindingRow>;
  call(operation: OperationKey, args?: unknown, more?: Partial<Call>): Promise<Called>;
}

/** Makes a run without a binding. */
export async function bareRun({ work, by, agent, project }: ControlPlane): Promise<RunRow> {
  const context = { person: by.person, agent, project, conversation: 'talk', openedBy: 'agent', chosen: null } as const;
  return work.store.write((tx) => makeRun(work, tx, context));
}

/** Opens a run and binds what is available in it. */
export async function openRun(plane: ControlPlane): Promise<OpenRun> {
  const { work, agent } = plane;
  const made = await bareRun(plane);
  const { handles } = await resolveBundle(work, made);
  const presented = [...handles].map(([operation, handle]) => ({
    run: made.id,
    person: made.person,
    agent,
    operation,
    handle,
  }));
  const bindings = new Map((await bind(work, presented)).map((binding) => [binding.operation, binding]));
  const run = await findRun(work.store.read, made.id);
  assert.ok(run);
  return {
    run,
    bindings,
    call: (operation, args = {}, more = {}) => {
      const binding = bindings.get(operation);
      assert.ok(binding, `${operation} is bound`);
      return call(work, { run, binding, arguments: args, ...more });
    },
  };
}

/** A second project of the plane's person. */
export async function otherProject({ context, by }: ControlPlane): Promise<ProjectId> {
  const project = newId('prj');
  await context.store.write(async (tx) => {
    const { id: team } = await tx.selectFrom('teams').select('id').executeTakeFirstOrThrow();
    const { organisation, person } = by;
    await tx.insertInto('projects').values({ id: project, organisation, team, name: 'Other', createdAt: 0 }).execute();
    await tx.insertInto('projectMembers').values({ project, person, role: 'member' }).execute();
  });
  return project;
}

/** The owner's policy permits next to nothing any more: a revision arrives and waits for review. */
export async function narrow({ context }: ControlPlane, paired: PairedMachine): Promise<void> {
  const descriptor = machineDescriptor({ revision: 2, operations: ['file.stat'] });
  await submitDescriptor(context, paired.executor, signDescriptor({ ...paired, descriptor }));
}
