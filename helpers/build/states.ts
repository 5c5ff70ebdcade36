/*
 * machines/STATES.md: for each machine its diagram, what holds in each state and what may be asked for there, and what each state
 * does with each event. Written by `npm run docs`, compared by the check.
 */
import type { AnyStateMachine, AnyStateNode, AnyTransitionDefinition } from 'xstate';

import type { StateMeta } from '../../machines/meta.ts';
import { traced } from '../../machines/registry.ts';

const SUBJECTS: { readonly [machine: string]: string } = {
  executor: 'Lifecycle of one executor, kept by the control plane.',
  'descriptor-review': 'Review of one descriptor revision, kept by the control plane.',
  pairing: 'One pairing, kept by the control plane.',
  joining: 'The same pairing on the machine.',
  command: 'One command, kept by the control plane.',
  execution: 'The same command on the machine, by the phases of its ledger.',
  promotion: 'One promotion, kept by the control plane.',
  daemon: 'One executor daemon.',
};

/** Text of machines/STATES.md. */
export function render(): string {
  const head = [
    '# States',
    '',
    'Generated from `machines/` by `npm run docs`; a stale one fails the check. What a state does not permit may not be asked for',
    'while it stands; an inner state permits what its outer states do as well, and a command of a daemon is a machine of its own. An',
    'event that leads nowhere is taken where it stands: it changes data, is refused with a code, or is dropped by name.',
    '',
    ...Object.keys(traced).map((id) => `- [${id}](#${id}): ${SUBJECTS[id] ?? ''}`),
  ];
  const sections = Object.values(traced).map(({ machine }) => section(machine));
  return `${[...head, ...sections.flat()].join('\n')}\n`;
}

function section(machine: AnyStateMachine): string[] {
  const nodes = below(machine.root);
  return [
    '',
    `## ${machine.id}`,
    '',
    `${SUBJECTS[machine.id] ?? ''} Version ${machine.version ?? ''}.`,
    '',
    '```mermaid',
    'stateDiagram-v2',
    ...drawing(machine.root, '  '),
    ...nodes.flatMap(arrows),
    '```',
    '',
    '| state | holds | permits |',
    '|---|---|---|',
    ...nodes.map((node) => {
      const { holds, permits } = metaOf(node);
      const list = permits.map((permit) => `\`${permit}\``).join(', ');
      return `| \`${nameOf(node)}\`${node.type === 'final' ? ' (end)' : ''} | ${holds} | ${list === '' ? 'nothing' : list} |`;
    }),
    '',
    '| state | event | condition | leads to | actions |',
    '|---|---|---|---|---|',
    ...[machine.root, ...nodes].flatMap(rows),
  ];
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

/** Every state below a node, outer before inner, in the order in which they are written. */
export function below(node: AnyStateNode): AnyStateNode[] {
  return Object.values(node.states).flatMap((child) => [child, ...below(child)]);
}

function drawing(node: AnyStateNode, indent: string): string[] {
  const children = Object.values(node.states);
  const initial = node.initial?.target[0];
  return [
    ...(initial === undefined ? [] : [`${indent}[*] --> ${alias(initial)}`]),
    ...children.flatMap((child) => {
      const label = `${indent}state "${child.key}" as ${alias(child)}`;
      const inner = drawing(child, `${indent}  `);
      return inner.length === 0 ? [label] : [`${label} {`, ...inner, `${indent}}`];
    }),
    ...children.filter(({ type }) => type === 'final').map((child) => `${indent}${alias(child)} --> [*]`),
  ];
}

function arrows(node: AnyStateNode): string[] {
  const seen = new Set<string>();
  for (const transition of transitionsOf(node)) {
    for (const target of transition.target ?? []) {
      seen.add(`  ${alias(node)} --> ${alias(target)}: ${eventName(transition.eventType)}`);
    }
  }
  return [...seen];
}

function rows(node: AnyStateNode): string[] {
  return transitionsOf(node).map((transition) => {
    const targets = (transition.target ?? []).map((target) => `\`${nameOf(target)}\``).join(', ');
    const actions = transition.actions.map(actionName).join(', ');
    const cells = [
      node.parent === undefined ? 'any' : `\`${nameOf(node)}\``,
      eventName(transition.eventType),
      guardName(transition.guard),
      targets === '' ? 'stays' : targets,
      actions,
    ];
    return `| ${cells.join(' | ')} |`;
  });
}

function transitionsOf(node: AnyStateNode): AnyTransitionDefinition[] {
  return [...(node.always ?? []), ...[...node.transitions.values()].flat()];
}

function nameOf(node: AnyStateNode): string {
  return node.path.join('.');
}

function alias(node: AnyStateNode): string {
  return node.path.join('__').replaceAll('-', '_');
}

/** An event as a reader says it; mermaid takes no colon or quote in a label. */
function eventName(type: string): string {
  const [, kind, rest] = /^xstate\.(after|done\.actor|error\.actor)\.(.+)$/.exec(type) ?? [];
  if (kind === undefined || rest === undefined) return type === '' ? 'at once' : type;
  if (kind === 'after') return `after ${rest.split('.')[0] ?? ''}`;
  const actor = rest === '*' ? 'a command' : rest;
  return kind === 'done.actor' ? `${actor} done` : `${actor} broke`;
}

function guardName(guard: unknown): string {
  if (guard === undefined) return '';
  if (typeof guard === 'string') return guard;
  const type: unknown = typeof guard === 'object' && guard !== null && 'type' in guard ? guard.type : undefined;
  return typeof type === 'string' ? type + constant(guard) : '';
}

function actionName(action: unknown): string {
  if (typeof action === 'string') return action;
  const type: unknown = typeof action === 'object' && action !== null && 'type' in action ? action.type : undefined;
  return typeof type === 'string' ? type + constant(action) : '';
}

/** Parameters that are written as values, not computed from the event. */
function constant(named: unknown): string {
  const params: unknown = typeof named === 'object' && named !== null && 'params' in named ? named.params : undefined;
  if (typeof params === 'string') return ` ${params}`;
  if (typeof params !== 'object' || params === null) return '';
  return ` ${Object.values(params)
    .filter((value) => typeof value === 'string')
    .join(' ')}`.trimEnd();
}
