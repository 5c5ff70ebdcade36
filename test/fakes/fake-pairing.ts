/*
 * The pairing calls of a fake control plane: any machine is claimed at once, and paired when its person confirms the claim.
 */
import { randomBytes } from 'node:crypto';
import { canonicalBytes, parseDescriptor } from '../../helpers/protocol/descriptor.ts';
import type { Descriptor } from '../../helpers/protocol/descriptor.ts';
import * as ids from '../../helpers/protocol/ids.ts';
import type { ExecutorId } from '../../helpers/protocol/ids.ts';
import { admitKey, sha256 } from '../../helpers/protocol/signed.ts';
import type { AdmittedKey } from '../../helpers/protocol/signed.ts';
import { openStatement } from '../../helpers/protocol/statements.ts';
import type { Claim } from '../../helpers/protocol/statements.ts';
import { pairingCalls } from '../../server/protocol.ts';

/** One pairing and what the machine stated in it. */
export class FakePairing {
  machine: AdmittedKey | undefined;
  descriptor: Descriptor | undefined;
  /** Says `paired` to the first poll, as whoever stands in between would. */
  claimsAtOnce = false;
  polls = 0;
  readonly #id = ids.pairingIdSchema.parse(`pair_${randomBytes(16).toString('hex')}`);
  readonly #executor: ExecutorId;
  readonly #commandKey: () => Uint8Array;

  constructor(executor: ExecutorId, commandKey: () => Uint8Array) {
    this.#executor = executor;
    this.#commandKey = commandKey;
  }

  #claim(): Claim {
    return {
      executor: this.#executor,
      pairing: this.#id,
      organisation: ids.organisationIdSchema.parse(`org_${'1'.repeat(32)}`),
      organisationName: 'Organisation',
      team: ids.teamIdSchema.parse(`team_${'1'.repeat(32)}`),
      teamName: 'Team',
      scope: 'private',
      label: 'machine',
    };
  }

  /** Answers one call as if the person on the page had claimed at once. */
  answer(call: keyof typeof pairingCalls, body: unknown): unknown {
    const expiresAt = Date.now() + 600_000;
    if (call === 'start' || call === 'enrol') {
      const { publicKey, descriptor } = pairingCalls.start.body.partial().parse(body);
      if (!publicKey || !descriptor) throw new Error('the request is not whole');
      this.machine = admitKey(publicKey);
      this.descriptor = parseDescriptor(descriptor);
      return {
        pairing: this.#id,
        code: '01234567',
        fingerprint: this.machine.fingerprint,
        commandKey: this.#commandKey(),
        expiresAt,
        pollMs: 100,
      };
    }
    if (call === 'poll') this.polls += 1;
    if (call === 'poll' && this.claimsAtOnce) return this.#paired();
    if (call === 'poll') return { state: 'claimed', claim: this.#claim() };
    if (call === 'claim') return { claim: this.#claim() };
    if (call === 'cancel') return { state: 'cancelled' };
    const { confirm } = pairingCalls.confirm.body.parse(body);
    const opened = this.machine && openStatement('machine.pair-confirm', this.machine, confirm);
    if (!opened || !sha256(canonicalBytes(this.#claim())).equals(opened.statement.claimDigest))
      throw new Error('confirmation is for another claim');
    if (opened.statement.answer === 'reject') return { state: 'rejected' };
    return this.#paired();
  }

  #paired(): unknown {
    const paired = { executor: this.#executor, commandKey: this.#commandKey(), claim: this.#claim() };
    return { state: 'paired', paired };
  }
}
