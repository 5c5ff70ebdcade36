/*
 * A scenario: a small story in a file that somebody can read, told in a simulated world. What happens is written down with its time; what
 * must have come of it stands at the end. Nothing else happens, and no chance but that of the seed in how long things take.
 */
import { stateName } from '../../../server/commands/rules.ts';
import type { Digester } from '../redact.ts';
import type { Computer } from './computer.ts';
import type { ControlPlane } from './control-plane.ts';
import { administer, approve, call, cancel, decide, endRun, grant, prepare, review } from './decisions.ts';
import { copyOf } from './disk.ts';
import { agentOperations, PROMOTE } from './facts.ts';
import type { Rules } from './rules.ts';
import type { Hear } from './tracer.ts';
import type { Violation } from './watch.ts';
import { World } from './world.ts';

/** What happens at one time: `do` says what, the other fields to what. */
export interface ScenarioStep {
  /** ms from the beginning of the story; the machine is online and its offer confirmed before that. */
  readonly at: number;
  readonly do: ScenarioAct;
  /** Which machine, from 1 on; 1 where none is named. */
  readonly machine?: number;
  readonly operation?: string;
  /** Name under which the command is spoken of later. */
  readonly as?: string;
  readonly command?: string;
  /** How long it lasts, or the operation takes, in ms. */
  readonly for?: number;
  readonly operations?: readonly string[];
  readonly person?: string;
}

/** What must have come of it. */
export interface Expectation {
  readonly command?: string;
  /** States of the command that are right, as the control plane has it. */
  readonly ends?: readonly string[];
  readonly machine?: number;
  /** States of the machine that are right, as the control plane has it. */
  readonly is?: readonly string[];
  /** States of its daemon that are right; `none` where no process runs. */
  readonly daemon?: readonly string[];
  /** How often the command had its effect. */
  readonly effects?: number;
}

/** One story. */
export interface Scenario {
  readonly tells: string;
  readonly seed: string;
  readonly machines: number;
  readonly controlPlanes: number;
  readonly steps: readonly ScenarioStep[];
  readonly expect: readonly Expectation[];
  /** ms that pass after the last step. */
  readonly settles: number;
}

/** What came of a story. */
export interface Told {
  readonly violations: readonly Violation[];
  /** One sentence for each expectation that was not met. */
  readonly unmet: readonly string[];
  readonly events: number;
}

type Doing = {
  readonly world: World;
  readonly server: ControlPlane;
  readonly computer: Computer;
  readonly step: ScenarioStep;
  readonly names: Names;
};

/** What a story has given names to. */
interface Names {
  readonly runs: Map<Computer, string>;
  readonly commands: Map<string, string>;
  readonly promotions: Map<Computer, string>;
  readonly backups: Map<Computer, Computer['disk']>;
}

const RETRY_MS = 500;

/** What can happen in a story. */
export const acts = {
  call: ({ world, server, computer, step, names }) => {
    const run = names.runs.get(computer) ?? '';
    const operation = step.operation ?? 'file.read';
    if (step.for !== undefined) world.setting.durations.set(operation, step.for);
    call(server, computer.executor, { run, operation, ...hearId(names, step) });
  },
  cancel: ({ server, computer, step, names }) =>
    cancel(server, computer.executor, names.commands.get(step.command ?? '') ?? ''),
  'end-run': ({ server, computer, names }) => endRun(server, computer.executor, names.runs.get(computer) ?? ''),
  pause: ({ server, computer }) => decide(server, computer.executor, { type: 'executor.pause' }),
  resume: ({ server, computer }) => decide(server, computer.executor, { type: 'executor.resume' }),
  drain: ({ server, computer }) => decide(server, computer.executor, { type: 'executor.drain' }),
  disconnect: ({ server, computer }) =>
    decide(server, computer.executor, { type: 'executor.disconnect', by: 'administrator' }),
  delete: ({ server, computer }) => decide(server, computer.executor, { type: 'executor.delete' }),
  grant: ({ server, computer, step }) => grant(server, computer.executor, step.operation ?? 'file.read', true),
  withdraw: ({ server, computer, step }) => grant(server, computer.executor, step.operation ?? 'file.read', false),
  'add-administrator': ({ server, computer, step }) =>
    administer(server, computer.executor, step.person ?? 'second', true),
  'remove-administrator': ({ server, computer, step }) =>
    administer(server, computer.executor, step.person ?? 'owner', false),
  confirm: ({ server, computer }) => review(server, computer.executor, true),
  refuse: ({ server, computer }) => review(server, computer.executor, false),
  policy: ({ world, computer, step }) => computer.setPolicy(world.policy(step.operations ?? [])),
  prepare: ({ server, computer, names }) =>
    prepare(server, computer.executor, names.runs.get(computer) ?? '', (id) => names.promotions.set(computer, id)),
  approve: ({ world, server, computer, step, names }) => {
    if (step.for !== undefined) world.setting.durations.set(PROMOTE, step.for);
    const promotion = names.promotions.get(computer) ?? '';
    approve(server, promotion);
    if (step.as !== undefined) followPromotion(world, names, promotion, step.as);
  },
  cut: ({ computer }) => {
    for (const link of computer.way.links) link.breakOff();
  },
  partition: ({ world, computer, step }) => {
    computer.way.cut();
    world.setting.timeline.after(step.for ?? 0, () => computer.way.mend());
  },
  'lose-answers': ({ world, step }) => {
    world.setting.silentUntil = world.now + (step.for ?? 0);
  },
  crash: ({ computer }) => computer.crash(),
  'crash-control-plane': ({ world, step }) => world.crashServer(0, step.for ?? 1000),
  'crash-helper': ({ computer }) => computer.breakHelper(),
  suspend: ({ computer, step }) => computer.suspend(step.for ?? 0),
  'clock-jumps': ({ computer, step }) => {
    computer.wallOffset = step.for ?? 0;
  },
  clone: ({ world, computer }) => void world.clone(computer),
  backup: ({ computer, names }) => void names.backups.set(computer, copyOf(computer.disk)),
  restore: ({ computer, names }) => {
    const backup = names.backups.get(computer);
    if (backup) computer.restore(backup);
  },
  'damage-ledger': ({ computer }) => {
    computer.disk.damaged = true;
  },
  violate: ({ computer }) => computer.violated('workspace'),
  repair: ({ computer }) => computer.repair(),
  stop: ({ computer }) => computer.stop(),
  start: ({ computer }) => computer.resume(),
  pair: () => undefined,
} as const satisfies Record<string, (doing: Doing) => void>;

