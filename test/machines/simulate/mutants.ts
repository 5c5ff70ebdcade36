/*
 * Rules with something taken out of them, one at a time: what a simulation with faults must notice. Each says what is missing.
 */
import { shippedRules } from '../../../machines/trace/simulate/rules.ts';
import type { Rules } from '../../../machines/trace/simulate/rules.ts';

const { daemonMachine, executorMachine, executionMachine, promotionMachine } = shippedRules;

/** Rules by what they leave out. */
export const mutants: Readonly<Record<string, Partial<Rules>>> = {
  'a proof says nothing of the past: an old copy is let in': {
    judgeProof: (row, proof, remembered, count) => {
      const judged = shippedRules.judgeProof(row, proof, remembered, count);
      const copied = judged.verdict === 'ledger-behind' || judged.verdict === 'ledger-forked';
      return copied ? { verdict: 'online', epoch: row.epoch + 1 } : judged;
    },
  },
  'the epoch stands while a state changes': {
    executorMachine: executorMachine.provide({ actions: { raiseEpoch: () => undefined } }),
  },
  'what is remembered of a machine is what it said last, not the highest': {
    remember: (_, stated) => ({
      guard: stated.guard,
      ledgerCount: stated.ledgerCount ?? 0,
      ledgerHead: stated.ledgerHead ?? '0'.repeat(64),
    }),
  },
  'the lease is given to a connection of an earlier epoch': {
    leaseFactsOf: (row, epoch) => {
      const facts = row && shippedRules.leaseFactsOf({ ...row, epoch }, epoch);
      return facts;
    },
  },
  'the resolver forgets the grant': {
    decideAvailability: (facts) => shippedRules.decideAvailability({ ...facts, granted: true }),
  },
  'the machine starts what its policy no longer permits': {
    checkStart: (facts, known) => shippedRules.checkStart(facts, { ...known, permitted: true }),
  },
  'the machine starts what an earlier connection delivered': {
    checkStart: (facts, known) => shippedRules.checkStart(facts, { ...known, epoch: facts.epoch }),
    executionMachine: executionMachine.provide({ guards: { isWithdrawn: () => false } }),
  },
  'a repeated command is taken again': {
    checkReplay: (facts, memory) => {
      const verdict = shippedRules.checkReplay(facts, memory);
      return verdict === 'repeat' ? undefined : verdict;
    },
  },
  'a withdrawn command starts all the same': {
    executionMachine: executionMachine.provide({ guards: { isWithdrawn: () => false } }),
  },
  'turns are given while the control lane is silent': {
    daemonMachine: daemonMachine.provide({ delays: { controlSilence: 100_000_000 } }),
  },
  'nothing is stopped after a minute of silence': {
    daemonMachine: daemonMachine.provide({ delays: { controlDeadline: 100_000_000 } }),
  },
  'a promotion is believed without the approved manifest': {
    promotionMachine: promotionMachine.provide({ guards: { isEndedAs: (_, { is, outcome }) => is === outcome } }),
    promotionEvents: (promotion, command) =>
      shippedRules.promotionEvents(promotion, { ...command, appliedManifest: promotion.manifestDigest }),
  },
  'a prepared promotion holds whatever changed': { changedFact: () => undefined },
  'the last administrator goes': { isLastAdministrator: () => false },
  'a command that expired on its machine starts': {
    checkStart: (facts, known) => shippedRules.checkStart({ ...facts, expiresAt: Number.MAX_SAFE_INTEGER }, known),
  },
};
