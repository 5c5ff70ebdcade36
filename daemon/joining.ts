/*
 * Meets the contracts of machines/pairing/joining.ts: this machine's side of a pairing, of either flow. The exact signed bytes
 * are on disk before the first packet and are what is sent, and sent again.
 */
import { randomBytes } from 'node:crypto';
import { fromPromise } from 'xstate';
import type * as z from 'zod';
import { joiningMachine } from '../machines/pairing/joining.ts';
import type {
  AskStanding,
  DropRequest,
  PersistRequest,
  PrepareRequest,
  SavePairing,
  SendConfirmation,
  SendEnding,
  SendRequest,
  Standing as PairingStanding,
} from '../machines/pairing/types.ts';
import type { Refused } from '../machines/values.ts';
import { signStatement, signStatements } from '../actors/key-store.ts';
import type { KeyStoreClient } from '../actors/key-store.ts';
import type { LinkClient } from '../actors/link.ts';
import { decode, encode } from '../helpers/protocol/codec.ts';
import { pairingIdSchema } from '../helpers/protocol/ids.ts';
import type { ExecutorId, PairingId } from '../helpers/protocol/ids.ts';
import { admitKey, sha256 } from '../helpers/protocol/signed.ts';
import type { Signed } from '../helpers/protocol/signed.ts';
import type { Claim } from '../helpers/protocol/statements.ts';
import { pairingCalls } from '../server/protocol.ts';
import type { Paired, PairingCallAnswer } from '../server/protocol.ts';
import { claimDigestOf, codeOf, offerOf, refusalCode, shown } from './claims.ts';
import type { DaemonRecords, JoiningRecord, StatedRevision } from './records.ts';

const ANSWER_MS = 15_000;
const SIGN_MS = 5000;

type CallName = keyof typeof pairingCalls;

/** What the owner asked for. */
export type JoiningWish =
  | { readonly flow: 'code'; readonly machineName: string }
  | {
      readonly flow: 'enrolment';
      readonly machineName: string;
      readonly requestId: string;
      readonly challenge: Uint8Array;
    };

/** What a joining needs and what it changes. */
export interface JoiningParts {
  readonly records: DaemonRecords;
  readonly keyStore: () => KeyStoreClient;
  readonly link: () => LinkClient;
  /** The first revision, stated before it is sent. */
  readonly stated: () => Promise<StatedRevision>;
  readonly wish: JoiningWish | undefined;
  /** The next key becomes the only one: the control plane has it. */
  readonly commitKey: () => Promise<unknown>;
  /** Executor that the new pairing replaces; null for the first one. */
  readonly replaces: ExecutorId | null;
}

/** The control plane refused a pairing call. */
class CallRefused extends Error {
  override readonly name = 'CallRefused';
  readonly code: string;

  constructor(code: string) {
    super(`control plane refused: ${code}`);
    this.code = code;
  }
}

/** One joining and what it learned on the way. */
export class Joining {
  readonly #parts: JoiningParts;
  #prepared: JoiningRecord | undefined;
  #paired: Paired | undefined;
  /** The claim that was fetched last, as the person is shown it. */
  claim: Claim | undefined;
  /** Why the last call had no answer; a code of link's own. */
  problem: string | null = null;

  constructor(parts: JoiningParts) {
    this.#parts = parts;
  }

