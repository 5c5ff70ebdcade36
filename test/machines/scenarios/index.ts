import { commandGoldens } from './command.ts';
import { daemonGoldens } from './daemon.ts';
import { descriptorReviewGoldens } from './descriptor-review.ts';
import { executionGoldens } from './execution.ts';
import { executorGoldens } from './executor.ts';
import { joiningGoldens } from './joining.ts';
import { pairingGoldens } from './pairing.ts';
import { promotionGoldens } from './promotion.ts';
import type { Golden } from './scenario.ts';

/** Golden traces by machine. */
export const goldens: { readonly [machine: string]: readonly Golden[] } = {
  executor: executorGoldens,
  'descriptor-review': descriptorReviewGoldens,
  pairing: pairingGoldens,
  joining: joiningGoldens,
  command: commandGoldens,
  execution: executionGoldens,
  promotion: promotionGoldens,
  daemon: daemonGoldens,
};
