/*
 * Promotions, one at a time: freeze the draft, have `promote` started on exactly that draft, let it settle what an earlier one
 * left, hand it the person's signed approval. Everything that decides is decided in `promote`; this only carries.
 */
import type { PromoteClient } from '../actors/promote.ts';
import { HelperGone, HelperSilent } from '../actors/helper-client.ts';
import type { WorkspaceClient } from '../actors/workspace.ts';
import { decode } from '../helpers/protocol/codec.ts';
import type { CommandId } from '../helpers/protocol/ids.ts';
import type { FailureCode } from '../helpers/protocol/operations.ts';
import { signedSchema } from '../helpers/protocol/signed.ts';
import type { Signed } from '../helpers/protocol/signed.ts';
import type { PromoteReply } from '../helpers/promote/protocol.ts';
import type { AdmittedCommand } from './gate.ts';
import type { Peer } from './peers.ts';

const START_MS = 15_000;
const START_TRIES = 5;
/** No time limit ends an apply between two steps; this bounds only a promote that no longer speaks at all. */
const APPLY_MS = 3_600_000;
/** Slot of recovery: an always empty draft folder. */
const NO_DRAFT = 0;

/** What promotions need. */
export interface PromotionParts {
  readonly workspace: () => WorkspaceClient;
  readonly peer: Peer<PromoteClient>;
  /** Asks the supervisor for a `promote` whose descriptor 5 is that draft. */
  readonly start: (slot: number) => void;
}

/** What is known of an apply whose process may die. */
interface Applied {
  readonly promotionId: string;
  readonly manifestDigest: string;
}

/** The promotions of one daemon. */
export class Promotions {
  readonly #parts: PromotionParts;
  #queue: Promise<unknown> = Promise.resolve();
  /** Commands whose turn has not come, each with what ends it at once. */
  readonly #waiting = new Map<CommandId, () => void>();
  #running: CommandId | undefined;

  constructor(parts: PromotionParts) {
    this.#parts = parts;
  }

