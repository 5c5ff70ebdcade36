/* What a promote that is going to die is told, by a file in the configuration folder, and what one that lives tells. */

/** Name of the order in the configuration folder, which promote may read and no promote but the victim does. */
export const ORDER = 'order.json';
/** Name of the victim's numbering in promote's own folder, which it may write. */
export const NUMBERING = 'numbering.json';

/** Where to die: before or after the call of this number. */
export interface Kill {
  readonly number: number;
  readonly side: 'before' | 'after';
}

/** Spelling of a kill, as `--only` takes it. */
export function nameOf({ number, side }: Kill): string {
  return `${number}:${side}`;
}

/** Reads a kill from its spelling, or undefined for anything else. */
export function killFrom(text: string): Kill | undefined {
  const [, number, side] = /^([1-9]\d{0,5}):(before|after)$/.exec(text) ?? [];
  if (number === undefined) return undefined;
  return { number: Number(number), side: side === 'before' ? 'before' : 'after' };
}
