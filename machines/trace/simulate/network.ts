/*
 * Connections of a simulated world: one is opened outward by a machine, each side numbers what it says, and whatever comes lost,
 * twice or out of its order ends it. Between two ends there is a way that can be slow or cut off.
 */
import type { Setting } from './setting.ts';

/** A question of a machine, or the answer to one. */
export interface Message {
  /** Number of the question that is asked or answered. */
  readonly id: number;
  /** Number of this message among those of its sender on this connection. */
  readonly sequence: number;
  readonly body: unknown;
}

/** One end of a connection. */
export interface End {
  take(link: Link, message: Message): void;
  /** The connection is over; `goodbye` where the other side said so in order. */
  ended(link: Link, goodbye: boolean): void;
}

/** The way between one machine and everything outside; while it is cut, nothing passes and nobody is told. */
export class Way {
  readonly #waiting: (() => void)[] = [];
  /** Told when a message on it takes long: whoever waits for what follows it waits as well. */
  onSlow: (() => void) | undefined;
  #cut = false;
  readonly links = new Set<Link>();

  get isCut(): boolean {
    return this.#cut;
  }

  cut(): void {
    this.#cut = true;
    for (const link of this.links) link.trouble();
  }

  mend(): void {
    this.#cut = false;
    for (const pass of this.#waiting.splice(0)) pass();
    for (const link of this.links) link.mend();
  }

  /** Passes now, or when the way is mended. */
  pass(go: () => void): void {
    if (this.#cut) this.#waiting.push(go);
    else go();
  }
}

type Side = 'machine' | 'server';

/** How long one message travels, in ms. */
const TRAVEL_MS = { least: 1, most: 12, prompt: 300, slow: 3000 };

/** One connection. */
export class Link {
  readonly #setting: Setting;
  readonly #way: Way;
  readonly #ends: Readonly<Record<Side, End>>;
  readonly #over: Record<Side, boolean> = { machine: false, server: false };
  readonly #arrives: Record<Side, number> = { machine: 0, server: 0 };
  readonly #sent: Record<Side, number> = { machine: 0, server: 0 };
  readonly #taken: Record<Side, number> = { machine: 0, server: 0 };
  #lost = false;
  /** Since when it is not well, in ms; undefined while it is. */
  troubledAt: number | undefined;
  /** Told when nothing passes any more, and when it passes again. */
  onTrouble: (() => void) | undefined;
  onMended: (() => void) | undefined;

  constructor(setting: Setting, way: Way, machine: End, server: End) {
    this.#setting = setting;
    this.#way = way;
    this.#ends = { machine, server };
    way.links.add(this);
  }

  /** Whether both ends hold it and everything passes. */
  get isHealthy(): boolean {
    return !this.#over.machine && !this.#over.server && !this.#lost && !this.#way.isCut;
  }

  /** Nothing passes from now on, whoever knows it. */
  trouble(): void {
    this.troubledAt ??= this.#setting.timeline.now;
    this.onTrouble?.();
  }

  /** The way is mended: it is well again, where both ends still hold it. */
  mend(): void {
    if (!this.isHealthy) return;
    this.troubledAt = undefined;
    this.onMended?.();
  }

  isOver(side: Side): boolean {
    return this.#over[side];
  }

  /** Whether it is healthy and nothing on it takes long. */
  get isPrompt(): boolean {
    const latest = Math.max(this.#arrives.machine, this.#arrives.server);
    return this.isHealthy && latest - this.#setting.timeline.now <= TRAVEL_MS.prompt;
  }

  /** Says something; what is said after the end is said to nobody. */
  say(from: Side, id: number, body: unknown): void {
    if (this.#over[from]) return;
    this.#sent[from] += 1;
    const message: Message = { id, sequence: this.#sent[from], body };
    const { random, weather } = this.#setting;
    if (random.chance(weather.lost)) return this.#lose(from);
    this.#carry(from, message);
    if (random.chance(weather.repeated)) this.#carry(from, message);
  }

  /** One side ends it; the other one learns that as far as the way lets it. */
  end(by: Side, goodbye = false): void {
    if (this.#over[by]) return;
    this.#over[by] = true;
    this.troubledAt ??= this.#setting.timeline.now;
    const other = otherOf(by);
    const { timeline, random } = this.#setting;
    timeline.after(random.between(TRAVEL_MS.least, TRAVEL_MS.most), () =>
      this.#way.pass(() => this.#close(other, goodbye)),
    );
    this.#leave();
  }

  /** Both ends lose it at once: a cut that each of them sees. */
  breakOff(): void {
    this.#close('machine', false);
    this.#close('server', false);
  }

  #carry(from: Side, message: Message): void {
    const { random, timeline, weather } = this.#setting;
    const to = otherOf(from);
    const travels = random.chance(weather.slow)
      ? random.between(TRAVEL_MS.most, TRAVEL_MS.slow)
      : random.between(TRAVEL_MS.least, TRAVEL_MS.most);
    // What travels one way arrives in its order, unless the weather is against it.
    const inOrder = random.chance(weather.reordered) ? 0 : this.#arrives[to];
    const at = Math.max(timeline.now + travels, inOrder);
    this.#arrives[to] = Math.max(at, this.#arrives[to]);
    if (at - timeline.now > TRAVEL_MS.prompt) this.#way.onSlow?.();
    timeline.after(at - timeline.now, () => this.#way.pass(() => this.#deliver(to, message)));
  }

  #deliver(to: Side, message: Message): void {
    if (this.#over[to]) return;
    if (message.sequence !== this.#taken[to] + 1) {
      // A repeated or reordered message is nobody's word; whoever meets one ends the connection.
      this.#fail(to);
      return;
    }
    this.#taken[to] = message.sequence;
    this.#ends[to].take(this, message);
  }

  /** Nothing comes after what was lost: whoever waits for it gives the connection up. */
  #lose(from: Side): void {
    this.#lost = true;
    this.trouble();
    const { timeline, random } = this.#setting;
    timeline.after(random.between(1000, 4500), () => {
      this.#fail(random.chance(0.5) ? from : otherOf(from));
    });
  }

  /** One side gives the connection up by itself. */
  #fail(side: Side): void {
    if (this.#over[side]) return;
    this.end(side);
    this.#ends[side].ended(this, false);
  }

  #close(side: Side, goodbye: boolean): void {
    if (this.#over[side]) return;
    this.#over[side] = true;
    this.troubledAt ??= this.#setting.timeline.now;
    this.#leave();
    this.#ends[side].ended(this, goodbye);
  }

  #leave(): void {
    if (this.#over.machine && this.#over.server) this.#way.links.delete(this);
  }
}

function otherOf(side: Side): Side {
  return side === 'machine' ? 'server' : 'machine';
}
