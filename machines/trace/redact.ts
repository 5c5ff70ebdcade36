import type { Json } from './format.ts';

/**
 * What a trace may show of a payload. `kept` shows a number, a flag, null or a short text as it is; `digested` shows
 * `sha256:<64 hex>` of a text in its place, so that equal values still compare equal; an object names its fields, a list of one
 * rule holds for each entry. Whatever no rule names is dropped.
 */
export type Rule = 'kept' | 'digested' | { readonly [field: string]: Rule } | readonly [Rule];

/** Rules of one machine by event type; `xstate.init` holds those of the input. A type may end in `*`. An event without a row shows its type alone. */
export type PayloadRules = { readonly [eventType: string]: { readonly [field: string]: Rule } };

/** SHA-256 of a text in UTF-8, as 64 lower-case hexadecimal digits; given by the caller, since machines import nothing of the host. */
export type Digester = (text: string) => string;

/** Longest text that is kept as it is, in UTF-16 units; a longer one is digested. */
export const KEPT_LIMIT = 160;

/**
 * Payload of an event as a trace may show it.
 *
 * THREAT: a trace is made to be handed on. A digest of a value with few possibilities (a code of eight digits, a yes or no) tells the
 * value to whoever tries them all, so such a field is dropped, never digested (test/machines/trace/redact.test.ts).
 */
export function redact(
  rules: PayloadRules,
  event: { readonly type: string },
  digest: Digester,
): { readonly [field: string]: Json } {
  const rule = rules[event.type] ?? rules[family(rules, event.type)] ?? {};
  const shown = apply(rule, event, digest);
  return isRecord(shown) ? shown : {};
}

function family(rules: PayloadRules, type: string): string {
  return Object.keys(rules).find((key) => key.endsWith('*') && type.startsWith(key.slice(0, -1))) ?? '';
}

function apply(rule: Rule, value: unknown, digest: Digester): Json | undefined {
  if (rule === 'kept') return keep(value, digest);
  if (rule === 'digested') return value === null ? null : typeof value === 'string' ? sealed(value, digest) : undefined;
  if (isList(rule)) {
    if (!Array.isArray(value)) return undefined;
    return value.map((one) => apply(rule[0], one, digest) ?? null);
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value === null ? null : undefined;
  const shown: Record<string, Json> = {};
  for (const [field, inner] of Object.entries(rule)) {
    const one = apply(inner, Reflect.get(value, field), digest);
    if (one !== undefined) shown[field] = one;
  }
  return shown;
}

function keep(value: unknown, digest: Digester): Json | undefined {
  if (value === null || typeof value === 'boolean') return value;
  if (typeof value === 'number') return Number.isFinite(value) ? value : undefined;
  if (typeof value !== 'string') return undefined;
  return value.length <= KEPT_LIMIT ? value : sealed(value, digest);
}

function sealed(value: string, digest: Digester): string {
  return `sha256:${digest(value)}`;
}

function isList(rule: Rule): rule is readonly [Rule] {
  return Array.isArray(rule);
}

function isRecord(value: Json | undefined): value is { readonly [field: string]: Json } {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
