/* A mutant: a source file of the protocol with one piece of text replaced. */
import { functionAt, readSource } from './source.ts';

/** What is taken from the protocol: a sync, the order of two steps, a check, or a flag of a rename. */
export type Kind = 'sync' | 'order' | 'check' | 'flag';

/** One mutant. `id` names file, function and text, so that it stays the same when lines move. */
export interface Mutant {
  readonly id: string;
  readonly kind: Kind;
  readonly file: string;
  readonly start: number;
  readonly end: number;
  readonly replacement: string;
}

/** The source of a mutant. Throws where the file is another than the one that it was made of. */
export function mutated({ file, start, end, replacement }: Mutant): string {
  const source = readSource(file);
  return source.slice(0, start) + replacement + source.slice(end);
}

/** Makes mutants of one file and numbers those that would have one name. */
export class Maker {
  readonly made: Mutant[] = [];
  readonly source: string;
  readonly #file: string;
  readonly #seen = new Map<string, number>();

  constructor(file: string) {
    this.#file = file;
    this.source = readSource(file);
  }

  /** Replaces a piece of the file. `what` says it in words. */
  replace(kind: Kind, start: number, end: number, replacement: string, what: string): void {
    const words = what.replaceAll(/\s+/g, ' ').trim();
    const name = `${this.#file.replace('helpers/promote/', '')} ${functionAt(this.source, start)}: ${words}`;
    const nth = (this.#seen.get(name) ?? 0) + 1;
    this.#seen.set(name, nth);
    const id = nth === 1 ? name : `${name} (${nth})`;
    this.made.push({ id, kind, file: this.#file, start, end, replacement });
  }
}
