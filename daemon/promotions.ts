/*
 * Promotions and undos of promotions, one at a time: freeze the draft, have `promote` started on exactly that draft, let it settle what an earlier one
 * left, hand it the person's signed approval. Everything that decides is decided in `promote`; this only carries.
 */
import { setTimeout as wait } from 'node:timers/promises';
import type { PromoteClient } from '../actors/promote.ts';
import { HelperGone, HelperRefused, HelperSilent } from '../actors/helper-client.ts';
import type { WorkspaceClient } from '../actors/workspace.ts';
import { decode } from '../helpers/protocol/codec.ts';
import type { Undone } from '../helpers/protocol/history-facts.ts';
import type { CommandId, PromotionId, RunId } from '../helpers/protocol/ids.ts';
import type { FailureCode, OperationArguments } from '../helpers/protocol/operations.ts';
import { signedSchema } from '../helpers/protocol/signed.ts';
import type { Signed } from '../helpers/protocol/signed.ts';
import type { PromoteBody, PromoteReply } from '../helpers/promote/protocol.ts';
import type { WorkspaceReply } from '../helpers/workspace/protocol.ts';
import type { AdmittedCommand } from './gate.ts';
import { PeerAbsent } from './peers.ts';
import type { Peer } from './peers.ts';
import { NO_DRAFT, Promoter, WORK_MS } from './promoter.ts';
import type { Recovered } from './promoter.ts';

const ASK_MS = 15_000;
/** Waits between tries to tidy up, in ms: the first, which doubles, and the longest. */
const TIDY_MS = { first: 500, longest: 30_000 } as const;

/** What promotions need. */
export interface PromotionParts {
  readonly workspace: () => WorkspaceClient;
  readonly peer: Peer<PromoteClient>;
  /** Asks the supervisor for a `promote` whose descriptor 5 is that draft. */
  readonly start: (slot: number) => void;
  /** Takes what a person may want to read in the log. */
  readonly note: (code: string, sentence: string) => void;
}

