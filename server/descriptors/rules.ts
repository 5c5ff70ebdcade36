import type { Descriptor } from '../../helpers/protocol/descriptor.ts';

/** One fact that a revision changes, as the review page lists it; null where the fact is new or gone. */
export interface Difference {
  /** Name of the fact, as in `limits.runtimeMs` or `operations`. */
  readonly fact: string;
  readonly before: string | null;
  readonly after: string | null;
}

type Plain = string | number | boolean | readonly Plain[] | { readonly [key: string]: Plain };

/** Every fact that differs between the revision in force and a newer one, in the order of their names; lists are compared entry by entry (N-084). */
export function differencesOf(before: Descriptor | undefined, after: Descriptor): readonly Difference[] {
  const old = new Map(before === undefined ? [] : factsOf('', before));
  const next = new Map(factsOf('', after));
  const names = [...new Set([...old.keys(), ...next.keys()])].toSorted((a, b) => (a < b ? -1 : 1));
  return names
    .filter((name) => old.get(name) !== next.get(name))
    .map((name) => ({
      fact: name.replace(/\[.*\]$/, ''),
      before: old.get(name) ?? null,
      after: next.get(name) ?? null,
    }));
}

function factsOf(name: string, value: Plain): [string, string][] {
  if (Array.isArray(value)) return value.map((item: Plain) => [`${name}[${JSON.stringify(item)}]`, textOf(item)]);
  if (typeof value !== 'object') return [[name, textOf(value)]];
  return Object.entries(value).flatMap(([key, item]) => factsOf(name === '' ? key : `${name}.${key}`, item));
}

function textOf(value: Plain): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** Operations that agents could call on the confirmed revision and can no longer on this one, and the other way round. */
export function operationChanges(
  before: Descriptor | undefined,
  after: Descriptor,
): { readonly added: string[]; readonly removed: string[] } {
  const old = before?.operations ?? [];
  return {
    added: after.operations.filter((key) => !old.includes(key)),
    removed: old.filter((key) => !after.operations.includes(key)),
  };
}
