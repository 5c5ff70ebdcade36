import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js';
import type { CommandEnd } from '../commands/outcomes.ts';
import type { Context } from '../context.ts';
import type { Refusal } from '../refusal.ts';
import { frameUntrusted } from './rules.ts';

/** What a model reads of a call that the control plane refused: nothing of a machine is in it. */
export function refusedAnswer(refusal: Refusal): CallToolResult {
  const remedy = refusal.remedy === undefined ? '' : ` ${refusal.remedy}`;
  return failure(`Refused by the control plane, nothing ran: ${refusal.code}. ${refusal.message}${remedy}`);
}

/** What a model reads of a call that broke the control plane: words, and none of the error's own. */
export function brokenAnswer(): CallToolResult {
  return failure(
    'The control plane failed (INTERNAL): this did not work, and whether it ran is not known. Look at the state of the files before ' +
      'trying again; what went wrong is in the control plane’s log.',
  );
}

/** What a model reads of a call that ended, or that nobody has heard of within the tool's own time. */
export function answerOf(context: Pick<Context, 'random'>, end: CommandEnd | undefined): CallToolResult {
  const framed = end?.result === undefined ? '' : `\n${frameUntrusted(end.result, context.random(16).toString('hex'))}`;
  const code = end?.code ? ` (${end.code})` : '';
  switch (end?.outcome) {
    case 'succeeded':
      return { content: [{ type: 'text', text: framed.trimStart() || 'Done.' }] };
    case 'failed':
      return failure(`Failed on the machine${code}: it was tried and did not work.${framed}`);
    case 'refused': {
      const side = end.gate === 'machine' ? 'the machine, by its own policy or checks' : 'the control plane';
      return failure(`Refused by ${side}${code}; nothing ran.${framed}`);
    }
    case 'cancelled':
      return failure(`Cancelled${code}: somebody asked for it to end.${framed}`);
    case 'expired':
      return failure(`Expired${code}: its time ran out.${framed}`);
    case 'unknown':
    case undefined:
      return failure(
        'Unknown outcome: the last acknowledgement was lost or the lifetime passed. It may or may not have happened and is not ' +
          'repeated; a late receipt may still settle it. Look at the state of the files before trying again.',
      );
  }
}

function failure(text: string): CallToolResult {
  return { isError: true, content: [{ type: 'text', text }] };
}
