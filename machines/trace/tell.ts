/*
 * A line of a trace in words, for a person who does not know the machine: what happened, what became of the state, what was asked
 * for. It imports no machine, so that a page in a browser says the same as a terminal.
 */
import type { StateValue } from 'xstate';
import type { Json, TraceLine } from './format.ts';

/** Longest text of a payload that a sentence repeats, in UTF-16 units. */
const BRIEF = 40;
/** Most facts of a payload that a sentence repeats. */
const FACTS = 5;

/** What is told of: a line without its place in the trace. */
export type Told = Pick<TraceLine, 'event' | 'before' | 'after' | 'actions'>;

/** One to three sentences about a line. */
export function tell(line: Told): string {
  return [happened(line), ended(line), asked(line)].filter((sentence) => sentence !== '').join(' ');
}

/** A state value as a person says it: `online.heard` for `{online: 'heard'}`. */
export function stateWords(value: StateValue): string {
  if (typeof value === 'string') return value;
  const parts = Object.entries(value).map(([key, inner]) =>
    inner === undefined ? key : `${key}.${stateWords(inner)}`,
  );
  return parts.join(' and ');
}

function happened({ event, before, after, actions }: Told): string {
  if (before === null) return `It begins in ${stateWords(after.value)}.`;
  const [was, is] = [stateWords(before.value), stateWords(after.value)];
  const cause = causeOf(event);
  if (actions.includes('refuse')) return `${cause} in ${was}: that is refused, and nothing changes.`;
  return was === is ? `${cause}; it stays in ${is}.` : `${cause}: it goes from ${was} to ${is}.`;
}

function ended({ after }: Told): string {
  if (after.status === 'active') return '';
  return after.status === 'done' ? 'That is its end.' : 'The machine broke there.';
}

function asked({ actions }: Told): string {
  const names = [...new Set(actions.filter((action) => action !== 'refuse').map(actionWords))];
  return names.length === 0 ? '' : `It asks for ${names.join(', ')}.`;
}

/** An event as a sentence begins with it. */
function causeOf({ type, payload }: TraceLine['event']): string {
  const [, kind, rest = ''] = /^xstate\.(after|done\.actor|error\.actor)\.(.+)$/.exec(type) ?? [];
  if (kind === 'after') return `The delay ${rest.split('.')[0] ?? ''} passed`;
  if (kind === 'done.actor') return `${rest} was done${briefly(payload['output'])}`;
  if (kind === 'error.actor') return `${rest} broke`;
  return `${type} came${briefly(payload)}`;
}

/** Short facts of a payload in brackets after a blank, as ` (by person, epoch 3)`; empty where it has none. */
export function briefly(payload: Json | undefined): string {
  const facts = factsOf(payload, 1).slice(0, FACTS);
  return facts.length === 0 ? '' : ` (${facts.join(', ')})`;
}

/** Facts of an object, those of an object in it too. */
function factsOf(value: Json | undefined, depth: number): string[] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [];
  return Object.entries(value).flatMap(([field, inner]) => {
    if (typeof inner === 'object' && inner !== null) return depth === 0 ? [] : factsOf(inner, depth - 1);
    return inner === null || String(inner).length > BRIEF ? [] : [`${field} ${String(inner)}`];
  });
}

/** An action as a person says it; xstate's own by what they do. */
function actionWords(action: string): string {
  const [, kind = '', about = ''] = /^xstate\.(\w+)\((.*)\)$/.exec(action) ?? [];
  const words: { readonly [kind: string]: string } = {
    spawnChild: `the actor ${about}`,
    stopChild: `an end of the actor ${about}`,
    raise: about.startsWith('xstate.after.') ? `the delay ${about.split('.')[2] ?? ''}` : `the event ${about}`,
    cancel: `no more of the delay ${about.split('.')[2] ?? about}`,
    sendTo: `a message to ${about.split(', ')[0] ?? ''}: ${about.split(', ')[1] ?? ''}`,
    emit: `a notice: ${about}`,
  };
  return words[kind] ?? action;
}
