import { aboutError } from '../about-error.ts';
import type { ExecutorId } from '../../helpers/protocol/ids.ts';
import { Lanes } from '../channel/lanes.ts';
import type { Context } from '../context.ts';
import { changeExecutor } from '../executors/lifecycle.ts';
import { markSilent } from '../executors/store.ts';
import { expirePromotions } from '../drafts/expire.ts';
import { cancelWithdrawn } from './withdraw.ts';
import { KeyRing } from '../payloads/key-ring.ts';
import { DEFAULT_KEPT_MS } from '../payloads/rules.ts';
import { deleteExpiredPayloads } from '../payloads/store.ts';
import { endSilentRuns } from '../runs/silence.ts';
import { stepCommand } from './finish.ts';
import { Dispatcher } from './dispatcher.ts';
import { Outcomes } from './outcomes.ts';
import { YES } from './store.ts';
import type { Work } from './work.ts';

/** How often deadlines are looked at, in ms. */
const SWEEP_MS = 1000;
/** How often payloads past their time are deleted, in ms. */
const PAYLOAD_SWEEP_MS = 60_000;

/** Work of one control plane, with the sweeps that keep its deadlines. */
export interface RunningWork extends Work {
  /** Looks at every deadline once, at the time of the clock. */
  sweep(): Promise<void>;
  /** Ends sweeps and connections. What waits for a machine stays in the store. */
  stop(): Promise<void>;
}

/**
 * Opens the payload keys, settles what an earlier process left under way, and keeps deadlines from then on. No command is
 * given out before it resolves.
 */
export async function startWork(
  context: Context,
  { keptMs = DEFAULT_KEPT_MS }: { readonly keptMs?: number } = {},
): Promise<RunningWork> {
  const keys = await KeyRing.open(context.dataFolder, context.clock.now());
  const dispatcher = new Dispatcher(() => work);
  const work: Work = { ...context, keys, keptMs, lanes: new Lanes(), outcomes: new Outcomes(), dispatcher };
  await settleLeftovers(work);
  const unlisten = context.wake.listen((change) => {
    if (change.of === 'executor') void executorChanged(work, change.id);
  });
  const sweep = async (): Promise<void> => {
    await markSilent(work);
    await expireCommands(work);
    await expirePromotions(work);
    await endDrained(work);
    await endSilentRuns(work);
  };
  const timers = [every(work, SWEEP_MS, sweep), every(work, PAYLOAD_SWEEP_MS, () => sweepPayloads(work))];
  return {
    ...work,
    sweep: async () => {
      await sweep();
      await sweepPayloads(work);
    },
    stop: async () => {
      unlisten();
      for (const timer of timers) timer.end();
      for (const connection of work.lanes.all) connection.end('stopping');
      await Promise.all(timers.map((timer) => timer.idle()));
    },
  };
}

async function sweepPayloads(work: Work): Promise<void> {
  await work.keys.refresh();
  await deleteExpiredPayloads(work.store, work.keys, work.clock.now());
}

/** What was withdrawn ends first, so that the very answer which tells the machine of its fence carries the ids. */
async function executorChanged(work: Work, id: ExecutorId): Promise<void> {
  try {
    await cancelWithdrawn(work, id);
  } catch (error) {
    work.log.error(
      { ...aboutError(error), executor: id },
      'withdrawn commands could not be cancelled; the fence stops them',
    );
  }
  work.lanes.find(id)?.wake();
}

/** No connection outlives its process: what a machine was given then is unknown until it reports (R61). */
async function settleLeftovers(work: Work): Promise<void> {
  const given = await work.store.read
    .selectFrom('commands')
    .select(['id', 'epoch', 'executor'])
    .where('open', '=', YES)
    .where('epoch', 'is not', null)
    .execute();
  for (const { id, epoch } of given) {
    if (epoch !== null) await stepCommand(work, id, { type: 'connection.lost', epoch });
  }
  // The process that committed a withdrawal may have died before it asked for the end of what ran.
  for (const executor of new Set(given.map((row) => row.executor))) await cancelWithdrawn(work, executor);
}

async function expireCommands(work: Work): Promise<void> {
  const due = await work.store.read
    .selectFrom('commands')
    .select('id')
    .where('open', '=', YES)
    .where('deadline', '<=', work.clock.now())
    .limit(256)
    .execute();
  await Promise.all(due.map(({ id }) => stepCommand(work, id, { type: 'command.expired' })));
}

/** An executor that drains is ended once nothing is under way and nothing unknown can be settled in its time any more (D-1). */
async function endDrained(work: Work): Promise<void> {
  const now = work.clock.now();
  const drained = await work.store.read
    .selectFrom('executors')
    .select('id')
    .where('state', '=', 'draining')
    .where((where) =>
      where.not(
        where.exists(
          where
            .selectFrom('commands')
            .select('commands.id')
            .whereRef('commands.executor', '=', 'executors.id')
            .where((of) =>
              of.or([of('open', '=', YES), of.and([of('commands.state', '=', 'unknown'), of('deadline', '>', now)])]),
            ),
        ),
      ),
    )
    .execute();
  for (const { id } of drained) await changeExecutor(work, id, { type: 'executor.drained' });
}

interface Every {
  end(): void;
  idle(): Promise<void>;
}

/** Runs `job` again and again, never twice at once; a failure is logged and the next turn tries again. */
function every(work: Work, ms: number, job: () => Promise<void>): Every {
  let running: Promise<void> | undefined;
  const timer = setInterval(() => {
    running ??= job()
      .catch((error: unknown) => work.log.error(aboutError(error), 'a sweep failed; the next one tries again'))
      .finally(() => {
        running = undefined;
      });
  }, ms);
  timer.unref();
  return {
    end: () => clearInterval(timer),
    idle: async () => {
      await running;
    },
  };
}
