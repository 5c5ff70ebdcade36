import { aboutError } from '../about-error.ts';
import { channelTimes } from '../protocol.ts';
import type { CommandFrame } from '../protocol.ts';
import type { Work } from '../commands/work.ts';
import { hear, isNews, markEndTold, NOTHING_HEARD, readControl, signControl } from './control.ts';
import { readStanding } from '../executors/store.ts';
import type { ControlFields, Heard } from './control.ts';
import type { WorkQuestion } from './lanes.ts';
import type { Proved } from './session.ts';
import { standingOf } from './rules.ts';
import type { Question, Wire } from './wire.ts';

interface HeldControl {
  readonly question: Question;
  readonly nonce: Uint8Array;
  readonly timer: NodeJS.Timeout;
}

/** The two lanes of one proved connection: at most one question of each is held at a time, and neither waits for the other. */
export class HeldQuestions {
  readonly #work: Work;
  readonly #wire: Wire;
  readonly #proved: Proved;
  #control: HeldControl | undefined;
  #told: ControlFields | undefined;
  #heard: Heard = NOTHING_HEARD;
  #looking: Promise<void> | undefined;
  #again = false;
  #must = false;
  /** Counts what may have changed; what the machine was told last stands for everything up to `#toldUpTo`. */
  #stirs = 1;
  #toldUpTo = 0;
  #workTimer: NodeJS.Timeout | undefined;
  #workHeld: WorkQuestion | undefined;
  #answered: { readonly id: number; readonly commands: readonly CommandFrame[] } | undefined;

  constructor(work: Work, wire: Wire, proved: Proved) {
    this.#work = work;
    this.#wire = wire;
    this.#proved = proved;
  }

  /** Whether a question of this lane is held now. */
  holds(lane: 'work' | 'control'): boolean {
    return (lane === 'work' ? this.#workHeld : this.#control) !== undefined;
  }

  /** Holds a work question until there is work, or 25 s. The question of before, asked again, gets the same commands (N-114). */
  holdWork(question: Question, capacity: number): void {
    const { executor, epoch } = this.#proved;
    if (this.#answered?.id === question.id) {
      this.#wire.answer<'work'>(question, { commands: [...this.#answered.commands] });
      return;
    }
    const answer = (commands: readonly CommandFrame[]): boolean => {
      clearTimeout(this.#workTimer);
      this.#workHeld = undefined;
      this.#answered = { id: question.id, commands };
      return this.#wire.answer<'work'>(question, { commands: [...commands] });
    };
    let overdue = false;
    const putBack = (): void => {
      if (overdue) answer([]);
      else this.#work.lanes.holdWork(executor, held);
    };
    const held: WorkQuestion = { epoch, capacity, answer, putBack };
    this.#workHeld = held;
    this.#workTimer = setTimeout(() => {
      // A round that took the question answers it or puts it back.
      overdue = true;
      if (this.#work.lanes.releaseWork(executor, held)) answer([]);
    }, channelTimes.workHoldMs);
    this.#work.lanes.holdWork(executor, held);
    this.#work.dispatcher.poke(executor);
  }

  /** Holds a control question until something changed, or for `controlHoldMs`. */
  holdControl(question: Question, nonce: Uint8Array): void {
    const told = this.#told;
    if (told) this.#heard = hear(this.#heard, told);
    const timer = setTimeout(() => void this.#look(true), channelTimes.controlHoldMs);
    this.#control = { question, nonce, timer };
    void this.#confirm(told?.endedRuns ?? []).then(() =>
      this.#isStirred || this.#heard.isFull ? this.#look(false) : undefined,
    );
  }

  /** Looks again whether the machine must be told something. */
  wake(): void {
    this.#stirs += 1;
    void this.#look(false);
  }

  /** Answers nothing more; the connection ends. */
  release(): void {
    clearTimeout(this.#workTimer);
    clearTimeout(this.#control?.timer);
    if (this.#workHeld) this.#work.lanes.releaseWork(this.#proved.executor, this.#workHeld);
    this.#workHeld = undefined;
    this.#control = undefined;
  }

  /** Answers the held control question with what stands in the store now; resolves when it was sent. */
  async tellNow(): Promise<void> {
    await this.#look(true);
  }

  async #confirm(heard: ControlFields['endedRuns']): Promise<void> {
    await markEndTold(this.#work, heard).catch((error: unknown) => this.#failed(error));
  }

  /** Resolves when the store was looked at after this call, and the answer sent if there was one to send. */
  #look(mustAnswer: boolean): Promise<void> {
    this.#again = true;
    this.#must ||= mustAnswer;
    this.#looking ??= this.#lookOn().finally(() => {
      this.#looking = undefined;
    });
    return this.#looking;
  }

  async #lookOn(): Promise<void> {
    try {
      while (this.#again) {
        const must = this.#must;
        this.#again = false;
        this.#must = false;
        await this.#answerControl(must);
      }
    } catch (error) {
      this.#failed(error);
    }
  }

  async #answerControl(mustAnswer: boolean): Promise<void> {
    const held = this.#control;
    const upTo = this.#stirs;
    const fields = await this.#read();
    if (this.#control !== held) return;
    if (!held) {
      // Nothing to answer on; a connection that no longer stands ends all the same (R10), and its machine learns why by proving again.
      this.#endIfFallen(fields);
      return;
    }
    if (!mustAnswer && !isNews(fields, this.#told)) {
      this.#toldUpTo = upTo;
      return;
    }
    const answer = await signControl(this.#work, fields, held.nonce);
    if (this.#control !== held) return;
    clearTimeout(held.timer);
    this.#control = undefined;
    this.#told = fields;
    this.#toldUpTo = upTo;
    this.#wire.answer<'control'>(held.question, { answer });
    this.#endIfFallen(fields);
  }

  /** All that the machine is to be told; a short look where nothing stirred and nothing was left to be told. */
  async #read(): Promise<ControlFields> {
    const { executor, epoch } = this.#proved;
    const told = this.#told;
    if (!this.#isStirred && told && told.cancel.length + told.endedRuns.length === 0) {
      const row = await readStanding(this.#work.store.read, executor);
      if (row && standingOf(row, epoch) === told.standing) return told;
    }
    return readControl(this.#work, executor, epoch, this.#heard);
  }

  get #isStirred(): boolean {
    return this.#stirs > this.#toldUpTo;
  }

  #endIfFallen({ standing }: ControlFields): void {
    if (standing === 'fenced' || standing === 'revoked') this.#wire.close(1008, standing);
  }

  /** With the store or the key process gone nothing may be promised: the machine sees silence and stops by itself. */
  #failed(error: unknown): void {
    this.#work.log.error(aboutError(error), 'a control question could not be answered');
    this.#wire.close(1011, 'unavailable');
  }
}
