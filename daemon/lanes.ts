/*
 * The lanes of a proved session: `control`, `work` and the heartbeat ask side by side, each with one question open, so that a
 * stop is never behind a command. A lane that cannot go on ends the connection.
 */
import { setTimeout as wait } from 'node:timers/promises';
import { signStatement } from '../actors/key-store.ts';
import type { KeyStoreClient } from '../actors/key-store.ts';
import type { ChannelEnded, ControlChannel } from '../actors/control-plane.ts';
import type { ExecutorId } from '../helpers/protocol/ids.ts';
import type { Statement } from '../helpers/protocol/statements.ts';
import { channelTimes } from '../server/protocol.ts';
import type { CommandFrame } from '../server/protocol.ts';
import type { ControlClock } from './clock.ts';
import type { Ledger } from './ledger/ledger.ts';
import type { Sessions } from './session.ts';

const ANSWER_MS = 10_000;
/** An empty answer before this time was not held, in ms. */
const EARLY_MS = 250;

/** What the lanes need, and whom they tell. */
export interface LaneParts {
  readonly executor: ExecutorId;
  readonly sessions: Sessions;
  readonly keyStore: () => KeyStoreClient;
  readonly ledger: Ledger;
  readonly clock: ControlClock;
  /** How many more commands may be taken now; the promise resolves when that is at least one. */
  readonly capacity: () => Promise<number>;
  /** A proved answer of the control lane. */
  readonly heard: (answer: Statement<'control.answer'>) => void;
  /** Commands as they arrived: nothing of them is believed yet. */
  readonly delivered: (frames: readonly CommandFrame[]) => Promise<void>;
}

/** Runs the lanes until the channel ends; resolves with why, never rejects. */
export function runLanes(parts: LaneParts, channel: ControlChannel): Promise<ChannelEnded> {
  for (const lane of [controlLane, workLane, heartbeatLane]) {
    lane(parts, channel).catch((error: unknown) => channel.end(`lane ${lane.name} ended`, error));
  }
  return channel.ended;
}

async function controlLane(parts: LaneParts, channel: ControlChannel): Promise<never> {
  for (;;) {
    parts.heard(await parts.sessions.askControl(channel));
    // After a suspend the clock's anchor is void: a new session states the time before the next step (design section 4).
    if (!parts.clock.isAnchored) throw new RangeError('the machine slept; a new session must state the time');
  }
}

async function workLane(parts: LaneParts, channel: ControlChannel): Promise<never> {
  for (;;) {
    const capacity = await parts.capacity();
    const asked = parts.clock.running();
    const { commands } = await channel.ask('work', { capacity }, channelTimes.workHoldMs + ANSWER_MS);
    if (commands.length > 0) await parts.delivered(commands);
    // The control plane holds a question until there is work; one that does not must not make this process spin.
    else if (parts.clock.running() - asked < EARLY_MS) await wait(EARLY_MS);
  }
}

async function heartbeatLane(parts: LaneParts, channel: ControlChannel): Promise<void> {
  const { executor, ledger, clock } = parts;
  while (await sleptUntilDue(channel)) {
    const { count, head } = ledger.standing;
    const fields = { at: clock.now(), executor, epoch: channel.epoch, ledgerCount: count, ledgerHead: head };
    const heartbeat = await signStatement(parts.keyStore(), 'machine.heartbeat', fields, { withinMs: ANSWER_MS });
    await channel.ask('heartbeat', { heartbeat }, ANSWER_MS);
  }
}

/** True when the next heartbeat is due, false when the channel ended first. */
function sleptUntilDue(channel: ControlChannel): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(true), channelTimes.heartbeatMs);
    void channel.ended.then(() => {
      clearTimeout(timer);
      resolve(false);
    });
  });
}
