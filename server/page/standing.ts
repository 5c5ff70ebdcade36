import type { ExecutorSummary } from './answers.ts';
import type { WordKey } from './words.tsx';

/** How a state looks: its colour is never its only sign. */
export type Tone = 'good' | 'quiet' | 'waiting' | 'bad';

/** What a machine is doing, honestly: the word, and the sentence of what that means. */
export interface Standing {
  readonly tone: Tone;
  readonly word: WordKey;
  readonly meaning: WordKey;
}

type Facts = Pick<ExecutorSummary, 'state' | 'accepting' | 'confirmedRevision' | 'pendingRevision'>;

/** Reads a machine's state as people should: paused and not reviewed are told apart from online. */
export function standingOf({ state, accepting, confirmedRevision, pendingRevision }: Facts): Standing {
  switch (state) {
    case 'pending_pairing':
      return { tone: 'waiting', word: 'state.pending_pairing', meaning: 'state.pending_pairing.meaning' };
    case 'draining':
      return { tone: 'waiting', word: 'state.draining', meaning: 'state.draining.meaning' };
    case 'error':
      return { tone: 'bad', word: 'state.error', meaning: 'state.error.meaning' };
    case 'revoked':
      return { tone: 'quiet', word: 'state.revoked', meaning: 'state.revoked.meaning' };
    case 'offline':
      return accepting
        ? { tone: 'quiet', word: 'state.offline', meaning: 'state.offline.meaning' }
        : { tone: 'quiet', word: 'state.offline-paused', meaning: 'state.offline-paused.meaning' };
    case 'online':
      if (!accepting) return { tone: 'waiting', word: 'state.paused', meaning: 'state.paused.meaning' };
      if (confirmedRevision === 0) {
        return { tone: 'waiting', word: 'state.unreviewed', meaning: 'state.unreviewed.meaning' };
      }
      return pendingRevision === null
        ? { tone: 'good', word: 'state.online', meaning: 'state.online.meaning' }
        : { tone: 'good', word: 'state.online', meaning: 'state.online-pending.meaning' };
  }
}
