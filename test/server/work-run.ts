/* Runs, bindings, calls and commands as tests of several subjects need them. */
import assert from 'node:assert/strict';
import type { OperationKey } from '../../helpers/protocol/operations.ts';
import { bind, resolveBundle } from '../../server/runs/bind.ts';
import { call, start } from '../../server/runs/call.ts';
import type { Call, Called } from '../../server/runs/call.ts';
import { findRun, makeRun } from '../../server/runs/store.ts';
import type { BindingRow, RunRow } from '../../server/runs/store.ts';
import type { CommandId, ProjectId } from '../../helpers/protocol/ids.ts';
import { findCommand } from '../../server/commands/store.ts';
import type { CommandRow } from '../../server/commands/store.ts';
import { submitDescriptor } from '../../server/descriptors/submit.ts';
import { newId } from '../../server/new-id.ts';
import type { Delivered, FakeExecutor, FakeMachine, Play } from '../fakes/fake-executor.ts';
import { machineDescriptor } from '../fakes/fake-machine.ts';
import { signDescriptor } from './control-plane.ts';
import type { ControlPlane, PairedMachine } from './control-plane.ts';

/** A run of the plane's agent with all that it may use bound. */
export interface OpenRun {
  readonly run: RunRow;
  readonly bindings: ReadonlyMap<string, BindingRow>;
  /** Calls an operation and waits for its end. */
  call(operation: OperationKey, args?: unknown, more?: Partial<Call>): Promise<Called>;
  /** Makes a command and waits no longer than until it is stored. */
  start(operation: OperationKey, args?: unknown): Promise<CommandId>;
}

/** A play that succeeds, for `file.mkdir` of the path `d`. */
export const done: Play = { outcome: 'succeeded', result: { success: true, path: 'd' } };

/** Plays a command until somebody cancels it. */
export const untilCancelled = (delivered: Delivered): Promise<Play> =>
  new Promise((resolve) => {
    const end = (): void => resolve({ outcome: 'cancelled', result: { success: false, code: 'CANCELLED' } });
    delivered.cancelled.addEventListener('abort', end, { once: true });
  });

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
  const bound = (operation: OperationKey): BindingRow => {
    const binding = bindings.get(operation);
    assert.ok(binding, `${operation} is bound`);
    return binding;
  };
  return {
    run,
    bindings,
    call: (operation, args = {}, more = {}) => call(work, { run, binding: bound(operation), arguments: args, ...more }),
    start: (operation, args = {}) => start(work, { run, binding: bound(operation), arguments: args }),
  };
}

/** Brings a machine online that plays what it is given, and opens a run in which it is bound. */
export async function openRunOn(
  plane: ControlPlane,
  paired: PairedMachine,
  play: FakeMachine['play'] = () => done,
): Promise<{ readonly machine: FakeExecutor; readonly run: OpenRun }> {
  const machine = plane.machine(paired, play);
  await machine.online();
  return { machine, run: await openRun(plane) };
}

/** Has a machine that asks for nothing by itself ask for one command; nothing of it is reported yet. */
export async function deliver(
  machine: FakeExecutor,
  run: OpenRun,
): Promise<{ readonly delivered: Delivered; readonly called: Promise<Called>; readonly id: CommandId }> {
  const asked = machine.ask('work', { capacity: 1 });
  const called = run.call('file.mkdir', { path: 'd' });
  const [frame] = (await asked).commands;
  assert.ok(frame);
  const delivered = machine.receive(frame);
  return { delivered, called, id: delivered.envelope.command };
}

/** A command as the control plane has it now. */
export async function storedCommand({ context }: ControlPlane, id: CommandId): Promise<CommandRow> {
  const row = await findCommand(context.store.read, id);
  assert.ok(row);
  return row;
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
