/*
 * Sessions with the control plane, one at a time: a fresh challenge signed together with the ledger's head, and a signed
 * answer over the daemon's own nonce. Only that answer makes the machine believe that it is connected.
 */
import { randomBytes } from 'node:crypto';
import { signStatement } from '../actors/key-store.ts';
import type { KeyStoreClient } from '../actors/key-store.ts';
import { ChannelRefused, ControlChannel } from '../actors/control-plane.ts';
import type { LinkClient, LinkTold } from '../actors/link.ts';
import type { ExecutorId } from '../helpers/protocol/ids.ts';
import { admitKey } from '../helpers/protocol/signed.ts';
import type { AdmittedKey } from '../helpers/protocol/signed.ts';
import { openStatement } from '../helpers/protocol/statements.ts';
import type { Statement } from '../helpers/protocol/statements.ts';
import { channelTimes } from '../server/protocol.ts';
import type { ControlClock } from './clock.ts';
import type { Ledger } from './ledger/ledger.ts';
import type { Standing } from './standing.ts';

const ANSWER_MS = 10_000;
const SIGN_MS = 5000;

/** What a session needs and what it changes. */
export interface SessionParts {
  readonly executor: ExecutorId;
  /** Asked each time: the pinned key may be rotated between two sessions. */
  readonly commandKey: () => AdmittedKey;
  readonly link: () => LinkClient;
  readonly keyStore: () => KeyStoreClient;
  readonly ledger: () => Ledger;
  readonly clock: () => ControlClock;
  readonly capabilityRevision: () => number;
  /** The control plane answered to the next key: it becomes the only one, durable when this resolves. */
  readonly rotated: () => Promise<void>;
  /** Whether a person ran `repair`: one proof tells of it, and the next one where that one was refused. */
  readonly standing: Pick<Standing, 'paired' | 'repaired' | 'keepRepair' | 'useRepair'>;
}

/** An answer that the pinned key did not sign, or not for this question: whoever sent it gains an outage. */
export class AnswerUnproved extends Error {
  override readonly name = 'AnswerUnproved';
}

/** The sessions of one daemon. */
export class Sessions {
  readonly #parts: SessionParts;
  /** While a rotation is unfinished nobody here knows which key the control plane has: each is tried in turn. */
  #provesWithNext = false;
  #open: { readonly channel: ControlChannel; readonly connection: number } | undefined;

  constructor(parts: SessionParts) {
    this.#parts = parts;
  }

  /** The channel of the session that stands; one that is still being proved is nobody's to ask on. */
  get channel(): ControlChannel | undefined {
    const channel = this.#open?.channel;
    return channel && channel.epoch > 0 ? channel : undefined;
  }