export type ScenarioAct = keyof typeof acts;

/** How long a world has to come to the beginning of a story, in ms. */
const BEGINS_MS = 10_000;

/** Tells one story. */
export function tell(
  scenario: Scenario,
  options: { readonly digest: Digester; readonly rules?: Rules; readonly hear?: Hear },
): Told {
  const { seed, controlPlanes, steps } = scenario;
  const world = new World({ seed, controlPlanes, ...options });
  const computers = Array.from({ length: scenario.machines }, () => world.addComputer());
  const names: Names = { runs: new Map(), commands: new Map(), promotions: new Map(), backups: new Map() };
  for (const at of [2000, 4000])
    world.setting.timeline.after(at, () => {
      for (const computer of computers) if (world.server) review(world.server, computer.executor, true);
    });
  world.setting.timeline.after(6000, () => {
    for (const computer of computers) names.runs.set(computer, world.beginRun(computer.executor) ?? '');
  });
  for (const step of steps)
    world.setting.timeline.after(BEGINS_MS + step.at, () => happen(world, computers, names, step));
  const end = BEGINS_MS + Math.max(0, ...steps.map(({ at }) => at)) + scenario.settles;
  world.runUntil(end);
  const unmet = scenario.expect.flatMap((expectation) => unmetOf(world, computers, names, expectation));
  return { violations: world.violations, unmet, events: world.setting.tracer.deciding };
}

function happen(world: World, computers: Computer[], names: Names, step: ScenarioStep): void {
  const index = (step.machine ?? 1) - 1;
  // Pairing is how a further machine comes into a story.
  if (step.do === 'pair') return void world.pairComputer((made) => (computers[index] = made));
  const computer = computers[index];
  const { server } = world;
  if (!computer) return;
  // What a person asks while no process is there is asked again.
  if (!server) return void world.setting.timeline.after(RETRY_MS, () => happen(world, computers, names, step));
  acts[step.do]({ world, server, computer, step, names });
}

function hearId(names: Names, { as }: ScenarioStep): { readonly made?: (id: string) => void } {
  return as === undefined ? {} : { made: (id) => void names.commands.set(as, id) };
}

function followPromotion(world: World, names: Names, promotion: string, as: string): void {
  world.setting.timeline.after(RETRY_MS, () => {
    const command = world.database.get('promotions', promotion)?.command;
    if (command !== undefined) names.commands.set(as, command);
  });
}

function unmetOf(
  world: World,
  computers: readonly Computer[],
  names: Names,
  { command, ends, machine = 1, is, daemon, effects }: Expectation,
): readonly string[] {
  const unmet: string[] = [];
  const compare = (what: string, wanted: readonly string[] | undefined, came: string): void => {
    if (wanted && !wanted.includes(came)) unmet.push(`${what}: expected ${wanted.join(' or ')}, got ${came}`);
  };
  const computer = computers[machine - 1];
  const row = world.database.get('executors', computer?.executor ?? '');
  compare(`machine ${machine}`, is, row ? stateName(row.stored.value) : 'absent');
  compare(`daemon of machine ${machine}`, daemon, computer?.daemon?.state ?? 'none');
  const id = names.commands.get(command ?? '') ?? '';
  const made = world.database.get('commands', id);
  compare(`command ${command}`, ends, made ? stateName(made.stored.value) : 'none');
  const had = world.setting.watch.effectsOf(id);
  compare(`effects of command ${command}`, effects === undefined ? undefined : [String(effects)], String(had));
  return unmet;
}

/** Operations that a story may name. */
export const scenarioOperations: readonly string[] = [...agentOperations, PROMOTE];
