import assert from 'node:assert/strict';

import * as fc from 'fast-check';
import { createActor, fromPromise, initialTransition, transition, waitFor } from 'xstate';
import type { SnapshotFrom } from 'xstate';

import { joiningMachine } from '../../../machines/pairing/joining.ts';
import type {
  JoiningEmitted,
  JoiningEvent,
  JoiningInput,
  PrepareRequest,
  SendConfirmation,
  SendRequest,
  Standing,
} from '../../../machines/pairing/types.ts';
import { nameOf } from '../../../machines/trace/take.ts';

type Snapshot = SnapshotFrom<typeof joiningMachine>;

const fresh: JoiningInput = { flow: 'code', replaces: null, prepared: null };
const prepared = { requestId: 'req-1', requestDigest: 'request', fingerprint: 'key' };
const offer = { pairingId: 'pair-1', digits: '00420042', commandKeyFingerprint: 'command-key', remainingMs: 600_000 };
const claim = (claimDigest: string): Standing => ({
  standing: 'claimed',
  claim: { claimDigest, facts: { team: 'red' } },
});
const confirmed: Standing = { standing: 'confirmed', executorId: 'exec-1', commandKeyFingerprint: 'command-key' };
const standings: readonly Standing[] = [
  { standing: 'waiting' },
  claim('claim-1'),
  claim('claim-1'),
  claim('claim-2'),
  confirmed,
  { ...confirmed, commandKeyFingerprint: 'another-key' },
  { standing: 'refused', by: 'person' },
  { standing: 'expired' },
];

const ends: { readonly [actor: string]: readonly object[] } = {
  prepareRequest: [prepared],
  persistRequest: [{ durable: true }],
  sendRequest: [offer, offer, { refused: true, code: 'NO' }],
  askStanding: standings,
  askLastStanding: standings,
  fetchClaim: standings,
  sendConfirmation: standings,
  sendEnding: [{ told: true }],
  savePairing: [{ durable: true }],
  dropRequest: [{ dropped: true }],
};
const wishes: readonly JoiningEvent[] = [
  { type: 'claim.confirm', claimDigest: 'claim-1' },
  { type: 'claim.confirm', claimDigest: 'claim-2' },
  { type: 'claim.reject' },
];

function possibilities(snapshot: Snapshot): { type: string }[] {
  const endings = Object.keys(snapshot.children).flatMap((actor) => [
    ...(ends[actor] ?? []).map((output) => ({ type: `xstate.done.actor.${actor}`, actorId: actor, output })),
    { type: `xstate.error.actor.${actor}`, actorId: actor, error: new Error('broke') },
  ]);
  const timers = [
    'xstate.after.retry.joining.retrying',
    'xstate.after.retry.joining.unsettled',
    'xstate.after.poll.joining.offered.pausing',
    'xstate.after.poll.joining.offered.repeating',
    'xstate.after.expiry.joining.offered',
  ];
  const possible = [...timers.map((type) => ({ type })), ...wishes].filter((one) => snapshot.can(one as JoiningEvent));
  return [...endings, ...endings, ...possible];
}

/** One life: each number picks the next event; `seen` are the states passed and the events and actions in order. */
function live(input: JoiningInput, picks: readonly number[]): { readonly seen: string[]; readonly last: Snapshot } {
  const [first, begun] = initialTransition(joiningMachine, input);
  const seen = begun.map(nameOf);
  let last = first;
  for (const pick of picks) {
    const possible = possibilities(last);
    if (last.status !== 'active' || possible.length === 0) break;
    const event = possible[pick % possible.length]!;
    const [next, asked] = transition(joiningMachine, last, event as JoiningEvent);
    const answer = 'output' in event ? JSON.stringify(event.output) : '';
    seen.push(`${event.type}${answer}`, ...asked.map(nameOf));
    last = next;
  }
  return { seen, last };
}

const picks = fc.array(fc.nat({ max: 10_000 }), { maxLength: 60 });