/** An approval or a wish to undo was handed over, and neither its promote nor a recovery could say what became of it. `cause` is what ended it. */
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
  /** What the last recovery said: nothing is left, something is left to the next one, or only a person can settle it. */
  #standing: 'not asked' | 'settled' | 'unsettled' | 'needs a person' = 'not asked';
  #isTidying = false;

  constructor(parts: PromotionParts) {
    this.#parts = parts;
    this.#promoter = new Promoter(parts.peer, parts.start);
  }

  /** Settles what an earlier promotion left, and lets its draft go once `workspace` is there. Rejects where it could not be settled now. */
  async recover(): Promise<Recovered> {
    const recovered = await this.#alone(() => this.#recover([]));
    this.#tidyUp();
    return recovered;
  }

  /** Whether something waits that only a person can settle. */
  get needsPerson(): boolean {
    return this.#standing === 'needs a person';
  }

  /** A person decided about a journal that recovery could not settle. */
  async repair(choice: 'restore' | 'set-aside'): Promise<PromoteReply<'promote.repair'>> {
    const repaired = await this.#alone(() =>
      this.#promoter.lend(NO_DRAFT, [], (client) =>
        client.request('promote.repair', { choice }, { withinMs: WORK_MS }),
      ),
    );
    this.#standing = 'unsettled';
    this.#tidyUp();
    return repaired;
  }

  /** Promotions that promote keeps, newest first. */
  history(): Promise<PromoteReply<'promote.history'>> {
    return this.#withHistory((client) => client.request('promote.history', {}, { withinMs: WORK_MS }));
  }

  /** What the root's file system has, as promote finds it. */
  fileSystem(): Promise<PromoteReply<'promote.file-system'>> {
    return this.#withHistory((client) => client.request('promote.file-system', {}, { withinMs: ASK_MS }));
  }

  /** What undoing one of them would change. */
  undoPlan(body: PromoteBody<'promote.undo-plan'>): Promise<PromoteReply<'promote.undo-plan'>> {
    return this.#withHistory((client) => client.request('promote.undo-plan', body, { withinMs: WORK_MS }));
  }

  /** Takes a kept promotion back; promote itself decides whether the owner confirmed that. `unknown` where nobody can say now how it ended. */
  async undo(promotion: PromotionId): Promise<Undone | { readonly outcome: 'unknown' }> {
    try {
      const undone = await this.#alone(() => this.#undo(promotion));
      if (undone.outcome === 'undone') {
        this.#parts.note('PROMOTION_UNDONE', `its owner undid ${promotion}`);
        this.#noteNotKept(`the undo of ${promotion}`, undone.notKept);
      }
      return undone;
    } catch (error) {
      if (!(error instanceof OutcomeUnknown)) throw error;
      this.#tidyUp();
      return { outcome: 'unknown' };
    }
  }

  /** `workspace` is there, perhaps again: an earlier one may have left drafts frozen. */
  workspaceCame(): void {
    this.#tidyUp();
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

  #noteNotKept(what: string, count = 0): void {
    if (count > 0)
      this.#parts.note('UNDO_NOT_KEPT', `${what} cannot be undone: the disk was full, ${count} old files are not kept`);
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
      const [body, asking] = [
        { run, promotion: promotionId, manifestDigest },
        { withinMs: ASK_MS, key: `${id}.freeze` },
      ];
      ({ slot } = await this.#parts.workspace().request('workspace.freeze', body, asking));
      const applied = await this.#apply(slot, { ...named, approval });
      await this.#letGo(run, promotionId, applied.outcome === 'promoted');
      if (applied.outcome === 'promoted') this.#noteNotKept(promotionId, applied.notKept);
      return applied.outcome === 'promoted' ? { success: true, manifestDigest, promotionId } : failureOf(applied);
    } catch (error) {
      // Frozen until a recovery can say what became of the tree.
      if (error instanceof OutcomeUnknown) this.#tidyUp();
      // A refused freeze holds nothing; one that nobody answered may.
      else if (slot !== undefined || !(error instanceof HelperRefused)) await this.#letGo(run, promotionId, false);
      throw error;
    }
  }

  /** Hands the approval to a promote on its draft. Rejects with OutcomeUnknown, or with what broke before it was handed over. */
  async #apply(slot: number, approved: Approved): Promise<Applied> {
    const ended = await this.#promoter.lend(slot, [], async (client, recovered): Promise<Applied | Error> => {
      this.#heard(recovered);
      if (recovered.outcome === 'needs-attention') return { outcome: 'refused', code: 'PROMOTION_RECOVERY_REQUIRED' };
      const { approval, promotionId } = approved;
      return answerOf(client.request('promote.apply', { approval }, { withinMs: WORK_MS, key: promotionId }));
    });
    return ended instanceof Error ? this.#afterDeath(approved, ended) : ended;
  }

  /**
   * The apply has no answer: its journal says what became of the tree, and a fresh promote settles it before anything else runs. There
   * was no other journal, because this promotion began with a recovery too.
   */
  async #afterDeath({ manifestDigest, promotionId }: Approved, cause: Error): Promise<Applied> {
    const recovered = await this.#recover([promotionId]).catch((error: unknown) => {
      const reason = `a promotion was cut short and cannot be settled now: ${messageOf(error)}`;
      this.#parts.note('PROMOTION_UNSETTLED', reason);
      throw new OutcomeUnknown('no recovery could say how a promotion ended', { cause });
    });
    const { outcome, conflicts: kept, promoted } = recovered;
    if (outcome === 'needs-attention') throw new OutcomeUnknown('a promotion waits for a person', { cause });
    if (promoted.includes(promotionId)) return { outcome: 'promoted', manifestDigest, history: promotionId, kept };
    // It is not among those that were committed: it went back, or died before its first record.
    return { outcome: 'rolled-back', code: 'PROMOTION_IO_FAILURE', kept };
  }

  async #undo(promotion: PromotionId): Promise<Undone> {
    const ended = await this.#lentHistory((client) => {
      const asking = { withinMs: WORK_MS, key: `undo.${promotion}` };
      return answerOf(client.request('promote.undo', { promotion }, asking));
    });
    return ended instanceof Error ? this.#undoAfterDeath(promotion, ended) : ended;
  }

  /** The undo has no answer: a fresh promote settles it, and the history says whether it was committed. */
  async #undoAfterDeath(promotion: PromotionId, cause: Error): Promise<Undone> {
    this.#standing = 'unsettled';
    try {
      return await this.#lentHistory(async (client, { outcome, conflicts: kept }) => {
        if (outcome === 'needs-attention') throw new OutcomeUnknown('an undo waits for a person', { cause });
        const plan = await client.request('promote.undo-plan', { promotion, from: 0 }, { withinMs: WORK_MS });
        const isDone = plan.outcome === 'refused' && plan.code === 'UNDO_DONE';
        return isDone ? { outcome: 'undone', kept } : { outcome: 'rolled-back', code: 'PROMOTION_IO_FAILURE', kept };
      });
    } catch (error) {
      this.#parts.note('PROMOTION_UNSETTLED', `an undo was cut short and cannot be settled now: ${messageOf(error)}`);
      throw new OutcomeUnknown('no recovery could say how an undo ended', { cause });
    }
  }

  #withHistory<Value>(ask: (client: PromoteClient) => Promise<Value>): Promise<Value> {
    return this.#alone(() => this.#lentHistory(ask));
  }

  #lentHistory<Value>(ask: (client: PromoteClient, recovered: Recovered) => Promise<Value>): Promise<Value> {
    return this.#promoter.lend(NO_DRAFT, [], (client, recovered) => ask(client, this.#heard(recovered)));
  }

  async #recover(promotions: readonly PromotionId[]): Promise<Recovered> {
    this.#standing = 'unsettled';
    return this.#promoter.lend(NO_DRAFT, promotions, (_, recovered) => Promise.resolve(this.#heard(recovered)));
  }

  #heard(recovered: Recovered): Recovered {
    this.#standing = recovered.outcome === 'needs-attention' ? 'needs a person' : 'settled';
    return recovered;
  }

  /** Lets a draft go whose promotion has ended. What became of the tree is known by then: one that cannot be let go now changes no answer. */
  async #letGo(run: RunId, promotion: PromotionId, promoted: boolean): Promise<void> {
    try {
      await this.#release(run, promotion, promoted);
    } catch (error) {
      this.#parts.note('DRAFT_FROZEN', `the draft of a promotion that has ended is still frozen: ${messageOf(error)}`);
      this.#tidyUp();
    }
  }

  async #release(run: RunId, promotion: PromotionId, promoted: boolean): Promise<void> {
    const asking = { withinMs: ASK_MS, key: `${promotion}.release.${promoted}` };
    await this.#parts.workspace().request('workspace.release', { run, promotion, promoted }, asking);
  }

  /** Settles what is left of promotions that were cut short, and lets their drafts go, as soon as nothing else runs and it can be done. */
  #tidyUp(): void {
    if (this.#isTidying) return;
    this.#isTidying = true;
    void this.#tidied().finally(() => {
      this.#isTidying = false;
    });
  }

  async #tidied(): Promise<void> {
    for (let waitMs: number = TIDY_MS.first; ; waitMs = Math.min(waitMs * 2, TIDY_MS.longest)) {
      try {
        return await this.#alone(() => this.#tidy());
      } catch (error) {
        if (waitMs === TIDY_MS.first)
          this.#parts.note('PROMOTION_UNSETTLED', `what a promotion left is tried again: ${messageOf(error)}`);
      }
      await wait(waitMs, undefined, { ref: false });
    }
  }

  async #tidy(): Promise<void> {
    if (this.#standing === 'not asked' || this.#standing === 'needs a person') return;
    const frozen = await this.#frozen();
    if (frozen.length === 0 && this.#standing === 'settled') return;
    const { outcome, promoted } = await this.#recover(frozen.map(({ promotion }) => promotion));
    if (outcome === 'needs-attention') return;
    for (const { run, promotion } of frozen) await this.#release(run, promotion, promoted.includes(promotion));
  }

  async #frozen(): Promise<WorkspaceReply<'workspace.drafts'>['frozen']> {
    try {
      return (await this.#parts.workspace().request('workspace.drafts', {}, { withinMs: ASK_MS })).frozen;
    } catch (error) {
      // Its coming begins this anew.
      if (error instanceof PeerAbsent) return [];
      throw error;
    }
  }

  #alone<Value>(work: () => Promise<Value>): Promise<Value> {
    const mine = this.#queue.then(work);
    this.#queue = mine.catch(() => undefined);
    return mine;
  }
}

