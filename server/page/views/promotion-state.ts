import type { Tone } from '../standing.ts';

const tones: Readonly<Record<string, Tone>> = {
  promoted: 'good',
  refused: 'bad',
  failed: 'bad',
  'rolled-back': 'bad',
  cancelled: 'quiet',
  expired: 'quiet',
};

/** How a state of machines/promotion looks; whatever is under way waits. */
export function promotionTone(state: string): Tone {
  return tones[state] ?? 'waiting';
}

/** Whether a promotion has ended, so that another may be prepared. */
export function hasEnded(state: string): boolean {
  return state in tones;
}
