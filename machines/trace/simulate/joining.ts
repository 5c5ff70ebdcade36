/*
 * One pairing of a simulated machine by the eight-digit flow: the joining machine as a live actor over a disk that keeps its request, and
 * calls of which any answer can be lost. What daemon/joining.ts does.
 */
import { createActor } from 'xstate';
import type {
  AskStanding,
  DropRequest,
  Offer,
  PersistRequest,
  PreparedRequest,
  PrepareRequest,
  SavePairing,
  SendConfirmation,
  SendEnding,
  SendRequest,
  Standing,
} from '../../pairing/types.ts';
import { asked } from './asked.ts';
import type { Ask } from './asked.ts';
import { digestOf } from './digests.ts';
import type { PairingDesk } from './pairings.ts';
import type { Setting } from './setting.ts';
import type { Planned } from './timeline.ts';

type Of<Contract extends { readonly input: unknown; readonly output: unknown }> = Ask<
  Contract['output'],
  Contract['input']
>;

/** How long a call waits for its answer, in ms, and how long the person at the machine takes to compare. */
const TIMES = { call: { least: 2, most: 60 }, lost: 10_000, person: { least: 2000, most: 40_000 } };

/** What outlives a crash of the joining program. */
export interface JoiningDisk {
  prepared: PreparedRequest | null;
  executor: string | undefined;
}

/** One run of the joining program. `ended` hears how it went; undefined where it died. */
export class Joining {
  readonly #setting: Setting;
  readonly #desk: PairingDesk;
  readonly #disk: JoiningDisk;
  readonly #timers = new Map<number, Planned>();
  readonly #name: string;
  #lastTimer = 0;
  #alive = true;
  /** Claims that the person here was shown and confirmed. */
  readonly #shown = new Set<string>();
  readonly #actor;

  constructor(setting: Setting, desk: PairingDesk, disk: JoiningDisk, ended: (executor: string | undefined) => void) {
    this.#setting = setting;
    this.#desk = desk;
    this.#disk = disk;
    this.#name = setting.fresh('joining');
    this.#actor = createActor(this.#machine(), {
      id: 'joining',
      input: { flow: 'code', replaces: null, prepared: disk.prepared },
      clock: {
        setTimeout: (fire, ms) => this.#plan(fire, ms),
        clearTimeout: (id: number) => this.#setting.timeline.drop(this.#timers.get(id)),
      },
      inspect: setting.tracer.inspector(this.#name),
    });
    this.#actor.on('joining.claimed', ({ claim }) => this.#compare(claim.claimDigest));
    this.#actor.on('joining.claim-changed', ({ claim }) => this.#compare(claim.claimDigest));
    this.#actor.subscribe({
      complete: () => {
        this.#die();
        const { executor } = this.#disk;
        this.#disk.executor = undefined;
        ended(executor);
      },
    });
    this.#actor.start();
  }

  /** The program dies; its request stays on the disk, and a new run resumes it. False where it had ended. */
  crash(): boolean {
    const was = this.#alive;
    this.#die();
    return was;
  }

  #die(): void {
    this.#alive = false;
    for (const planned of this.#timers.values()) this.#setting.timeline.drop(planned);
    this.#setting.tracer.forget(this.#name);
  }

  /** The person at the machine compares what is shown, and confirms it. */
  #compare(claimDigest: string): void {
    const { random } = this.#setting;
    this.#later(random.between(TIMES.person.least, TIMES.person.most), () => {
      if (random.chance(0.03)) this.#actor.send({ type: 'joining.cancel' });
      else {
        this.#shown.add(claimDigest);
        this.#actor.send({ type: 'claim.confirm', claimDigest });
      }
    });
  }

  #machine(): Setting['rules']['joiningMachine'] {
    const { rules, random } = this.#setting;
    return rules.joiningMachine.provide({
      delays: {
        retry: ({ context }) =>
          Math.round(Math.min(30_000, 500 * 2 ** Math.min(context.attempt, 6)) * (0.75 + random.next() / 2)),
      },
      actors: {
        prepareRequest: asked((ask: Of<PrepareRequest>) => this.#soon(ask, () => ask.resolve(this.#prepare()))),
        persistRequest: asked((ask: Of<PersistRequest>) =>
          this.#soon(ask, () => {
            this.#disk.prepared = ask.input;
            ask.resolve({ durable: true });
          }),
        ),
        sendRequest: asked((ask: Of<SendRequest>) =>
          this.#call<Offer>(ask, () => this.#desk.request(this.#disk.prepared)),
        ),
        askStanding: asked((ask: Of<AskStanding>) =>
          this.#call<Standing>(ask, () => this.#desk.standing(ask.input.pairingId)),
        ),
        sendConfirmation: asked((ask: Of<SendConfirmation>) =>
          this.#call<SendConfirmation['output']>(ask, () => {
            if (this.#shown.has(ask.input.claimDigest))
              this.#setting.watch.confirms(ask.input.pairingId, ask.input.claimDigest);
            return this.#desk.confirm(
              ask.input.pairingId,
              ask.input.claimDigest,
              this.#disk.prepared?.fingerprint ?? '',
            );
          }),
        ),
        sendEnding: asked((ask: Of<SendEnding>) =>
          this.#call<SendEnding['output']>(ask, () => this.#desk.end(ask.input.pairingId, ask.input.ending)),
        ),
        savePairing: asked((ask: Of<SavePairing>) =>
          this.#soon(ask, () => {
            this.#disk.executor = ask.input.executorId;
            ask.resolve({ durable: true });
          }),
        ),
        dropRequest: asked((ask: Of<DropRequest>) =>
          this.#soon(ask, () => {
            this.#disk.prepared = null;
            ask.resolve({ dropped: true });
          }),
        ),
      },
    });
  }

  #prepare(): PreparedRequest {
    const key = this.#setting.fresh('key');
    return {
      requestId: this.#setting.fresh('request'),
      requestDigest: digestOf(`request ${key}`),
      fingerprint: digestOf(key),
    };
  }

  #soon<Output, Input>(ask: Ask<Output, Input>, then: () => void): void {
    this.#later(this.#setting.random.between(1, 8), () => {
      if (ask.isOpen()) then();
    });
  }

  /** A call whose request or answer may be lost; what it did there is done, whether or not that is heard. */
  #call<Answer>(
    ask: { isOpen(): boolean; resolve(answer: Answer): void; reject(): void },
    act: () => Answer | undefined,
  ): void {
    const { random, timeline, weather } = this.#setting;
    const { least, most } = TIMES.call;
    const lost = (): void => this.#later(TIMES.lost, () => ask.isOpen() && ask.reject());
    // A pairing has few messages, so that each of them meets more weather than those of a channel.
    const worse = weather.lost * 100;
    if (random.chance(worse)) return lost();
    const unheard = (): boolean => timeline.now < this.#setting.silentUntil || random.chance(worse);
    timeline.after(random.between(least, most), () => {
      const answer = act();
      if (answer === undefined || unheard()) return lost();
      this.#later(random.between(least, most), () => ask.isOpen() && ask.resolve(answer));
    });
  }

  #later(ms: number, then: () => void): void {
    this.#setting.timeline.after(ms, () => {
      if (this.#alive) then();
    });
  }

  #plan(fire: () => void, ms: number): number {
    this.#lastTimer += 1;
    const id = this.#lastTimer;
    this.#timers.set(
      id,
      this.#setting.timeline.after(ms, () => {
        this.#timers.delete(id);
        if (this.#alive) fire();
      }),
    );
    return id;
  }
}