  /** Settles what an earlier promotion left. Rejects when that needs a person. */
  recover(): Promise<PromoteReply<'promote.recover'>> {
    return this.#alone(async () => {
      const { client, recovered } = await this.#begin(NO_DRAFT);
      client.close();
      return recovered;
    });
  }

  /** A person decided about a journal that recovery could not settle. */
  repair(choice: 'restore' | 'set-aside'): Promise<PromoteReply<'promote.repair'>> {
    return this.#alone(async () => {
      const { client } = await this.#begin(NO_DRAFT);
      const answer = await client.request('promote.repair', { choice }, { withinMs: APPLY_MS });
      client.close();
      return answer;
    });
  }

  /** Applies one approved draft; the answer is the operation's result. Rejects when nobody can say how it ended. */
  promote(command: AdmittedCommand): Promise<unknown> {
    const id = command.envelope.command;
    const withdrawn = new Promise<unknown>((resolve) => {
      this.#waiting.set(id, () => resolve(failure('CANCELLED', 'It waited for another promotion and did not begin.')));
    });
    const applied = this.#alone(async () => {
      // Withdrawn while it waited: it has ended already.
      if (!this.#waiting.delete(id)) return undefined;
      this.#running = id;
      try {
        return await this.#promote(command);
      } finally {
        this.#running = undefined;
      }
    });
    return Promise.race([withdrawn, applied]);
  }

  /** Ends a promotion that waits at once, and asks one that runs to end before its commit; another one is left alone. */
  cancel(command: CommandId): void {
    const withdraw = this.#waiting.get(command);
    this.#waiting.delete(command);
    withdraw?.();
    // A cancel that comes before promote is there or after the commit changes nothing.
    if (this.#running === command && this.#parts.peer.isConnected)
      void this.#parts.peer.client.request('promote.cancel', {}, { withinMs: START_MS }).catch(() => undefined);
  }

  async #promote(command: AdmittedCommand): Promise<unknown> {
    const { run } = command.envelope;
    // The gate checked these arguments against the operation's schema.
    const { manifestDigest, promotionId } = command.arguments as { manifestDigest: string; promotionId: string };
    const approval = approvalIn(command.content);
    if (!approval) return failure('PROMOTION_REJECTED', 'The command carries no signed approval.');
    const workspace = this.#parts.workspace();
    const { slot } = await workspace.request(
      'workspace.freeze',
      { run, manifestDigest },
      { withinMs: START_MS, key: `${command.envelope.command}.freeze` },
    );
    let promoted = false;
    try {
      const { client, recovered } = await this.#begin(slot);
      if (recovered.outcome === 'needs-attention') {
        client.close();
        return failure(
          'PROMOTION_RECOVERY_REQUIRED',
          'An earlier promotion waits for a person: nessie-executor repair.',
        );
      }
      const answer = await this.#apply(client, { promotionId, manifestDigest }, approval);
      promoted = answer.outcome === 'promoted';
      return answer.outcome === 'promoted'
        ? { success: true, manifestDigest, promotionId }
        : failure(answer.code, 'path' in answer ? answer.path : undefined);
    } finally {
      await workspace.request(
        'workspace.release',
        { run, promoted },
        { withinMs: START_MS, key: `${command.envelope.command}.release` },
      );
    }
  }

  async #apply(client: PromoteClient, applied: Applied, approval: Signed): Promise<PromoteReply<'promote.apply'>> {
    try {
      return await client.request('promote.apply', { approval }, { withinMs: APPLY_MS, key: applied.promotionId });
    } catch (error) {
      if (!(error instanceof HelperGone) && !(error instanceof HelperSilent)) throw error;
      return this.#afterDeath(applied, error);
    } finally {
      client.close();
    }
  }

  /**
   * The apply died: its journal says what became of the tree, and a fresh promote settles it before anything else runs. There was
   * no other journal, because this promotion began with a recovery too.
   */
  async #afterDeath(died: Applied, error: HelperGone | HelperSilent): Promise<PromoteReply<'promote.apply'>> {
    const { client, recovered } = await this.#begin(NO_DRAFT);
    client.close();
    const kept = recovered.conflicts;
    if (recovered.outcome === 'rolled-back') return { outcome: 'rolled-back', code: 'PROMOTION_IO_FAILURE', kept };
    if (recovered.outcome === 'cleaned') {
      return { outcome: 'promoted', manifestDigest: died.manifestDigest, history: died.promotionId, kept };
    }
    // No journal: it died before its first record or after its last one, with the answer on its lips. Nobody can say which.
    throw error;
  }

  /** Asks for a promote until one is there: while an earlier one is still ending the supervisor refuses another. */
  async #started(slot: number): Promise<PromoteClient> {
    for (let asked = 1; ; asked += 1) {
      this.#parts.start(slot);
      try {
        return await this.#parts.peer.connected(START_MS / START_TRIES);
      } catch (error) {
        if (asked === START_TRIES) throw error;
      }
    }
  }

  async #begin(slot: number): Promise<{ client: PromoteClient; recovered: PromoteReply<'promote.recover'> }> {
    const client = await this.#started(slot);
    const recovered = await client.request('promote.recover', {}, { withinMs: APPLY_MS });
    return { client, recovered };
  }

  #alone<Value>(work: () => Promise<Value>): Promise<Value> {
    const mine = this.#queue.then(work);
    this.#queue = mine.catch(() => undefined);
    return mine;
  }
}

/** The signed approval that a command carries; undefined for bytes that are none, of which nothing is begun. */
function approvalIn(content: Uint8Array): Signed | undefined {
  try {
    return signedSchema.safeParse(decode(content)).data;
  } catch {
    // Signed bytes that are not msgpack are an approval of another shape, no more and no less.
    return undefined;
  }
}

function failure(code: FailureCode, message?: string): { success: false; code: FailureCode; message?: string } {
  return message === undefined ? { success: false, code } : { success: false, code, message };
}
