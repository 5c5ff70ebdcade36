/*
 * The requests of promote in the only order that they may come: recover, then repair, looks at the history, or one apply or undo, and
 * cancel at any time.
 */
import { closeSync, constants } from 'node:fs';
import { NativeError } from '../runtime/libc.ts';
import { RESOLVE_STRICT, openat2 } from '../runtime/native-files.ts';
import { tryLock } from '../runtime/native-locks.ts';
import { apply } from './apply.ts';
import { approve } from './approve.ts';
import type { Approved, Given } from './approve.ts';
import type { Applied, Pace, Phase } from './apply.ts';
import { CommitUncertain, findJournal } from './journal.ts';
import { JournalDamaged } from './journal-records.ts';
import { limitsOf, pruneHistory } from './history.ts';
import { MarkDamaged } from './mark.ts';
import { createOwn, openOwn, UntrustedFile } from './own-folder.ts';
import { readPin, readPolicy } from './owner-folder.ts';
import type { OwnerPin, PromoteBody, PromoteRefusal, PromoteReply } from './protocol.ts';
import { causeOf, needsPerson, recover, tellStop } from './recover.ts';
import type { Recovered } from './recover.ts';
import { admitKey, KeyRefused } from '../protocol/signed.ts';
import { repair } from './repair.ts';
import { committedIds, restingIds } from './resting-place.ts';
import { checkOpenRoot } from './root-check.ts';
import { draftContents } from './stage-plan.ts';
import type { Scene } from './stage-end.ts';
import { isTrouble, named, Stopped } from './stop.ts';
import { tryRoot } from './try-root.ts';
import { undo } from './undo.ts';
import { pastPromotions, undoPlan } from './undo-look.ts';

/** A request that is refused; `code` is one of the protocol's. */
export class PromoteRefused extends Error {
  override readonly name = 'PromoteRefused';
  readonly code: PromoteRefusal;

  constructor(code: PromoteRefusal, sentence: string, options?: ErrorOptions) {
    super(sentence, options);
    this.code = code;
  }
}

/** An answer of whatever ended before its first change. */
type Refusal = Extract<PromoteReply<'promote.apply'>, { outcome: 'refused' }>;

/** How many steps are done before other requests are let in, unless time has passed. */
const STEPS_AT_ONCE = 64;
const TURN_MS = 20;
/** In a file that is long to read what was told last is told again, so that whoever waits knows that work goes on. */
const TELL_MS = 1000;
/** A look at the history lets nobody in: requests that come meanwhile are answered after it. */
const freely = (): undefined => undefined;

/** Answers the requests of one process. `tell` sends progress, `log` takes sentences for the owner; `bootId` is the kernel's. */
export class PromoteHandlers {
  readonly #given: Given;
  readonly #bootId: string;
  readonly #tell: (phase: Phase, done: number, total: number) => void;
  readonly #log: (sentence: string) => void;
  #isCancelled = false;
  #running: Promise<unknown> = Promise.resolve();
  #ownLock: number | undefined;
  #rootLock: number | undefined;

  constructor(
    given: Given,
    bootId: string,
    tell: (phase: Phase, done: number, total: number) => void,
    log: (sentence: string) => void,
  ) {
    this.#log = log;
    this.#given = given;
    this.#bootId = bootId;
    this.#tell = tell;
  }

  /**
   * Takes the locks and settles what is there. Throws PromoteRefused BUSY where another process of this executor works, or where
   * something must be settled in a root that somebody else holds.
   */
  recover({ promotions }: PromoteBody<'promote.recover'>): Omit<PromoteReply<'promote.recover'>, 'slot'> {
    try {
      this.#lockOwn();
      const scene = this.#scene();
      const settled = this.#settle(scene);
      const committed = new Set(committedIds(scene.own));
      if (scene.limits !== undefined) pruneHistory(scene.own, Date.now(), scene.limits);
      return { ...settled, promoted: promotions.filter((id) => committed.has(id)) };
    } catch (error) {
      if (!needsPerson(error)) throw error;
      this.#log(causeOf('recovery', error));
      return { outcome: 'needs-attention', conflicts: [], promoted: [] };
    }
  }

