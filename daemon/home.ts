/*
 * What runs on this machine now: nothing paired, a pairing under way, or one executor. The owner's command line asks here.
 */
import { createActor } from 'xstate';
import type { ActorRefFrom, InspectionEvent } from 'xstate';
import type { joiningMachine } from '../machines/pairing/joining.ts';
import type { ExecutorId } from '../helpers/protocol/ids.ts';
import { admitKey } from '../helpers/protocol/signed.ts';
import type { Core } from './core.ts';
import { ensureStated } from './descriptor.ts';
import { Executor } from './executor.ts';
import type { Note } from './executor.ts';
import { claimDigestOf, preparedOf } from './claims.ts';
import { Joining } from './joining.ts';
import type { JoiningWish } from './joining.ts';
import { OwnerRefused } from './owner.ts';
import { commitRotation } from './rotate.ts';
import type { PairingState } from './protocol.ts';
import type { StatedRevision } from './records.ts';

const ASK_MS = 10_000;

interface Pairing {
  readonly joining: Joining;
  readonly actor: ActorRefFrom<typeof joiningMachine>;
}

/** Pairing or executor of one state folder. */
export class Home {
  readonly #core: Core;
  readonly #note: Note;
  readonly #inspect: (event: InspectionEvent) => void;
  #pairing: Pairing | undefined;
  #lastEnding: PairingState = { state: 'none' };
  executor: Executor | undefined;
  /** Called when the executor's machine ends. */
  ended: () => void = () => undefined;

  constructor(core: Core, inspect: (event: InspectionEvent) => void, note: Note) {
    this.#note = note;
    this.#core = core;
    this.#inspect = inspect;
  }

  /** Goes on where the records say: an executor works, an unsettled pairing is resumed. */
  start(): void {
    const { paired, joining } = this.#core.records.data;
    // A replacement that the control plane may have taken is settled first: its old executor may be one that was ended.
    const isReplacing = joining !== null && joining.replaces !== null && joining.offer !== null;
    if (paired && !isReplacing) this.#work();
    if (joining) this.#join(undefined, joining.replaces);
  }

  /** Begins a pairing, or tells how the one under way stands. */
  async pair({
    replace = false,
    ...wish
  }: JoiningWish & { readonly replace?: boolean | undefined }): Promise<PairingState> {
    const { paired } = this.#core.standing;
    if (this.#pairing) return this.pairingState();
    if (paired && !replace) {
      throw new OwnerRefused('ALREADY_PAIRED', 'This machine is paired; replace that pairing, or forget it first.');
    }
    if (paired) await this.#refuseWithDrafts();
    this.#join(wish, paired?.executor ?? null);
    return this.pairingState();
  }

  /** The person's answer to the claim that they were shown. */
  async answer(answer: 'confirm' | 'reject', claimDigest: string): Promise<PairingState> {
    if (!this.#pairing && this.#core.standing.paired) return this.#accept(answer, claimDigest);
    const pairing = this.#need();
    if (!pairing.joining.claim || claimDigestOf(pairing.joining.claim).toString('hex') !== claimDigest) {
      throw new OwnerRefused('CLAIM_CHANGED', 'The claim is no longer what you saw; look at it again.');
    }
    pairing.actor.send(answer === 'confirm' ? { type: 'claim.confirm', claimDigest } : { type: 'claim.reject' });
    return this.pairingState();
  }

  /** The owner's word about the command key of an enrolled machine: it works from then on, or the pairing is dropped. */
  async #accept(answer: 'confirm' | 'reject', claimDigest: string): Promise<PairingState> {
    const { paired } = this.#core.records.data;
    if (!paired || claimDigestOf(paired.claim).toString('hex') !== claimDigest) {
      throw new OwnerRefused('CLAIM_CHANGED', 'The pairing is not the one that you saw; look at it again.');
    }
    if (answer === 'reject' && !paired.accepted) {
      this.#core.records.change({ paired: null, revisions: [] });
      await this.#core.keyStore.client.request('keystore.erase', {}, { withinMs: ASK_MS });
      return { state: 'none' };
    }
    if (!paired.accepted) {
      this.#core.records.change({ paired: { ...paired, accepted: true } });
      this.#work();
    }
    return this.#pairedState();
  }

  cancel(): PairingState {
    this.#need().actor.send({ type: 'joining.cancel' });
    return this.pairingState();
  }

  get isPairing(): boolean {
    return this.#pairing !== undefined;
  }

  /** How the pairing stands, for the owner's eyes. */
  pairingState(): PairingState {
    if (!this.#pairing) return this.#core.records.data.paired ? this.#pairedState() : this.#lastEnding;
    const { joining, actor } = this.#pairing;
    const { context } = actor.getSnapshot();
    const { offer } = this.#core.records.data.joining ?? {};
    const fingerprint = this.#core.records.data.joining?.fingerprint ?? null;
    if (!offer || fingerprint === null)
      return { state: 'sending', fingerprint, attempt: context.attempt, problem: joining.problem };
    const commandKeyFingerprint = admitKey(Buffer.from(offer.commandKey, 'hex')).fingerprint;
    if (joining.claim) {
      const claimDigest = claimDigestOf(joining.claim).toString('hex');
      return { state: 'claimed', claim: joining.claim, claimDigest, fingerprint, commandKeyFingerprint };
    }
    return { state: 'offered', code: offer.code, fingerprint, commandKeyFingerprint, expiresAt: offer.expiresAt };
  }

  #pairedState(): PairingState {
    const { paired } = this.#core.records.data;
    const { rootIdentity } = this.#core.standing;
    if (!paired || rootIdentity === undefined)
      throw new OwnerRefused('HELPER_UNAVAILABLE', 'The workspace has not stated its root yet; ask again.');
    return {
      state: 'paired',
      claim: paired.claim,
      executor: paired.executor,
      fingerprint: paired.fingerprint,
      commandKey: Buffer.from(paired.commandKey, 'hex'),
      rootIdentity: Buffer.from(rootIdentity, 'hex'),
    };
  }

  async #refuseWithDrafts(): Promise<void> {
    const { drafts } = await this.#core.workspace.client.request('workspace.drafts', {}, { withinMs: ASK_MS });
    if (drafts.length > 0) {
      throw new OwnerRefused(
        'DRAFTS_REMAIN',
        `${drafts.length} drafts of this pairing remain; promote or discard them first.`,
      );
    }
  }

