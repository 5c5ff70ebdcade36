import { Draw } from '../campaigns/campaign.ts';
import { decoders } from './decoders.ts';
import { fire } from './fuzz.ts';

/** Inputs a decoder in the suite; the campaign makes a thousand times as many. */
const SHOTS = 1500;
const SEED = process.env['NESSIE_FUZZ_SEED'] ?? 'suite';

describe(`decoders under ${SHOTS} damaged inputs each, seed ${SEED}`, function () {
  this.timeout(60_000);

  for (const decoder of decoders) {
    it(`${decoder.name}: answers or refuses, at once, and keeps nothing`, () => {
      fire(decoder, new Draw(`${SEED}:${decoder.name}`), SHOTS);
    });
  }
});