  #settle(scene: Scene): Recovered {
    if (this.#lockRoot()) return recover(scene, { bootId: this.#bootId, now: Date.now(), log: this.#log });
    // Without a journal nothing of the root is touched: whoever holds its lock keeps no daemon from starting.
    if (this.#isSettled()) return { outcome: 'nothing-to-do', conflicts: [] };
    throw rootBusy();
  }

  /** Does what a person decided about a journal that recovery left. */
  repair({ choice }: PromoteBody<'promote.repair'>): PromoteReply<'promote.repair'> {
    if (this.#ownLock === undefined) throw unsettled();
    if (!this.#lockRoot()) throw rootBusy();
    try {
      return repair(this.#scene(), choice);
    } catch (error) {
      if (!needsPerson(error)) throw error;
      this.#log(causeOf('recovery', error));
      const sentence = 'the journal cannot be restored from; choose `set-aside`, which leaves the tree as it is';
      throw new PromoteRefused('RECOVERY_REQUIRED', sentence, { cause: error });
    }
  }

  /** Applies an approved draft. */
  apply(body: PromoteBody<'promote.apply'>): Promise<PromoteReply<'promote.apply'>> {
    const running = this.#apply(body);
    this.#running = running.catch(() => undefined);
    return running;
  }

  /** Promotions that are kept, newest first. */
  async history(): Promise<PromoteReply<'promote.history'>> {
    const promotions = await pastPromotions(this.#given, freely);
    if (this.#isKnownSettled()) return { promotions };
    const refusal = { code: 'PROMOTION_RECOVERY_REQUIRED' } as const;
    return { promotions: promotions.map((past) => ({ ...past, refusal: past.refusal ?? refusal })) };
  }

  /** What the root's file system has, found by trying it. */
  fileSystem(): Promise<PromoteReply<'promote.file-system'>> {
    return this.#answered(() => {
      if (!this.#isSettled()) throw new Stopped('PROMOTION_RECOVERY_REQUIRED');
      if (!this.#lockRoot()) throw new Stopped('PROMOTION_IN_USE', undefined, { detail: rootBusy().message });
      const { root, draft, own, owner, configuration, forbidden } = this.#given;
      checkOpenRoot(root, [draft, own, owner, configuration], forbidden);
      return { outcome: 'found', ...tryRoot(this.#given, this.#bootId) };
    });
  }

  /** What undoing a kept promotion would change. */
  undoPlan(body: PromoteBody<'promote.undo-plan'>): Promise<PromoteReply<'promote.undo-plan'>> {
    return this.#answered(() => {
      if (!this.#isSettled()) throw new Stopped('PROMOTION_RECOVERY_REQUIRED');
      return undoPlan(this.#given, freely, body);
    });
  }

  /** Takes a kept promotion back. */
  undo(body: PromoteBody<'promote.undo'>): Promise<PromoteReply<'promote.undo'>> {
    const running = this.#undo(body);
    this.#running = running.catch(() => undefined);
    return running;
  }

  /** Ends an apply or an undo before its commit. */
  cancel(): PromoteReply<'promote.cancel'> {
    this.#isCancelled = true;
    return {};
  }

  /** Resolves when nothing is under way any more, with the locks let go; an apply goes back first if it still can. */
  async end(): Promise<void> {
    this.#isCancelled = true;
    await this.#running;
    for (const descriptor of [this.#ownLock, this.#rootLock]) if (descriptor !== undefined) closeSync(descriptor);
    this.#ownLock = this.#rootLock = undefined;
  }

  async #apply(body: PromoteBody<'promote.apply'>): Promise<PromoteReply<'promote.apply'>> {
    return this.#answered(async () => {
      this.#begin();
      const pin = this.#pin();
      const approved = approve(this.#given, this.#bootId, body, pin);
      const contents = draftContents(this.#given.draft);
      const applied = await apply(this.#scene(), contents, approved.opening, approved.plan, this.#pace());
      return replyOf(applied, approved);
    });
  }

  async #undo({ promotion }: PromoteBody<'promote.undo'>): Promise<PromoteReply<'promote.undo'>> {
    return this.#answered(() => {
      this.#begin();
      return undo(this.#given, this.#scene(), { bootId: this.#bootId, promotion }, this.#pace());
    });
  }

  /** Nothing is begun before what stands is settled and the root is ours. Throws PromoteRefused, and NativeError where the disk does not let it be known. */
  #begin(): void {
    if (this.#ownLock === undefined || !this.#isSettled()) throw unsettled();
    if (!this.#lockRoot()) throw rootBusy();
  }

  /** What work answers, and what is answered where it breaks. */
  async #answered<Reply>(work: () => Reply | Promise<Reply>): Promise<Reply | Refusal> {
    try {
      return await work();
    } catch (error) {
      if (error instanceof PromoteRefused) throw error;
      if (error instanceof Stopped) {
        tellStop(error, this.#log);
        return { outcome: 'refused', ...named(error) };
      }
      this.#log(causeOf('promotion', error));
      // Committed or not, nobody here can say: this process ends without an answer, and a recovery gives it.
      if (error instanceof CommitUncertain) throw error;
      if (error instanceof MarkDamaged || needsPerson(error)) {
        return { outcome: 'refused', code: this.#codeOfBreak(error) };
      }
      throw error;
    }
  }

  /** What broke and left no journal has changed nothing; where one is left, the recovery has the word. */
  #codeOfBreak(error: unknown): 'PROMOTION_IO_FAILURE' | 'PROMOTION_JOURNAL_INVALID' | 'PROMOTION_RECOVERY_REQUIRED' {
    if (!this.#isKnownSettled()) return 'PROMOTION_RECOVERY_REQUIRED';
    const isUnbelieved = [MarkDamaged, UntrustedFile, JournalDamaged].some((kind) => error instanceof kind);
    return isUnbelieved ? 'PROMOTION_JOURNAL_INVALID' : 'PROMOTION_IO_FAILURE';
  }

  /** Whether nothing of an earlier promotion is left to do. Throws NativeError where the disk does not let it be known. */
  #isSettled(): boolean {
    const { own } = this.#given;
    try {
      return findJournal(own) === undefined && restingIds(own, 'attention').length === 0;
    } catch (error) {
      if (needsPerson(error) && !(error instanceof NativeError)) return false;
      throw error;
    }
  }

  #isKnownSettled(): boolean {
    try {
      return this.#isSettled();
    } catch (error) {
      if (error instanceof NativeError) return false;
      throw error;
    }
  }

  /** The folders, with the limits that the owner's policy states at this moment. */
  #scene(): Scene {
    const { own, root, configuration } = this.#given;
    try {
      const policy = readPolicy(configuration);
      return { own, root, limits: policy && limitsOf(policy) };
    } catch (error) {
      // A policy that cannot be believed says nothing about what may be forgotten; a disk that fails is told of.
      if (needsPerson(error) && !isTrouble(error)) return { own, root };
      throw error;
    }
  }

  #pin(): OwnerPin {
    let pin: OwnerPin | undefined;
    try {
      pin = readPin(this.#given.owner);
      if (pin !== undefined) admitKey(Buffer.from(pin.commandKey, 'hex'));
    } catch (cause) {
      if (![UntrustedFile, NativeError, KeyRefused].some((kind) => cause instanceof kind)) throw cause;
      throw new PromoteRefused('PIN_INVALID', `the pin of this machine cannot be used: ${messageOf(cause)}`, { cause });
    }
    if (pin === undefined) throw new PromoteRefused('PIN_INVALID', 'this machine has no pin; pair it first');
    return pin;
  }

  #pace(): Pace {
    let steps = 0;
    let last = Date.now();
    let at: { readonly phase: Phase; readonly done: number; readonly total: number } | undefined;
    let toldAt = 0;
    const turn = async (isNews: boolean): Promise<void> => {
      if (at !== undefined && (isNews || Date.now() - toldAt >= TELL_MS)) {
        toldAt = Date.now();
        this.#tell(at.phase, at.done, at.total);
      }
      await new Promise((resolve) => void setImmediate(resolve));
      last = Date.now();
      if (this.#isCancelled && at?.phase !== 'cleaning') throw new Stopped('CANCELLED');
    };
    return {
      log: this.#log,
      turn: () => (Date.now() - last >= TURN_MS ? turn(false) : undefined),
      step: async (phase, done, total) => {
        steps += 1;
        const isDue =
          steps % STEPS_AT_ONCE === 0 || Date.now() - last >= TURN_MS || phase !== at?.phase || done === total;
        at = { phase, done, total };
        if (isDue) await turn(true);
        if (this.#isCancelled && phase !== 'cleaning') throw new Stopped('CANCELLED');
      },
    };
  }

  /** One process at a time in the folder of this executor, which nobody else can open. */
  #lockOwn(): void {
    this.#ownLock ??= locked(lockFile(this.#given.own));
    if (this.#ownLock === undefined)
      throw new PromoteRefused('BUSY', 'another promotion of this machine has not ended');
  }

  /**
   * One promotion at a time in this root, which another executor may have too. The root is opened anew: a lock belongs to an open
   * file, and the inherited one is shared with whoever passed it. Whoever may open the root can hold this lock (SECURITY.md), so it
   * is needed only where the root is touched.
   */
  #lockRoot(): boolean {
    const flags = constants.O_RDONLY | constants.O_DIRECTORY;
    this.#rootLock ??= locked(openat2(this.#given.root, Buffer.from('.'), { flags, resolve: RESOLVE_STRICT }));
    return this.#rootLock !== undefined;
  }
}

/** The descriptor with its lock, or undefined where somebody else has it. */
function locked(descriptor: number): number | undefined {
  let isOurs = false;
  try {
    isOurs = tryLock(descriptor);
  } finally {
    if (!isOurs) closeSync(descriptor);
  }
  return isOurs ? descriptor : undefined;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : 'unknown';
}

function unsettled(): PromoteRefused {
  return new PromoteRefused('RECOVERY_REQUIRED', 'an earlier promotion is not settled; run `nessie-executor repair`');
}

function rootBusy(): PromoteRefused {
  return new PromoteRefused('BUSY', 'another promotion works on this folder, or a program holds a lock on it');
}

function lockFile(own: number): number {
  try {
    return openOwn(own, 'lock') ?? createOwn(own, 'lock');
  } catch (error) {
    // Another process made it between the two looks.
    if (error instanceof NativeError && error.code === 'EEXIST') return openOwn(own, 'lock') ?? createOwn(own, 'lock');
    throw error;
  }
}

function replyOf(applied: Applied, { opening, digest }: Approved): PromoteReply<'promote.apply'> {
  switch (applied.outcome) {
    case 'promoted':
      return {
        outcome: 'promoted',
        manifestDigest: digest,
        history: opening.promotion,
        kept: [...applied.kept],
        ...(applied.notKept > 0 ? { notKept: applied.notKept } : {}),
      };
    case 'refused':
      return { outcome: 'refused', ...named(applied) };
    case 'rolled-back':
      return { outcome: 'rolled-back', ...named(applied), kept: [...applied.kept] };
  }
}
