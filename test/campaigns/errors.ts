/* Errors drawn from the whole product of calls and errnos of an apply and of the recoveries after it, once or for good. */
import { troublesOf } from '../faults/errors/errnos.ts';
import type { Trouble } from '../faults/errors/errnos.ts';
import { callsOfRecovery, cleanApply, playApply, playRecovery } from '../faults/errors/judge.ts';
import type { Clean } from '../faults/errors/judge.ts';
import type { Campaign, Draw } from './campaign.ts';

/** Cases of one round. */
const CASES = 25;

interface Drawn {
  readonly kind: 'refused';
  readonly at: number;
  readonly errno: Trouble;
  readonly lasts: boolean;
}

function drawn(draw: Draw, calls: Clean['calls']): Drawn {
  const at = draw.below(calls.length) + 1;
  const name = calls[at - 1];
  if (name === undefined) throw new RangeError('nothing to refuse');
  return { kind: 'refused', at, errno: draw.from(troublesOf(name)), lasts: draw.below(2) === 0 };
}

async function telling(fault: Drawn, where: string, play: () => Promise<string>): Promise<void> {
  try {
    await play();
  } catch (cause) {
    const what = cause instanceof Error ? cause.message : String(cause);
    throw new Error(`${where}, ${JSON.stringify(fault)}: ${what}`, { cause });
  }
}

async function round(clean: Clean, draw: Draw): Promise<string> {
  const isRecovery = draw.below(2) === 0;
  // After the mark nothing of the apply is without something to recover.
  const first = (clean.renames[0] ?? 0) + 5;
  const moment = first + draw.below((clean.renames.at(-1) ?? 0) - first);
  const calls = isRecovery ? await callsOfRecovery(moment) : clean.calls;
  for (let index = 0; index < CASES; index += 1) {
    const fault = drawn(draw, calls);
    if (isRecovery) await telling(fault, `ended at ${moment}`, () => playRecovery(clean, moment, fault));
    else await telling(fault, 'apply', () => playApply(clean, fault));
  }
  return `${CASES} errors in ${isRecovery ? 'recoveries' : 'applies'}`;
}

/** `npm run campaign -- errors`. */
export const errors: Campaign = {
  name: 'errors',
  rounds: 400,
  begin: async () => {
    const clean = await cleanApply();
    return { round: (draw) => round(clean, draw), end: () => Promise.resolve() };
  },
};
