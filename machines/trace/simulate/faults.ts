/* What goes wrong in a simulated world, by kind: each comes by chance, again and again, from a stream of its own. */
import type { Computer } from './computer.ts';
import { copyOf } from './disk.ts';
import type { Random } from './random.ts';
import type { Weather } from './setting.ts';
import type { Desk, Pace } from './society.ts';
import type { World } from './world.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/** Kinds of faults, with what each does and how often it meets one machine, as a mean in ms. */
const kinds = {
  /** A connection breaks. */
  cut: [HOUR, ({ computer }) => breakLinks(computer)],
  /** Nothing passes for a while, and nobody is told. */
  partition: [2 * HOUR, ({ computer, random, world }) => partition(world, computer, random)],
  /** The daemon dies, with what was not synced. */
  daemon: [2 * HOUR, ({ computer }) => computer.crash()],
  /** A helper dies under its work. */
  helper: [2 * HOUR, ({ computer }) => computer.breakHelper()],
  /** The machine sleeps. */
  suspend: [6 * HOUR, ({ computer, random }) => computer.suspend(random.around(2 * MINUTE))],
  /** The wall clock jumps. */
  clock: [8 * HOUR, ({ computer, random }) => (computer.wallOffset = random.between(-600, 600) * SECOND)],
  /** Somebody runs a copy of the machine's state. */
  clone: [30 * HOUR, ({ computer, random, world }) => clone(world, computer, random)],
  /** The state folder is put back from a backup. */
  backup: [30 * HOUR, ({ computer, backup }) => backup && computer.restore(backup)],
  /** The ledger is damaged, or its disk takes nothing more. */
  ledger: [24 * HOUR, ({ computer }) => (computer.disk.damaged = true)],
  /** A promotion cannot be settled without a person. */
  journal: [24 * HOUR, ({ computer }) => (computer.stuck = true)],
  /** Whoever carries the work lane delivers again what was delivered before. */
  replay: [2 * HOUR, ({ computer }) => computer.daemon?.executions.deliverAgain()],
  /** The machine says again what it said, or says it of another command, connection or place in the chain. */
  nonsense: [2 * HOUR, ({ computer, random, world }) => talkNonsense(computer, random, world)],
  /** A process of the machine breaks its protocol. */
  violation: [30 * HOUR, ({ computer }) => computer.violated('workspace')],
} as const satisfies Record<string, readonly [mean: number, act: (at: Hit) => unknown]>;

/** Faults that meet the control plane or every message. */
const others = ['server', 'weather'] as const;

export type FaultKind = keyof typeof kinds | (typeof others)[number];

/** Every kind. */
// The keys of the table above are its kinds.
export const faultKinds: readonly FaultKind[] = [...(Object.keys(kinds) as (keyof typeof kinds)[]), ...others];

/** Weather of a world with the fault of that name. */
export const stormy: Weather = { lost: 0.0008, repeated: 0.0004, reordered: 0.0004, slow: 0.01 };

interface Hit {
  readonly world: World;
  readonly computer: Computer;
  readonly random: Random;
  readonly backup: Computer['disk'] | undefined;
}

/** How often a process of the control plane dies, as a mean in ms, and how long it stays away. */
const SERVER_MS = { mean: 3 * HOUR, least: 300, most: 20 * SECOND, long: 4 * MINUTE, oftenLong: 0.2 };

/** Lets faults of these kinds happen in a world; `heard` counts each by its kind. */
export function haveFaults(
  world: World,
  desks: readonly Desk[],
  wanted: readonly FaultKind[],
  { trouble, heard }: { readonly trouble: Pace['trouble']; readonly heard: (kind: FaultKind) => void },
): void {
  for (const [index, desk] of desks.entries())
    for (const kind of wanted) if (isOfMachine(kind)) meet({ world, desk, index, kind, trouble, heard });
  if (!wanted.includes('server')) return;
  for (const index of world.servers.keys()) {
    const random = world.setting.random.branch(`server ${index}`);
    again(world, random, SERVER_MS.mean / trouble, () => {
      heard('server');
      const most = random.chance(SERVER_MS.oftenLong) ? SERVER_MS.long : SERVER_MS.most;
      world.crashServer(index, random.between(SERVER_MS.least, most));
    });
  }
}

function isOfMachine(kind: FaultKind): kind is keyof typeof kinds {
  return kind in kinds;
}

interface Meeting {
  readonly world: World;
  readonly desk: Desk;
  readonly index: number;
  readonly kind: keyof typeof kinds;
  readonly trouble: number;
  readonly heard: (kind: FaultKind) => void;
}

function meet({ world, desk, index, kind, trouble, heard }: Meeting): void {
  const random = world.setting.random.branch(`fault ${kind} ${index}`);
  const [mean, act] = kinds[kind];
  let backup: Computer['disk'] | undefined;
  let of: Computer | undefined;
  again(world, random, mean / trouble, () => {
    const { computer } = desk;
    if (of !== computer) backup = undefined;
    heard(kind);
    act({ world, computer, random, backup });
    of = computer;
    backup = copyOf(computer.disk);
  });
}

function again(world: World, random: Random, mean: number, act: () => void): void {
  world.setting.timeline.after(random.around(mean), () => {
    act();
    again(world, random, mean, act);
  });
}

function breakLinks(computer: Computer): void {
  for (const link of computer.way.links) link.breakOff();
}

function partition(world: World, { way }: Computer, random: Random): void {
  if (way.isCut) return;
  way.cut();
  // Most pass within seconds, some last until everything has stopped.
  const lasts = random.around(random.chance(0.2) ? 2 * MINUTE : 4 * SECOND);
  world.setting.timeline.after(lasts, () => way.mend());
}

function clone(world: World, computer: Computer, random: Random): void {
  const copy = world.clone(computer);
  world.setting.timeline.after(random.around(5 * MINUTE), () => copy.stop());
}

/** A machine whose daemon was taken over still speaks with its key: of its chains nothing may be believed that is not their next link. */
function talkNonsense(computer: Computer, random: Random, world: World): void {
  const { daemon } = computer;
  const other = random.pick(world.computers)?.daemon ?? daemon;
  daemon?.executions.sayAgain(other?.executions.said, random);
}
