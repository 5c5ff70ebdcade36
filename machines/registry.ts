import type { AnyStateMachine } from 'xstate';
import { executionMachine } from './command/execution.ts';
import { commandMachine } from './command/machine.ts';
import { commandPayload, executionPayload } from './command/payload.ts';
import { daemonMachine } from './daemon/machine.ts';
import { daemonPayload } from './daemon/payload.ts';
import { descriptorReviewMachine } from './descriptor-review/machine.ts';
import { descriptorReviewPayload } from './descriptor-review/payload.ts';
import { executorMachine } from './executor/machine.ts';
import { executorPayload } from './executor/payload.ts';
import { joiningMachine } from './pairing/joining.ts';
import { pairingMachine } from './pairing/machine.ts';
import { joiningPayload, pairingPayload } from './pairing/payload.ts';
import { promotionMachine } from './promotion/machine.ts';
import { promotionPayload } from './promotion/payload.ts';
import type { PayloadRules } from './trace/redact.ts';

/** A machine whose events may be traced, with what a trace may show of them. */
export type Traced = { readonly machine: AnyStateMachine; readonly payload: PayloadRules };

/** Every machine of the product by its id. */
export const traced: { readonly [machine: string]: Traced } = {
  executor: { machine: executorMachine, payload: executorPayload },
  'descriptor-review': { machine: descriptorReviewMachine, payload: descriptorReviewPayload },
  pairing: { machine: pairingMachine, payload: pairingPayload },
  joining: { machine: joiningMachine, payload: joiningPayload },
  command: { machine: commandMachine, payload: commandPayload },
  execution: { machine: executionMachine, payload: executionPayload },
  promotion: { machine: promotionMachine, payload: promotionPayload },
  daemon: { machine: daemonMachine, payload: daemonPayload },
};
