import type { AnyEventObject } from 'xstate';

import type { Golden } from './scenario.ts';

const input = { executorId: 'exec-1' };
const confirmed = { type: 'pairing.confirmed', fingerprint: 'key-a' };
const proved = { type: 'executor.proved', fingerprint: 'key-a' };
const foreign = { type: 'executor.proved', fingerprint: 'key-b' };
const damaged = { type: 'executor.damaged', fault: 'ledger-damaged' };
const decisions = [{ type: 'access.changed' }, { type: 'descriptor.reviewed' }];
const online = [confirmed, proved];
const offline = [...online, { type: 'executor.silent' }];
const draining = [...online, { type: 'executor.drain' }];
const error = [...online, damaged];

const ends = (state: string, way: readonly AnyEventObject[]): Golden[] =>
  [
    { name: 'disconnected', event: { type: 'executor.disconnect', by: 'administrator' } },
    { name: 'ended-by-owner', event: { type: 'executor.disconnect', by: 'organization-owner' } },
    { name: 'deleted', event: { type: 'executor.delete' } },
    { name: 'replaced', event: { type: 'executor.replaced' } },
  ].map(({ name, event }) => {
    const tells = `An executor that is ${state} is ${name.replaceAll('-', ' ')} and never comes back.`;
    return { name: `${state}-${name}`, tells, input, events: [...way, event] };
  });

export const executorGoldens: readonly Golden[] = [
  {
    name: 'works-for-a-day',
    tells: 'Paired, proved, reconnected, silent, back, paused over a reconnection, resumed only after a new proof.',
    input,
    events: [
      confirmed,
      proved,
      proved,
      ...decisions,
      { type: 'executor.silent' },
      ...decisions,
      proved,
      { type: 'executor.pause' },
      proved,
      { type: 'executor.resume' },
      proved,
      { type: 'executor.silent' },
      { type: 'executor.pause' },
      { type: 'executor.resume' },
    ],
  },
  {
    name: 'refuses-what-comes-too-early-or-twice',
    tells: 'No proof before the confirmation, no second confirmation, no other key, no second pause or resume.',
    input,
    events: [
      proved,
      confirmed,
      confirmed,
      foreign,
      proved,
      foreign,
      { type: 'executor.resume' },
      { type: 'executor.pause' },
      { type: 'executor.pause' },
      { type: 'executor.silent' },
      foreign,
      { type: 'executor.pause' },
      { type: 'executor.resume' },
      { type: 'executor.resume' },
    ],
  },
  {
    name: 'drains',
    tells: 'Drain takes nothing new, survives a reconnection and a decision, and ends in revoked.',
    input,
    events: [...draining, proved, foreign, ...decisions, { type: 'executor.drained' }, { type: 'executor.delete' }],
  },
  {
    name: 'drains-offline-and-breaks',
    tells: 'A drain that finds damaged state ends in error, where a person repairs it.',
    input,
    events: [
      ...offline,
      { type: 'executor.drain' },
      damaged,
      proved,
      foreign,
      ...decisions,
      { type: 'executor.repaired' },
    ],
  },
  {
    name: 'damaged-offline',
    tells: 'Damage is told even while offline; a repaired executor proves itself again.',
    input,
    events: [...offline, damaged, { type: 'executor.repaired' }, proved],
  },
  {
    name: 'deleted-before-pairing',
    tells: 'Deleting what never paired drains nothing and revokes in the same step; a second deletion is refused.',
    input,
    events: [...decisions, { type: 'executor.delete' }, { type: 'executor.delete' }],
  },
  {
    name: 'replaced-before-its-first-proof',
    tells: 'A key that was confirmed and never proved itself is replaced in one step.',
    input,
    events: [confirmed, { type: 'executor.replaced' }],
  },
  {
    name: 'ended-by-owner-before-its-first-proof',
    tells: 'An administrator has nothing to disconnect yet; the organisation owner ends it all the same.',
    input,
    events: [
      confirmed,
      { type: 'executor.disconnect', by: 'administrator' },
      { type: 'executor.disconnect', by: 'organization-owner' },
    ],
  },
  ...ends('online', online),
  ...ends('offline', offline),
  ...ends('draining', draining),
  ...ends('error', error),
];