  /** The machine with everything that it asks for. */
  machine(): typeof joiningMachine {
    return joiningMachine.provide({
      // The owner's request is refused before it becomes an event; what still comes late changes nothing.
      actions: { refuse: () => undefined },
      actors: {
        prepareRequest: fromPromise<PrepareRequest['output'], PrepareRequest['input']>(() => this.#prepare()),
        persistRequest: fromPromise<PersistRequest['output'], PersistRequest['input']>(() => this.#persist()),
        sendRequest: fromPromise<SendRequest['output'], SendRequest['input']>(() => this.#send()),
        askStanding: fromPromise<AskStanding['output'], AskStanding['input']>(({ input }) =>
          this.#ask(pairingIdSchema.parse(input.pairingId)),
        ),
        sendConfirmation: fromPromise<SendConfirmation['output'], SendConfirmation['input']>(({ input }) =>
          this.#confirm(input),
        ),
        sendEnding: fromPromise<SendEnding['output'], SendEnding['input']>(({ input }) => this.#end(input)),
        savePairing: fromPromise<SavePairing['output'], SavePairing['input']>(() => this.#save()),
        dropRequest: fromPromise<DropRequest['output'], DropRequest['input']>(({ input }) => this.#drop(input)),
      },
    });
  }

  async #prepare(): Promise<PrepareRequest['output']> {
    const { wish } = this.#parts;
    if (!wish) return { refused: true, code: 'REQUEST_NOT_PREPARED' };
    const keyStore = this.#parts.keyStore();
    const publicKey = await this.#newKey();
    const stated = await this.#parts.stated();
    const descriptor = Buffer.from(stated.descriptor, 'base64');
    const descriptorDigest = sha256(descriptor);
    const requestId = wish.flow === 'enrolment' ? wish.requestId : `req_${randomBytes(16).toString('hex')}`;
    const at = Date.now();
    const proof =
      wish.flow === 'enrolment'
        ? ({
            type: 'machine.enrol',
            fields: { at, requestId, challenge: wish.challenge, publicKey, descriptorDigest },
          } as const)
        : ({
            type: 'machine.pair-start',
            fields: { at, requestId, machineName: wish.machineName, publicKey, descriptorDigest },
          } as const);
    const [descriptorSigned, proofSigned] = await signStatements(
      keyStore,
      [{ type: 'machine.descriptor', fields: { at, revision: stated.revision, descriptorDigest } }, proof],
      { key: await this.#key(), withinMs: SIGN_MS },
    );
    const facts =
      wish.flow === 'enrolment'
        ? { requestId, challenge: wish.challenge }
        : { requestId, machineName: wish.machineName };
    const body = encode({ ...facts, publicKey, descriptor, descriptorSigned, proof: proofSigned });
    const { fingerprint } = admitKey(publicKey);
    this.#prepared = {
      flow: wish.flow,
      requestId,
      body: body.toString('base64'),
      requestDigest: sha256(body).toString('hex'),
      fingerprint,
      replaces: this.#parts.replaces,
      confirmedClaim: null,
      offer: null,
    };
    return { requestId, requestDigest: this.#prepared.requestDigest, fingerprint };
  }

  async #persist(): Promise<PersistRequest['output']> {
    if (!this.#prepared) throw new RangeError('no request was prepared');
    this.#parts.records.change({ joining: this.#prepared });
    return { durable: true };
  }

  #send(): Promise<SendRequest['output']> {
    return this.#refusable(async () => {
      const record = this.#record();
      const call = record.flow === 'enrolment' ? 'enrol' : 'start';
      const answer = await this.#call(call, Buffer.from(record.body, 'base64'));
      const commandKey = admitKey(answer.commandKey);
      const offer = {
        pairing: answer.pairing,
        code: 'code' in answer ? answer.code : null,
        commandKey: Buffer.from(commandKey.bytes).toString('hex'),
        expiresAt: answer.expiresAt,
      };
      this.#change(record, { offer });
      return offerOf(offer, commandKey.fingerprint);
    });
  }

  async #ask(pairing: PairingId): Promise<PairingStanding> {
    const poll = await signStatement(
      this.#parts.keyStore(),
      'machine.pair-poll',
      { at: Date.now(), pairing },
      { key: await this.#key(), withinMs: SIGN_MS },
    );
    return this.#standing(await this.#call('poll', encode({ poll })));
  }

  #confirm({ pairingId, claimDigest }: SendConfirmation['input']): Promise<SendConfirmation['output']> {
    return this.#refusable(async () => {
      const fields = {
        at: Date.now(),
        pairing: pairingIdSchema.parse(pairingId),
        claimDigest: Buffer.from(claimDigest, 'hex'),
        answer: 'confirm' as const,
      };
      const confirm = await signStatement(this.#parts.keyStore(), 'machine.pair-confirm', fields, {
        key: await this.#key(),
        withinMs: SIGN_MS,
      });
      const record = this.#record();
      // On disk before it is sent: an answer that says "paired" is believed for exactly this claim.
      this.#change(record, { confirmedClaim: claimDigest });
      const { replaces } = record;
      if (replaces === null) return this.#standing(await this.#call('confirm', encode({ confirm })));
      const { current, next } = await this.#signReplacement(pairingIdSchema.parse(pairingId), replaces);
      return this.#standing(await this.#call('replace', encode({ confirm, current, next })));
    });
  }

  /** One statement by both keys: the old one lets go, the new one takes over. */
  async #signReplacement(pairing: PairingId, oldExecutor: ExecutorId): Promise<{ current: Signed; next: Signed }> {
    const keyStore = this.#parts.keyStore();
    const status = await keyStore.request('keystore.status', {}, { withinMs: SIGN_MS });
    if (status.state !== 'rotating') throw new RangeError('there is no next key to replace the current one');
    const fields = {
      at: Date.now(),
      pairing,
      oldExecutor,
      oldPublicKey: status.publicKey,
      newPublicKey: status.nextPublicKey,
    };
    return keyStore.request('keystore.rotate-sign', { type: 'machine.replace', fields }, { withinMs: SIGN_MS });
  }

  /** The key that this pairing is about, made where there is none yet. */
  async #newKey(): Promise<Uint8Array> {
    const keyStore = this.#parts.keyStore();
    if (this.#parts.replaces !== null) {
      return (await keyStore.request('keystore.rotate-prepare', {}, { withinMs: SIGN_MS })).nextPublicKey;
    }
    const status = await keyStore.request('keystore.status', {}, { withinMs: SIGN_MS });
    if (status.state !== 'empty') return status.publicKey;
    return (await keyStore.request('keystore.generate', { purpose: 'machine' }, { withinMs: SIGN_MS })).publicKey;
  }

  /** Which of the keys signs for this pairing: the next one, until it has become the only one. */
  async #key(): Promise<'current' | 'next'> {
    const { state } = await this.#parts.keyStore().request('keystore.status', {}, { withinMs: SIGN_MS });
    return state === 'rotating' ? 'next' : 'current';
  }

  async #end({ pairingId, ending }: SendEnding['input']): Promise<SendEnding['output']> {
    const at = Date.now();
    const pairing = pairingIdSchema.parse(pairingId);
    if (ending === 'reject' && this.claim) {
      const fields = { at, pairing, claimDigest: claimDigestOf(this.claim), answer: 'reject' as const };
      const confirm = await signStatement(this.#parts.keyStore(), 'machine.pair-confirm', fields, {
        key: await this.#key(),
        withinMs: SIGN_MS,
      });
      await this.#call('confirm', encode({ confirm }));
    } else {
      const poll = await signStatement(
        this.#parts.keyStore(),
        'machine.pair-poll',
        { at, pairing },
        { key: await this.#key(), withinMs: SIGN_MS },
      );
      await this.#call('cancel', encode({ poll }));
    }
    return { told: true };
  }

  async #save(): Promise<SavePairing['output']> {
    const record = this.#record();
    if (!this.#paired) throw new RangeError('nothing was confirmed');
    const { executor, commandKey, claim } = this.#paired;
    const paired = {
      executor,
      fingerprint: record.fingerprint,
      commandKey: Buffer.from(commandKey).toString('hex'),
      commandKeyRotation: 0,
      claim,
      pairedAt: Date.now(),
      // In the code flow the owner answered the claim with both fingerprints before them; an enrolled machine asks its owner yet.
      accepted: record.flow === 'code',
    };
    this.#parts.records.change({ paired });
    // A crash before this leaves two keys: the first session that the new one proves ends the old one.
    if (record.replaces !== null) await this.#parts.commitKey();
    return { durable: true };
  }

  async #drop({ keepKey }: DropRequest['input']): Promise<DropRequest['output']> {
    const { records } = this.#parts;
    const isFirst = (records.data.joining?.replaces ?? this.#parts.replaces) === null;
    records.change({ joining: null, ...(keepKey || !isFirst ? {} : { revisions: [] }) });
    if (!keepKey)
      await this.#parts
        .keyStore()
        .request(isFirst ? 'keystore.erase' : 'keystore.rotate-abandon', {}, { withinMs: SIGN_MS });
    return { dropped: true };
  }

  /**
   * THREAT: whoever answers in place of the control plane says "paired" before anybody here confirmed anything, or for another
   * claim. Such an answer is none (test/daemon/executor.test.ts).
   */
  #checkPaired({ executor, claim }: Paired): void {
    const { flow, confirmedClaim, offer } = this.#record();
    const isOurs = claim.executor === executor && claim.pairing === offer?.pairing;
    const isConfirmed = flow === 'enrolment' || confirmedClaim === claimDigestOf(claim).toString('hex');
    if (!isOurs || !isConfirmed)
      throw new TypeError('the control plane says paired for a claim that nobody here confirmed');
  }

  #record(): JoiningRecord {
    const record = this.#parts.records.data.joining;
    if (!record) throw new RangeError('no request is on disk');
    return record;
  }

  /** Changes the request on disk. Throws RangeError where it was dropped meanwhile, and RecordsUnwritable. */
  #change(record: JoiningRecord, fields: Pick<Partial<JoiningRecord>, 'offer' | 'confirmedClaim'>): void {
    const { records } = this.#parts;
    if (records.data.joining?.requestId !== record.requestId) throw new RangeError('the request is no longer on disk');
    records.change({ joining: { ...records.data.joining, ...fields } });
  }

  #standing(answer: PairingCallAnswer<'poll' | 'confirm'>): PairingStanding {
    switch (answer.state) {
      case 'waiting':
        return { standing: 'waiting' };
      case 'claimed':
        this.claim = answer.claim;
        return {
          standing: 'claimed',
          claim: { claimDigest: claimDigestOf(answer.claim).toString('hex'), facts: shown(answer.claim) },
        };
      case 'paired':
        this.#checkPaired(answer.paired);
        this.#paired = answer.paired;
        this.claim = answer.paired.claim;
        return {
          standing: 'confirmed',
          executorId: answer.paired.executor,
          commandKeyFingerprint: admitKey(answer.paired.commandKey).fingerprint,
        };
      case 'rejected':
        return { standing: 'refused', by: 'person' };
      case 'cancelled':
        return { standing: 'cancelled', by: 'person' };
      case 'expired':
        return { standing: 'expired' };
    }
  }

  async #call<Call extends CallName>(call: Call, bytes: Uint8Array): Promise<PairingCallAnswer<Call>> {
    try {
      const { status, bytes: answer } = await this.#parts
        .link()
        .request('link.call', { call, bytes }, { withinMs: ANSWER_MS });
      this.problem = null;
      const value = decode(answer);
      if (status >= 400 && status < 500 && status !== 429) throw new CallRefused(refusalCode(value));
      if (status !== 200) throw new Error(`control plane answered ${status}`);
      const shape: z.ZodType = pairingCalls[call].answer;
      // The schema of `call` passed; the compiler cannot follow an indexed lookup through parse.
      return shape.parse(value) as PairingCallAnswer<Call>;
    } catch (error) {
      if (!(error instanceof CallRefused)) this.problem = codeOf(error);
      throw error;
    }
  }

  async #refusable<Value>(work: () => Promise<Value>): Promise<Value | Refused> {
    try {
      return await work();
    } catch (error) {
      if (error instanceof CallRefused) return { refused: true, code: error.code };
      throw error;
    }
  }
}
