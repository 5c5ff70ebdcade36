/*
 * What a machine looks like without running: its states in the order in which they are written, its transitions, and how a person
 * says an event. Diagrams, tables, traces in words and walks read it here, so that all of them say the same.
 */
import type { AnyStateNode, AnyTransitionDefinition, StateValue } from 'xstate';
import type { Permit, StateMeta } from './meta.ts';

/** One sentence for each machine, by its id. */
export const SUBJECTS: { readonly [machine: string]: string } = {
  executor: 'Lifecycle of one executor, kept by the control plane.',
  'descriptor-review': 'Review of one descriptor revision, kept by the control plane.',
  pairing: 'One pairing, kept by the control plane.',
  joining: 'The same pairing on the machine.',
  command: 'One command, kept by the control plane.',
  execution: 'The same command on the machine, by the phases of its ledger.',
  promotion: 'One promotion, kept by the control plane.',
  daemon: 'One executor daemon.',
};

/** Every state below a node, outer before inner, in the order in which they are written. */
export function below(node: AnyStateNode): AnyStateNode[] {
  return Object.values(node.states).flatMap((child) => [child, ...below(child)]);
}

/** What a state says of itself. Throws where one says nothing. */
export function metaOf(node: AnyStateNode): StateMeta {
  const meta: unknown = node.meta;
  if (typeof meta !== 'object' || meta === null || !('holds' in meta) || !('permits' in meta)) {
    throw new TypeError(`state ${node.id} has no meta with holds and permits`);
  }
  // Every machine declares StateMeta as its `meta`, so the compiler has checked what was written there.
  return meta as StateMeta;
}

/** Permits of a state with those of the states around it, each once. */
export function permitsOf(node: AnyStateNode): readonly Permit[] {
  const outer = node.parent?.parent === undefined ? [] : permitsOf(node.parent);
  return [...new Set([...outer, ...metaOf(node).permits])];
}

/** Path of a state below its machine, such as `online.heard`; empty for the machine itself. */
export function nameOf(node: AnyStateNode): string {
  return node.path.join('.');
}

/** Every way out of a state of its own, in the order in which they are tried. */
export function transitionsOf(node: AnyStateNode): AnyTransitionDefinition[] {
  return [...(node.always ?? []), ...[...node.transitions.values()].flat()];
}

/** Names of the states that a state value stands for, outer before inner: `{online: 'heard'}` is `online` and `online.heard`. */
export function namesIn(value: StateValue, outer = ''): string[] {
  if (typeof value === 'string') return [`${outer}${value}`];
  return Object.entries(value).flatMap(([key, inner]) =>
    inner === undefined ? [] : [`${outer}${key}`, ...namesIn(inner, `${outer}${key}.`)],
  );
}

/** An event as a reader says it, without the marks of xstate. */
export function eventName(type: string): string {
  const [, kind, rest] = /^xstate\.(after|done\.actor|error\.actor)\.(.+)$/.exec(type) ?? [];
  if (kind === undefined || rest === undefined) return type === '' ? 'at once' : type;
  if (kind === 'after') return `after ${rest.split('.')[0] ?? ''}`;
  const actor = rest === '*' ? 'a command' : rest;
  return kind === 'done.actor' ? `${actor} done` : `${actor} broke`;
}

/** Name of a guard with the parameters that are written as values; empty where there is none. */
export function guardName(guard: unknown): string {
  return guard === undefined ? '' : named(guard);
}

/** Name of an action with the parameters that are written as values. */
export function actionName(action: unknown): string {
  return named(action);
}

function named(one: unknown): string {
  if (typeof one === 'string') return one;
  const type: unknown = typeof one === 'object' && one !== null && 'type' in one ? one.type : undefined;
  return typeof type === 'string' ? type + constant(one) : '';
}

/** Parameters that are written as values, not computed from the event. */
function constant(one: unknown): string {
  const params: unknown = typeof one === 'object' && one !== null && 'params' in one ? one.params : undefined;
  if (typeof params === 'string') return ` ${params}`;
  if (typeof params !== 'object' || params === null) return '';
  return ` ${Object.values(params)
    .filter((value) => typeof value === 'string')
    .join(' ')}`.trimEnd();
}
