/* Damaged inputs for every decoder: 1,000 for each of them a round. */
import { decoders } from '../faults/decoders.ts';
import { fire } from '../faults/fuzz.ts';
import type { Campaign } from './campaign.ts';

const SHOTS = 1000;

/** `npm run campaign -- fuzz`. */
export const fuzz: Campaign = {
  name: 'fuzz',
  rounds: 1000,
  begin: () =>
    Promise.resolve({
      round(draw) {
        for (const decoder of decoders) fire(decoder, draw, SHOTS);
        return Promise.resolve(`${SHOTS} inputs for each of ${decoders.length} decoders`);
      },
      end: () => Promise.resolve(),
    }),
};
