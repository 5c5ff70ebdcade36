/*
 * The requests of promote in the only order that they may come: recover, then repair or one apply, and cancel at any time.
 */
import { closeSync, constants } from 'node:fs';
import { randomBytes } from 'node:crypto';
import { rootIdentity } from '../files/root.ts';
import type { FolderId } from '../files/root.ts';
import { readDraft, manifestOf } from '../files/draft.ts';
import { DraftDamaged } from '../files/draft-index.ts';
import type { IndexState } from '../files/draft-index.ts';
import { manifestBytes, manifestDigest } from '../files/manifest.ts';
import type { Manifest } from '../files/manifest.ts';
import { NativeError } from '../runtime/libc.ts';
import { RESOLVE_STRICT, openat2 } from '../runtime/native-files.ts';
import { tryLock } from '../runtime/native-locks.ts';
import { apply } from './apply.ts';
import type { Applied, Opening, Pace, Phase } from './apply.ts';
import { checkConfirmation, checkManifest, commandKey, openApproval } from './approval.ts';
import { CommitUncertain, findJournal } from './journal.ts';
import { MarkDamaged, readMark, writeMark } from './mark.ts';
import { createOwn, openOwn, UntrustedFile } from './own-folder.ts';
import { readConfirmation, readPin } from './owner-folder.ts';
import { planOf } from './plan.ts';
import type { Planned } from './plan.ts';
import type { OwnerConfirmation, OwnerPin, PromoteBody, PromoteRefusal, PromoteReply } from './protocol.ts';
import { needsPerson, recover } from './recover.ts';
import { repair } from './repair.ts';
import { checkOpenRoot } from './root-check.ts';
import { restingIds } from './resting-place.ts';
import { Stopped } from './stop.ts';
import { STAGE_PREFIX } from './tree.ts';

/** Descriptors that promote is born with. */
export interface Given {
  readonly root: number;
  readonly draft: number;
  readonly own: number;
  readonly owner: number;
  /** Chains of further folders of the executor that no root may overlap. */
  readonly forbidden: readonly (readonly FolderId[])[];
}

/** A request that is refused; `code` is one of the protocol's. */
export class PromoteRefused extends Error {
  override readonly name = 'PromoteRefused';
  readonly code: PromoteRefusal;

  constructor(code: PromoteRefusal, sentence: string, options?: ErrorOptions) {
    super(sentence, options);
    this.code = code;
  }
}

/** An approved draft, ready to be applied. */
interface Approved {
  readonly opening: Opening;
  readonly plan: readonly Planned[];
  readonly digest: string;
}

/** How many steps are done before other requests are let in, unless time has passed. */
const STEPS_AT_ONCE = 64;
const TURN_MS = 20;

/** Answers the requests of one process. `tell` sends progress; `bootId` is the kernel's. */
export class PromoteHandlers {
  readonly #given: Given;
  readonly #bootId: string;
  readonly #tell: (phase: Phase, done: number, total: number) => void;
  #isCancelled = false;
  #running: Promise<unknown> = Promise.resolve();
  #locks: readonly number[] = [];

  constructor(given: Given, bootId: string, tell: (phase: Phase, done: number, total: number) => void) {
    this.#given = given;
    this.#bootId = bootId;
    this.#tell = tell;
  }