  /** Hands on what link told. */
  deliver(told: LinkTold): void {
    if (this.#open?.connection !== told.body.connection) return;
    if (told.type === 'link.message') this.#open.channel.take(told.body.bytes);
    else this.#open.channel.end(`connection ended: ${told.body.reason}`);
  }

  /** Opens a channel and proves the key. Rejects, with the channel closed, when there was no proved answer. */
  async connect(): Promise<Statement<'control.session'>> {
    this.close('a new session begins');
    const link = this.#parts.link();
    const { connection } = await link.request('link.open', {}, { withinMs: ANSWER_MS * 2 });
    const channel = new ControlChannel({
      send: (bytes) => link.request('link.send', { connection, bytes }, { withinMs: ANSWER_MS }),
      // A connection that is gone already is closed.
      close: () => void link.request('link.close', { connection }, { withinMs: ANSWER_MS }).catch(() => undefined),
    });
    this.#open = { channel, connection };
    try {
      return await this.#prove(channel);
    } catch (error) {
      channel.end('session was not proved', error);
      throw error;
    }
  }

  /** Ends the session of the moment; the next one is proved with the key that a rotation made. */
  proveWithNext(): void {
    this.#provesWithNext = true;
    this.close('the key was rotated');
  }

  /** Ends the session of the moment, if there is one. */
  close(reason: string): void {
    this.#open?.channel.end(reason);
    this.#open = undefined;
  }

  /** Asks one control question and believes the answer only when the pinned key signed it over this nonce. */
  async askControl(channel: ControlChannel): Promise<Statement<'control.answer'>> {
    const nonce = randomBytes(32);
    const withinMs = channelTimes.controlHoldMs + channelTimes.controlSilenceStepMs;
    const { answer } = await channel.ask('control', { nonce }, withinMs);
    const opened = openStatement('control.answer', this.#parts.commandKey(), answer);
    if (!opened) throw new AnswerUnproved('control answer is not signed by the pinned command key');
    const { statement } = opened;
    if (statement.executor !== this.#parts.executor || !nonce.equals(statement.nonce)) {
      throw new AnswerUnproved('control answer is for another question');
    }
    return statement;
  }

  /** The key that proves the next session, and whether an answer to it leaves nothing of a rotation to settle here. */
  async #keyToProve(): Promise<{ readonly key: 'current' | 'next'; readonly isSettled: boolean }> {
    const status = await this.#parts.keyStore().request('keystore.status', {}, { withinMs: SIGN_MS });
    const key = status.state === 'rotating' && this.#provesWithNext ? 'next' : 'current';
    if (status.state !== 'ready') return { key, isSettled: key === 'current' };
    // A cut between the key's change and its record left the old fingerprint there.
    return { key, isSettled: admitKey(status.publicKey).fingerprint === this.#parts.standing.paired?.fingerprint };
  }

  async #prove(channel: ControlChannel): Promise<Statement<'control.session'>> {
    const { executor } = this.#parts;
    const ledger = this.#parts.ledger();
    const clock = this.#parts.clock();
    const { challenge, acknowledgedCount } = await channel.ask('session.challenge', { executor }, ANSWER_MS);
    const nonce = randomBytes(32);
    const { key, isSettled } = await this.#keyToProve();
    const { standing } = this.#parts;
    const { repaired } = standing;
    const proof = await signStatement(
      this.#parts.keyStore(),
      'machine.session',
      {
        at: clock.now(),
        executor,
        challenge,
        nonce,
        ledgerCount: ledger.standing.count,
        ledgerHead: ledger.standing.head,
        capabilityRevision: this.#parts.capabilityRevision(),
        repaired,
        ...acknowledged(ledger, acknowledgedCount),
      },
      { key, withinMs: SIGN_MS },
    );
    if (repaired) standing.useRepair();
    const { session } = await channel.ask('session.prove', { proof }, ANSWER_MS).catch((error: unknown) => {
      if (!(error instanceof ChannelRefused)) throw error;
      // Unsigned, so it decides nothing: the other key is tried next, and only a signed answer settles which one counts.
      if (error.code === 'PROOF_INVALID') this.#provesWithNext = key === 'current';
      if (repaired) standing.keepRepair();
      throw error;
    });
    const opened = openStatement('control.session', this.#parts.commandKey(), session);
    if (!opened) throw new AnswerUnproved('session answer is not signed by the pinned command key');
    if (opened.statement.executor !== executor || !nonce.equals(opened.statement.nonce)) {
      throw new AnswerUnproved('session answer is for another question');
    }
    if (!isSettled) await this.#parts.rotated();
    await ledger.append({ kind: 'session', at: opened.statement.at, session });
    clock.anchor(opened.statement.at);
    channel.epoch = opened.statement.epoch;
    return opened.statement;
  }
}

/** The ledger's head at the count that the control plane remembers; nothing where this ledger never had that many. */
function acknowledged(ledger: Ledger, count: number): { acknowledgedCount: number; acknowledgedHead: Uint8Array } {
  const head = count <= ledger.standing.count ? ledger.memory.headAt(count) : undefined;
  return head
    ? { acknowledgedCount: count, acknowledgedHead: head }
    : { acknowledgedCount: 0, acknowledgedHead: new Uint8Array(32) };
}
