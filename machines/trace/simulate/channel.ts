/*
 * A machine's end of its connection in a simulated world, as actors/control-plane.ts and daemon/session.ts keep it: each answer meets
 * its question or ends the connection, and a question that nobody answers in time ends it too.
 */
import { CONTROL_SILENCE_MS } from '../../daemon/connection.ts';
import type { Answer, Question } from './messages.ts';
import type { End, Link, Message } from './network.ts';
import type { Setting } from './setting.ts';
import type { Planned } from './timeline.ts';
import { CONTROL_HOLD_MS } from './times.ts';

interface Waiting {
  readonly answered: (answer: Answer) => void;
  readonly lost: () => void;
  readonly limit: Planned | undefined;
}

/** How long each question may wait, in ms; the two lanes that are held are watched otherwise. */
const ANSWER_MS = { challenge: 10_000, prove: 10_000, receipts: 15_000, descriptor: 10_000 } as const;
/** How long a control question may stay without an answer, in ms. */
const CONTROL_MS = CONTROL_HOLD_MS + CONTROL_SILENCE_MS;

/** One connection of a machine. */
export class Channel implements End {
  readonly #setting: Setting;
  readonly #over: () => void;
  readonly #trouble: () => void;
  readonly #mended: () => void;
  readonly #waiting = new Map<number, Waiting>();
  #link: Link | undefined;
  #lastId = 0;
  #ended = false;
  #silence: Planned | undefined;
  epoch = 0;

  constructor(
    setting: Setting,
    hear: { readonly over: () => void; readonly trouble: () => void; readonly mended: () => void },
  ) {
    this.#setting = setting;
    this.#over = hear.over;
    this.#trouble = hear.trouble;
    this.#mended = hear.mended;
  }

  get isOver(): boolean {
    return this.#ended;
  }

  /** Since when nothing passes on it, in ms; undefined while it is well. */
  get troubledAt(): number | undefined {
    return this.#link?.troubledAt;
  }

  get isHealthy(): boolean {
    return !this.#ended && this.#link?.isHealthy === true;
  }

  /** The connection is open. */
  opened(link: Link): void {
    this.#link = link;
    link.onTrouble = () => this.#troubled();
    link.onMended = () => {
      this.#setting.timeline.drop(this.#silence);
      this.#silence = undefined;
      if (!this.#ended) this.#mended();
    };
  }

  /** Asks; `lost` is told when the connection ends before the answer. */
  ask(question: Question, answered: (answer: Answer) => void, lost: () => void = () => undefined): void {
    if (this.#ended || !this.#link) {
      this.#setting.timeline.after(0, lost);
      return;
    }
    this.#lastId += 1;
    const id = this.#lastId;
    const within = question.ask === 'work' || question.ask === 'control' ? undefined : ANSWER_MS[question.ask];
    const limit = within === undefined ? undefined : this.#setting.timeline.after(within, () => this.end());
    this.#waiting.set(id, { answered, lost, limit });
    this.#link.say('machine', id, question);
  }

  take(_: Link, message: Message): void {
    if (this.#ended) return;
    const waiting = this.#waiting.get(message.id);
    if (!waiting) return this.end();
    this.#waiting.delete(message.id);
    this.#setting.timeline.drop(waiting.limit);
    // Only modelled control planes answer here, in these words.
    waiting.answered(message.body as Answer);
  }

  ended(): void {
    this.#finish();
  }

  /** Ends the connection from here. */
  end(goodbye = false): void {
    this.#link?.end('machine', goodbye);
    this.#finish();
  }

  #troubled(): void {
    if (this.#ended) return;
    this.#trouble();
    // No control answer comes any more: the question that is out ends the connection.
    this.#silence ??= this.#setting.timeline.after(CONTROL_MS, () => this.end());
  }

  #finish(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#setting.timeline.drop(this.#silence);
    const waiting = [...this.#waiting.values()];
    this.#waiting.clear();
    for (const { lost, limit } of waiting) {
      this.#setting.timeline.drop(limit);
      lost();
    }
    this.#over();
  }
}
