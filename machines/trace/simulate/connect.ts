/* One handshake of a simulated daemon, as daemon/session.ts does it: a challenge, a proof with the ledger's head, a signed answer. */
import type { Connect } from '../../daemon/types.ts';
import type { Ask } from './asked.ts';
import { bytesOf } from './digests.ts';
import { Channel } from './channel.ts';
import type { Daemon } from './daemon.ts';
import { headText } from './disk.ts';
import type { Answer, Proof } from './messages.ts';

type Connecting = Ask<Connect['output'], Connect['input']>;
type Session = Extract<Answer, { readonly answer: 'session' }>;

/** How long it takes to find out that nobody is there, in ms. */
const NOBODY_MS = { least: 50, most: 10_000 };

/** Opens a connection and proves the key; rejects when there was no answer. */
export function connect(daemon: Daemon, ask: Connecting): void {
  const { setting, computer } = daemon;
  const { timeline, random } = setting;
  const channel: Channel = new Channel(setting, {
    over: () => {
      daemon.disconnected(channel);
      if (daemon.alive && ask.isOpen()) timeline.after(0, () => daemon.alive && ask.isOpen() && ask.reject());
    },
    trouble: () => daemon.channel === channel && daemon.troubled(),
    mended: () => daemon.channel === channel && daemon.mended(),
  });
  timeline.after(random.between(1, 10), () => {
    if (!daemon.alive || !ask.isOpen()) return;
    if (computer.dial(channel)) return prove(daemon, channel, ask);
    timeline.after(random.between(NOBODY_MS.least, NOBODY_MS.most), () => channel.end());
  });
}

function prove(daemon: Daemon, channel: Channel, ask: Connecting): void {
  const { computer } = daemon;
  channel.ask({ ask: 'challenge', executor: computer.executor }, (answer) => {
    if (answer.answer !== 'challenge') return channel.end();
    const proof = proofOf(daemon, answer.acknowledgedCount);
    // A repair is used up before its proof leaves, and kept where that proof was refused without an answer.
    if (proof.repaired) computer.disk.repaired = false;
    daemon.setting.watch.proves(proof, computer);
    channel.ask({ ask: 'prove', proof }, (verdict) => {
      if (verdict.answer === 'session') return enter(daemon, channel, ask, verdict);
      if (proof.repaired) computer.disk.repaired = true;
      channel.end();
    });
  });
}

function proofOf({ computer, ledger }: Daemon, acknowledgedCount: number): Proof {
  const { disk } = computer;
  const { count, head } = ledger.standing;
  const known = acknowledgedCount <= count ? ledger.memory.headAt(acknowledgedCount) : undefined;
  disk.guard += 1;
  return {
    executor: computer.executor,
    at: computer.clockNow(),
    guard: disk.guard,
    ledgerCount: count,
    ledgerHead: headText(head),
    acknowledgedCount: known ? acknowledgedCount : 0,
    acknowledgedHead: headText(known ?? new Uint8Array(32)),
    capabilityRevision: disk.stated.at(-1)?.revision ?? 0,
    repaired: disk.repaired,
  };
}

function enter(daemon: Daemon, channel: Channel, ask: Connecting, { verdict, epoch, at }: Session): void {
  const nothing = { payload: bytesOf('session'), signature: bytesOf('session') };
  daemon.ledger.append(
    { kind: 'session', at, session: nothing },
    () => {
      if (!daemon.alive || !ask.isOpen()) return channel.end();
      daemon.anchored = true;
      daemon.knowsTime = true;
      channel.epoch = epoch;
      const isOnline = verdict === 'online' || verdict === 'descriptor-needed';
      // The machine asks its lanes once it is told that it is connected.
      if (isOnline && channel.isOver) return;
      if (isOnline) daemon.connected(channel);
      ask.resolve(answerOf(verdict, epoch));
    },
    () => channel.end(),
  );
}

function answerOf(verdict: Session['verdict'], epoch: number): Connect['output'] {
  switch (verdict) {
    case 'revoked':
      return { answer: 'revoked' };
    case 'in-error':
      return { answer: 'in-error' };
    case 'ledger-behind':
    case 'ledger-forked':
      return { answer: 'state-copied' };
    case 'online':
    case 'descriptor-needed':
      return { answer: 'connected', epoch };
  }
}
