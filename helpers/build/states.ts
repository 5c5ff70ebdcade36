/*
 * machines/STATES.md: for each machine its diagram, what holds in each state and what may be asked for there, and what each state
 * does with each event. Written by `npm run docs`, compared by the check.
 */
import type { AnyStateMachine, AnyStateNode } from 'xstate';

import { traced } from '../../machines/registry.ts';
import { altOf } from './diagrams.ts';
import {
  actionName,
  below,
  eventName,
  guardName,
  metaOf,
  nameOf,
  SUBJECTS,
  transitionsOf,
} from '../../machines/shape.ts';

/** Text of machines/STATES.md. */
export function render(): string {
  const head = [
    '# States',
    '',
    'Generated from `machines/` by `npm run docs`; a stale one fails the check. What a state does not permit may not be asked for',
    'while it stands; an inner state permits what its outer states do as well, and a command of a daemon is a machine of its own. An',
    'event that leads nowhere is taken where it stands: it changes data, is refused with a code, or is dropped by name.',
    '',
    ...Object.keys(traced).map(
      (id) => `- [${id}](#${id}): ${SUBJECTS[id] ?? ''} [Its page](../docs/machines/${id}.md).`,
    ),
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
    `![${altOf(machine.id)}](../docs/machines/${machine.id}.svg)`,
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
