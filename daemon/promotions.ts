/*
 * Promotions, one at a time: freeze the draft, have `promote` started on exactly that draft, let it settle what an earlier one
 * left, hand it the person's signed approval. Everything that decides is decided in `promote`; this only carries.
 */
import type { PromoteClient } from '../actors/promote.ts';
import { HelperGone, HelperRefused, HelperSilent } from '../actors/helper-client.ts';
import type { WorkspaceClient } from '../actors/workspace.ts';
import { decode } from '../helpers/protocol/codec.ts';
import type { CommandId, RunId } from '../helpers/protocol/ids.ts';
import type { FailureCode, OperationArguments } from '../helpers/protocol/operations.ts';
import { signedSchema } from '../helpers/protocol/signed.ts';
import type { Signed } from '../helpers/protocol/signed.ts';
import type { PromoteReply } from '../helpers/promote/protocol.ts';
import type { AdmittedCommand } from './gate.ts';
import type { Peer } from './peers.ts';
import { NO_DRAFT, Promoter, WORK_MS } from './promoter.ts';
import type { Recovered } from './promoter.ts';

const ASK_MS = 15_000;

/** What promotions need. */
export interface PromotionParts {
  readonly workspace: () => WorkspaceClient;
  readonly peer: Peer<PromoteClient>;
  /** Asks the supervisor for a `promote` whose descriptor 5 is that draft. */
  readonly start: (slot: number) => void;
  /** Takes what a person may want to read in the log. */
  readonly note: (code: string, sentence: string) => void;
}

/** An approval was handed over, and neither its promote nor a recovery could say what became of it. `cause` is what ended it. */
export class OutcomeUnknown extends Error {
  override readonly name = 'OutcomeUnknown';
}

/** What ended an apply whose answer leaves the word to a recovery. */
class JournalLeft extends Error {
  override readonly name = 'JournalLeft';
}

type Applied = PromoteReply<'promote.apply'>;

/** One approval on its way: what it names and its bytes. */
interface Approved extends OperationArguments<'workspace.promote'> {
  readonly approval: Signed;
}

/** The promotions of one daemon. */
export class Promotions {
  readonly #parts: PromotionParts;
  readonly #promoter: Promoter;
  #queue: Promise<unknown> = Promise.resolve();
  /** Commands whose turn has not come, each with what ends it at once. */
  readonly #waiting = new Map<CommandId, () => void>();
  #running: CommandId | undefined;

  constructor(parts: PromotionParts) {
    this.#parts = parts;
    this.#promoter = new Promoter(parts.peer, parts.start);
  }

  /** Settles what an earlier promotion left. Rejects where that could not be done now. */
  recover(): Promise<Recovered> {
    return this.#alone(() => this.#recover());
  }