  #join(wish: JoiningWish | undefined, replaces: ExecutorId | null): void {
    const core = this.#core;
    const joining = new Joining({
      records: core.records,
      keyStore: () => core.keyStore.client,
      link: () => core.link.client,
      stated: () => this.#firstRevision(),
      wish,
      replaces,
      commitKey: () => commitRotation(core),
    });
    const resumed = preparedOf(core.records.data.joining);
    const flow = resumed?.flow ?? wish?.flow ?? 'code';
    const input = { flow, replaces, prepared: resumed?.prepared ?? null };
    const actor = createActor(joining.machine(), { id: 'joining', input, inspect: this.#inspect });
    this.#pairing = { joining, actor };
    actor.subscribe({ complete: () => this.#joined(actor.getSnapshot().output) });
    actor.start();
  }

  #joined(output: { readonly outcome: string; readonly code: string | null } | undefined): void {
    this.#pairing = undefined;
    if (output?.outcome === 'paired') return this.#begin();
    const outcome =
      (['refused', 'cancelled', 'expired'] as const).find((known) => known === output?.outcome) ?? 'failed';
    this.#lastEnding = { state: 'ended', outcome, code: output?.code ?? 'PAIRING_FAILED' };
    // The pairing that was to be replaced goes on where it did not run meanwhile.
    if (this.#core.records.data.paired && !this.executor) this.#work();
  }

  async #firstRevision(): Promise<StatedRevision> {
    const root = await this.#core.root();
    const { policy } = this.#core.standing;
    if (!policy)
      throw new OwnerRefused('REQUEST_INVALID', 'policy.json is not valid; nessie-executor policy check says why.');
    return ensureStated(this.#core.standing, policy, root);
  }

  /** The executor of a new pairing begins; the one that it replaces ends first. */
  #begin(): void {
    const replaced = this.executor;
    if (!replaced) return this.#work();
    this.executor = undefined;
    replaced.actor.subscribe({ complete: () => this.#work() });
    replaced.actor.send({ type: 'daemon.stop' });
  }

  #work(): void {
    const { paired } = this.#core.records.data;
    if (!paired?.accepted) return;
    this.executor = new Executor(this.#core, paired.executor, this.#inspect, this.#note);
    const { executor } = this;
    executor.actor.subscribe({ complete: () => this.#over(executor) });
    this.executor.actor.start();
  }

  /** An executor ended: this process with it, unless another takes its place. */
  #over(executor: Executor): void {
    if (this.executor !== executor) return;
    if (this.#pairing) this.executor = undefined;
    else this.ended();
  }

  #need(): Pairing {
    if (!this.#pairing) throw new OwnerRefused('NO_PAIRING', 'No pairing is under way.');
    return this.#pairing;
  }
}
