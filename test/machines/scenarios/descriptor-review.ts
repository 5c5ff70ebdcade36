import type { Golden } from './scenario.ts';

const input = { executorId: 'exec-1', revision: 4, descriptorDigest: 'descriptor-4' };
const arrived = (revision: number, descriptorDigest: string) => ({
  type: 'descriptor.arrived',
  revision,
  descriptorDigest,
});

export const descriptorReviewGoldens: readonly Golden[] = [
  {
    name: 'confirmed',
    tells: 'Only the digest that was shown can be confirmed.',
    input,
    events: [
      { type: 'descriptor.confirm', descriptorDigest: 'descriptor-3' },
      { type: 'descriptor.confirm', descriptorDigest: 'descriptor-4' },
    ],
  },
  {
    name: 'refused',
    tells: 'Only the digest that was shown can be refused.',
    input,
    events: [
      { type: 'descriptor.refuse', descriptorDigest: 'descriptor-3' },
      { type: 'descriptor.refuse', descriptorDigest: 'descriptor-4' },
    ],
  },
  {
    name: 'superseded',
    tells: 'A newer revision ends the review; an older one, or other bytes under its number, are refused.',
    input,
    events: [
      arrived(4, 'descriptor-4'),
      arrived(3, 'descriptor-3'),
      arrived(4, 'descriptor-4b'),
      arrived(5, 'descriptor-5'),
    ],
  },
];