  /** A person decided about a journal that recovery could not settle. */
  repair(choice: 'restore' | 'set-aside'): Promise<PromoteReply<'promote.repair'>> {
    return this.#alone(() =>
      this.#promoter.lend(NO_DRAFT, (client) => client.request('promote.repair', { choice }, { withinMs: WORK_MS })),
    );
  }

  /** Applies one approved draft; the answer is the operation's result. Rejects with OutcomeUnknown once the approval was handed over, and otherwise as what broke before. */
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
    if (this.#running !== command) return;
    void this.#promoter.lent?.request('promote.cancel', {}, { withinMs: ASK_MS }).catch(() => undefined);
  }

  async #promote(command: AdmittedCommand): Promise<unknown> {
    const { run, command: id } = command.envelope;
    // The gate checked these arguments against the operation's schema.
    const named = command.arguments as OperationArguments<'workspace.promote'>;
    const approval = approvalIn(command.content);
    if (!approval) return failure('PROMOTION_REJECTED', 'The command carries no signed approval.');
    const { promotionId, manifestDigest } = named;
    let slot: number | undefined;
    try {
      const freezing = { withinMs: ASK_MS, key: `${id}.freeze` };
      ({ slot } = await this.#parts.workspace().request('workspace.freeze', { run, manifestDigest }, freezing));
      const applied = await this.#apply(slot, { ...named, approval });
      await this.#release(run, id, applied.outcome === 'promoted');
      return applied.outcome === 'promoted' ? { success: true, manifestDigest, promotionId } : failureOf(applied);
    } catch (error) {
      // A refused freeze holds nothing; one that nobody answered may.
      if (slot !== undefined || !(error instanceof HelperRefused)) await this.#release(run, id, false);
      throw error;
    }
  }

  /** Hands the approval to a promote on its draft. Rejects with OutcomeUnknown, or with what broke before it was handed over. */
  async #apply(slot: number, approved: Approved): Promise<Applied> {
    const ended = await this.#promoter.lend(slot, async (client, recovered): Promise<Applied | Error> => {
      if (recovered.outcome === 'needs-attention') return { outcome: 'refused', code: 'PROMOTION_RECOVERY_REQUIRED' };
      const { approval, promotionId } = approved;
      try {
        const answer = await client.request('promote.apply', { approval }, { withinMs: WORK_MS, key: promotionId });
        const isLeft = answer.outcome === 'refused' && answer.code === 'PROMOTION_RECOVERY_REQUIRED';
        return isLeft ? new JournalLeft('promote left its journal to a recovery') : answer;
      } catch (error) {
        // A refusal is an answer: nothing was begun.
        if (error instanceof HelperRefused) throw error;
        if (error instanceof HelperGone || error instanceof HelperSilent) return error;
        throw new OutcomeUnknown('promote answered nonsense', { cause: error });
      }
    });
    return ended instanceof Error ? this.#afterDeath(approved, ended) : ended;
  }

  /**
   * The apply has no answer: its journal says what became of the tree, and a fresh promote settles it before anything else runs. There
   * was no other journal, because this promotion began with a recovery too.
   */
  async #afterDeath({ manifestDigest, promotionId }: Approved, cause: Error): Promise<Applied> {
    const recovered = await this.#recover().catch((error: unknown) => {
      this.#parts.note(
        'PROMOTION_UNSETTLED',
        `a promotion was cut short and cannot be settled now: ${messageOf(error)}`,
      );
      throw new OutcomeUnknown('no recovery could say how a promotion ended', { cause });
    });
    const { outcome, conflicts: kept } = recovered;
    if (outcome === 'rolled-back') return { outcome, code: 'PROMOTION_IO_FAILURE', kept };
    if (outcome === 'cleaned') return { outcome: 'promoted', manifestDigest, history: promotionId, kept };
    // No journal: it died before its first record or after its last one, with the answer on its lips. Nobody can say which.
    throw new OutcomeUnknown('a promotion left no journal that says how it ended', { cause });
  }

  #recover(): Promise<Recovered> {
    return this.#promoter.lend(NO_DRAFT, (_, recovered) => Promise.resolve(recovered));
  }

  /** Ends the hold on a draft. What became of the tree is known by then: a draft that cannot be let go now changes no answer. */
  async #release(run: RunId, command: CommandId, promoted: boolean): Promise<void> {
    const asking = { withinMs: ASK_MS, key: `${command}.release` };
    try {
      await this.#parts.workspace().request('workspace.release', { run, promoted }, asking);
    } catch (error) {
      this.#parts.note('DRAFT_HELD', `the draft of a promotion that has ended is still held: ${messageOf(error)}`);
    }
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

function failureOf(applied: Exclude<Applied, { outcome: 'promoted' }>): ReturnType<typeof failure> {
  if (applied.code === 'PROMOTION_RECOVERY_REQUIRED')
    return failure(applied.code, 'An earlier promotion waits for a person: nessie-executor repair.');
  return failure(applied.code, applied.path);
}

function failure(code: FailureCode, message?: string): { success: false; code: FailureCode; message?: string } {
  return message === undefined ? { success: false, code } : { success: false, code, message };
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : 'unknown failure';
}
