/*
 * Everything that decides in a simulated world, as it ships: the machines that both sides run, the control plane's rules, the machine's
 * own. The world takes them from here alone, so that one of them can be replaced to see whether its absence is noticed.
 */
import { checkBounds, checkReplay, checkStart, inputOf, isOpen, recalled } from '../../../daemon/rules.ts';
import { decideAvailability, withdrawnBecause } from '../../../server/availability/rules.ts';
import { isTimely, judgeProof, remember, standingOf } from '../../../server/channel/rules.ts';
import { commandTimes, judgeFrame, leaseFactsOf, stillHolds } from '../../../server/commands/rules.ts';
import { changedFact, promotionEvents } from '../../../server/drafts/rules.ts';
import { isLastAdministrator } from '../../../server/executors/rules.ts';
import { executionMachine } from '../../command/execution.ts';
import { commandMachine } from '../../command/machine.ts';
import { daemonMachine } from '../../daemon/machine.ts';
import { descriptorReviewMachine } from '../../descriptor-review/machine.ts';
import { executorMachine } from '../../executor/machine.ts';
import { joiningMachine } from '../../pairing/joining.ts';
import { pairingMachine } from '../../pairing/machine.ts';
import { promotionMachine } from '../../promotion/machine.ts';

/** The rules that ship. */
export const shippedRules = {
  executorMachine,
  commandMachine,
  promotionMachine,
  descriptorReviewMachine,
  daemonMachine,
  executionMachine,
  pairingMachine,
  joiningMachine,
  /** Of the control plane. */
  judgeProof,
  remember,
  standingOf,
  isTimely,
  decideAvailability,
  withdrawnBecause,
  isLastAdministrator,
  leaseFactsOf,
  stillHolds,
  commandTimes,
  judgeFrame,
  changedFact,
  promotionEvents,
  /** Of the machine. */
  checkBounds,
  checkReplay,
  checkStart,
  isOpen,
  recalled,
  inputOf,
};

/** Rules of a world: those that ship, or some of them replaced. */
export type Rules = typeof shippedRules;