/** What promote answered, or what ended it before an answer could be believed. Rejects with a refusal, after which nothing was begun, and OutcomeUnknown. */
async function answerOf<Answer extends Applied | Undone>(asked: Promise<Answer>): Promise<Answer | Error> {
  try {
    const answer = await asked;
    const isLeft = answer.outcome === 'refused' && answer.code === 'PROMOTION_RECOVERY_REQUIRED';
    return isLeft ? new JournalLeft('promote left its journal to a recovery') : answer;
  } catch (error) {
    if (error instanceof HelperRefused) throw error;
    if (error instanceof HelperGone || error instanceof HelperSilent) return error;
    throw new OutcomeUnknown('promote answered nonsense', { cause: error });
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
  const told = [applied.path, applied.detail].filter((part) => part !== undefined).join(': ');
  return failure(applied.code, told === '' ? undefined : fitting(told));
}

/** Longest message of a failure (operations.ts). */
const MESSAGE_LIMIT = 400;

/** A path of long names is more than a message takes: its end says most. */
function fitting(text: string): string {
  return text.length <= MESSAGE_LIMIT ? text : `…${text.slice(1 - MESSAGE_LIMIT)}`;
}

function failure(code: FailureCode, message?: string): { success: false; code: FailureCode; message?: string } {
  return message === undefined ? { success: false, code } : { success: false, code, message };
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : 'unknown failure';
}