  /** Takes the locks and settles what is there. Throws PromoteRefused BUSY where another promotion works on this root. */
  recover(): PromoteReply<'promote.recover'> {
    try {
      this.#lock();
    } catch (error) {
      if (needsPerson(error)) return { outcome: 'needs-attention', conflicts: [] };
      throw error;
    }
    return recover(this.#given, { bootId: this.#bootId, now: Date.now() });
  }

  /** Does what a person decided about a journal that recovery left. */
  repair({ choice }: PromoteBody<'promote.repair'>): PromoteReply<'promote.repair'> {
    if (this.#locks.length === 0) throw unsettled();
    return repair(this.#given, choice);
  }

  /** Applies an approved draft. */
  apply(body: PromoteBody<'promote.apply'>): Promise<PromoteReply<'promote.apply'>> {
    const running = this.#apply(body);
    this.#running = running.catch(() => undefined);
    return running;
  }

  /** Ends an apply before its commit. */
  cancel(): PromoteReply<'promote.cancel'> {
    this.#isCancelled = true;
    return {};
  }

  /** Resolves when nothing is under way any more, with the locks let go; an apply goes back first if it still can. */
  async end(): Promise<void> {
    this.#isCancelled = true;
    await this.#running;
    for (const descriptor of this.#locks) closeSync(descriptor);
    this.#locks = [];
  }

  async #apply(body: PromoteBody<'promote.apply'>): Promise<PromoteReply<'promote.apply'>> {
    if (this.#locks.length === 0 || !this.#isSettled()) throw unsettled();
    const pin = this.#pin();
    try {
      const approved = this.#approve(body, pin);
      const applied = await apply(this.#given, this.#given.draft, approved.opening, approved.plan, this.#pace());
      return replyOf(applied, approved);
    } catch (error) {
      if (error instanceof Stopped) return { outcome: 'refused', code: error.code, ...named(error.path) };
      if (error instanceof MarkDamaged || error instanceof UntrustedFile)
        return { outcome: 'refused', code: 'PROMOTION_JOURNAL_INVALID' };
      if (error instanceof CommitUncertain) return { outcome: 'refused', code: 'PROMOTION_RECOVERY_REQUIRED' };
      if (needsPerson(error)) return { outcome: 'refused', code: this.#codeOfBreak() };
      throw error;
    }
  }

  /** What broke before a journal was begun has changed nothing. */
  #codeOfBreak(): 'PROMOTION_IO_FAILURE' | 'PROMOTION_RECOVERY_REQUIRED' {
    return this.#isSettled() ? 'PROMOTION_IO_FAILURE' : 'PROMOTION_RECOVERY_REQUIRED';
  }

  #isSettled(): boolean {
    const { own } = this.#given;
    try {
      return findJournal(own) === undefined && restingIds(own, 'attention').length === 0;
    } catch (error) {
      if (needsPerson(error)) return false;
      throw error;
    }
  }

  #pin(): OwnerPin {
    let pin: OwnerPin | undefined;
    try {
      pin = readPin(this.#given.owner);
    } catch (cause) {
      if (!(cause instanceof UntrustedFile || cause instanceof NativeError)) throw cause;
      throw new PromoteRefused('PIN_INVALID', `the pin of this machine cannot be used: ${cause.message}`, { cause });
    }
    if (pin === undefined) throw new PromoteRefused('PIN_INVALID', 'this machine has no pin; pair it first');
    return pin;
  }

  /** Everything before the first look at the person's files; the approval is used up when this returns. */
  #approve({ approval: signed, pinRotation }: PromoteBody<'promote.apply'>, pin: OwnerPin): Approved {
    const { root, draft, own, owner, forbidden } = this.#given;
    checkOpenRoot(root, [draft, own, owner], forbidden);
    const mark = readMark(own);
    const { key, succession } = commandKey(pin, mark, pinRotation);
    const identity = rootIdentity(root).toString('hex');
    const now = Date.now();
    const { statement, digest: approvalDigest } = openApproval(key, signed, { pin, mark, rootIdentity: identity, now });
    const { manifest, digest, state } = rebuild(draft);
    checkManifest(statement, manifest, digest);
    checkConfirmation(pin, manifest, digest, confirmationIn(owner, digest));
    const plan = planOf(manifest, state);
    writeMark(own, {
      sequence: statement.sequence,
      used: [...mark.used, statement.promotion],
      successions: succession === undefined ? mark.successions : [...mark.successions, succession],
    });
    const opening: Opening = {
      promotion: statement.promotion,
      executor: statement.executor,
      run: statement.run,
      manifestDigest: digest,
      approvalDigest: approvalDigest.toString('hex'),
      rootIdentity: identity,
      bootId: this.#bootId,
      stage: STAGE_PREFIX + randomBytes(16).toString('hex'),
      at: now,
    };
    return { opening, plan, digest };
  }

  #pace(): Pace {
    let steps = 0;
    let last = Date.now();
    let told: Phase | undefined;
    return {
      step: async (phase, done, total) => {
        steps += 1;
        const isDue = steps % STEPS_AT_ONCE === 0 || Date.now() - last >= TURN_MS || phase !== told || done === total;
        if (isDue) {
          this.#tell(phase, done, total);
          told = phase;
          await new Promise((resolve) => void setImmediate(resolve));
          last = Date.now();
        }
        if (this.#isCancelled && phase !== 'cleaning') throw new Stopped('CANCELLED');
      },
    };
  }

  /**
   * One promotion at a time, of this executor (its own folder) and of this root (another executor may have it too). The root
   * is opened anew: a lock belongs to an open file, and the inherited one is shared with whoever passed it.
   */
  #lock(): void {
    if (this.#locks.length > 0) return;
    const { own, root } = this.#given;
    const flags = constants.O_RDONLY | constants.O_DIRECTORY;
    const locks = [lockFile(own), openat2(root, Buffer.from('.'), { flags, resolve: RESOLVE_STRICT })];
    if (!locks.every((descriptor) => tryLock(descriptor))) {
      for (const descriptor of locks) closeSync(descriptor);
      throw new PromoteRefused('BUSY', 'another promotion works on this workspace; it must end first');
    }
    this.#locks = locks;
  }
}

function unsettled(): PromoteRefused {
  return new PromoteRefused('RECOVERY_REQUIRED', 'an earlier promotion is not settled; run `nessie-executor repair`');
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

/** A confirmation that cannot be believed is none. */
function confirmationIn(owner: number, digest: string): OwnerConfirmation | undefined {
  try {
    return readConfirmation(owner, digest);
  } catch (error) {
    if (error instanceof UntrustedFile) return undefined;
    throw error;
  }
}

/** The manifest as the draft's own bytes give it now. Throws Stopped for a draft that cannot be read: it is not what was reviewed. */
function rebuild(draft: number): { manifest: Manifest; digest: string; state: IndexState } {
  try {
    const state = readDraft(draft);
    const manifest = manifestOf(state);
    return { manifest, digest: manifestDigest(manifestBytes(manifest)), state };
  } catch (cause) {
    if (cause instanceof DraftDamaged || cause instanceof NativeError) {
      throw new Stopped('PROMOTION_REVIEW_STALE', undefined, { cause });
    }
    throw cause;
  }
}

function replyOf(applied: Applied, { opening, digest }: Approved): PromoteReply<'promote.apply'> {
  switch (applied.outcome) {
    case 'promoted':
      return { outcome: 'promoted', manifestDigest: digest, history: opening.promotion, kept: [...applied.kept] };
    case 'refused':
      return { outcome: 'refused', code: applied.code, ...named(applied.path) };
    case 'rolled-back':
      return { outcome: 'rolled-back', code: applied.code, ...named(applied.path), kept: [...applied.kept] };
  }
}

/** A path that fits the answer; one that is longer as path text is left out. */
function named(path: string | undefined): { path?: string } {
  return path === undefined || path.length > 4096 ? {} : { path };
}
