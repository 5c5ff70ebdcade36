/* How far a long run is, on standard error: one line that is rewritten each second on a terminal, a line every ten seconds elsewhere. */

const TERMINAL_MS = 1000;
const ELSEWHERE_MS = 10_000;

/** Tells how far something is. */
export class ProgressLine {
  readonly #isTerminal = process.stderr.isTTY;
  readonly #began = performance.now();
  readonly #timer: NodeJS.Timeout;
  #text = '';

  constructor() {
    this.#timer = setInterval(() => this.#print(), this.#isTerminal ? TERMINAL_MS : ELSEWHERE_MS);
    this.#timer.unref();
  }

  /** What the next line says. */
  tell(text: string): void {
    this.#text = text;
  }

  /** Prints no further line. */
  end(): void {
    clearInterval(this.#timer);
    if (this.#isTerminal && this.#text !== '') process.stderr.write('\n');
  }

  #print(): void {
    if (this.#text === '') return;
    const line = `${this.#text}, ${Math.round((performance.now() - this.#began) / 1000)} s`;
    process.stderr.write(this.#isTerminal ? `\r\u001b[K${line}` : `${line}\n`);
  }
}