describe('a pairing on the machine', () => {
  it('sends nothing before the request is durable', () => {
    fc.assert(
      fc.property(picks, (sequence) => {
        const { seen } = live(fresh, sequence);
        const sent = seen.indexOf('xstate.spawnChild(sendRequest)');
        const durable = seen.findIndex((one) => one.startsWith('xstate.done.actor.persistRequest'));
        if (sent >= 0) assert.ok(durable >= 0 && durable < sent);
      }),
    );
  });

  it('prepares no second request where one is on disk', () => {
    const [first, begun] = initialTransition(joiningMachine, { ...fresh, prepared });
    assert.equal(first.value, 'sending');
    assert.deepEqual(begun.map(nameOf), ['xstate.spawnChild(sendRequest)']);
  });

  it('is paired only by both confirmations and the key that was shown, saved before the record is dropped', () => {
    let pairings = 0;
    fc.assert(
      fc.property(picks, (sequence) => {
        const { seen, last } = live({ ...fresh, prepared }, sequence);
        if (last.value !== 'paired') return;
        pairings += 1;
        const answered = seen.findIndex(
          (one) => one.includes('"standing":"confirmed"') && one.includes('"command-key"'),
        );
        const saved = seen.findIndex((one) => one.startsWith('xstate.done.actor.savePairing'));
        const dropped = seen.indexOf('xstate.spawnChild(dropRequest)');
        assert.ok(answered >= 0 && answered < saved && saved < dropped, seen.join('\n'));
      }),
      { numRuns: 1000 },
    );
    assert.ok(pairings > 10, `${pairings} lives were paired`);
  });

  it('confirms only a claim that was fetched again with the digest that the person confirmed', () => {
    fc.assert(
      fc.property(picks, (sequence) => {
        const { seen } = live({ ...fresh, prepared }, sequence);
        for (const [index, one] of seen.entries()) {
          if (one !== 'xstate.spawnChild(sendConfirmation)') continue;
          const fetched = seen.slice(0, index).findLast((event) => event.startsWith('xstate.done.actor.fetchClaim'));
          const wished = seen.slice(0, index).lastIndexOf('claim.confirm');
          assert.ok(fetched?.includes('"standing":"claimed"') === true && wished >= 0);
        }
      }),
      { numRuns: 500 },
    );
  });

  it('ends in the state that its output names', () => {
    fc.assert(
      fc.property(picks, fc.boolean(), (sequence, onDisk) => {
        const { last } = live(onDisk ? { ...fresh, prepared } : fresh, sequence);
        if (last.status === 'done') assert.equal(last.output?.outcome, last.value);
        assert.notEqual(last.status, 'error');
      }),
      { numRuns: 500 },
    );
  });

  it('runs live: the person sees code and claim, confirms, and the machine is paired', async () => {
    const asked: Standing[] = [{ standing: 'waiting' }, claim('claim-1'), claim('claim-1')];
    const shown: JoiningEmitted[] = [];
    const live = joiningMachine.provide({
      delays: { poll: 1, retry: 1 },
      actors: {
        prepareRequest: fromPromise<PrepareRequest['output'], PrepareRequest['input']>(() => Promise.resolve(prepared)),
        persistRequest: fromPromise(() => Promise.resolve({ durable: true as const })),
        sendRequest: fromPromise<SendRequest['output'], SendRequest['input']>(() => Promise.resolve(offer)),
        askStanding: fromPromise(() => Promise.resolve(asked.shift() ?? confirmed)),
        sendConfirmation: fromPromise<SendConfirmation['output'], SendConfirmation['input']>(() =>
          Promise.resolve(confirmed),
        ),
        savePairing: fromPromise(() => Promise.resolve({ durable: true as const })),
        dropRequest: fromPromise(() => Promise.resolve({ dropped: true as const })),
      },
    });
    const actor = createActor(live, { input: fresh });
    actor.on('joining.offered', (event) => shown.push(event));
    actor.on('joining.claimed', (event) => {
      shown.push(event);
      actor.send({ type: 'claim.confirm', claimDigest: event.claim.claimDigest });
    });
    actor.start();
    const { output } = await waitFor(actor, ({ status }) => status === 'done', { timeout: 5_000 });
    assert.deepEqual(output, { outcome: 'paired', executorId: 'exec-1', code: null });
    assert.deepEqual(
      shown.map(({ type }) => type),
      ['joining.offered', 'joining.claimed'],
    );
  });
});
