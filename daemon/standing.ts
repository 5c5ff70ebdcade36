/*
 * What this machine knows of itself at this moment and checks commands against: the owner's policy as the file has it, the
 * revisions it stated, and the one that a person confirmed last.
 */
import { catalogueDigest } from '../helpers/protocol/descriptor.ts';
import { admitKey } from '../helpers/protocol/signed.ts';
import type { AdmittedKey } from '../helpers/protocol/signed.ts';
import { parsePolicy } from './config.ts';
import type { Policy } from '../helpers/protocol/policy.ts';
import type { GateFacts } from './gate.ts';
import type { DaemonRecords, PairedRecord, StatedRevision } from './records.ts';

/** The owner's file as it was read last. */
export type PolicyReading =
  | { readonly state: 'valid'; readonly policy: Policy }
  | { readonly state: 'invalid'; readonly message: string };

/** Facts of one daemon; the records behind it are durable, the policy is the owner's file. */
export class Standing {
  readonly #records: DaemonRecords;
  readonly #catalogueDigest = Buffer.from(catalogueDigest(), 'hex');
  #reading: PolicyReading = { state: 'invalid', message: 'policy.json was not read yet' };
  #commandKey: { readonly hex: string; readonly key: AdmittedKey } | undefined;
  /** Identity of the root as `workspace` sees it, 64 hexadecimal digits; absent until it said so. */
  rootIdentity: string | undefined;

  constructor(records: DaemonRecords) {
    this.#records = records;
  }

  get reading(): PolicyReading {
    return this.#reading;
  }

  /** Takes the bytes of policy.json, or undefined when they cannot be read. */
  readPolicy(text: string | undefined): void {
    try {
      this.#reading =
        text === undefined
          ? { state: 'invalid', message: 'policy.json cannot be read; nothing is permitted until it can' }
          : { state: 'valid', policy: parsePolicy(text) };
    } catch (error) {
      this.#reading = { state: 'invalid', message: error instanceof Error ? error.message : 'policy.json is invalid' };
    }
  }

  /** The policy of this moment; undefined permits nothing. */
  get policy(): Policy | undefined {
    return this.#reading.state === 'valid' ? this.#reading.policy : undefined;
  }

  get paired(): PairedRecord | null {
    return this.#records.data.paired;
  }

  /** The pinned command key. Throws where nothing is paired. */
  get commandKey(): AdmittedKey {
    const hex = this.#records.data.paired?.commandKey;
    if (hex === undefined) throw new RangeError('no control plane is paired');
    if (this.#commandKey?.hex !== hex) this.#commandKey = { hex, key: admitKey(Buffer.from(hex, 'hex')) };
    return this.#commandKey.key;
  }

  /** The newest revision that this machine stated. */
  get stated(): StatedRevision | undefined {
    return this.#records.data.revisions.at(-1);
  }

  /** The revision that a person confirmed last; undefined before the first. */
  get confirmed(): StatedRevision | undefined {
    const { revisions, confirmedRevision } = this.#records.data;
    return revisions.find(({ revision }) => revision === confirmedRevision);
  }

  /** Facts for the gate. A root that is not the confirmed one confirms nothing (D-22). */
  facts(): Pick<GateFacts, 'confirmed' | 'policy' | 'catalogueDigest' | 'commandKey'> {
    const stated = this.confirmed;
    const confirmed =
      stated && stated.rootIdentity === this.rootIdentity
        ? { revision: stated.revision, policy: stated.policy, policyDigest: Buffer.from(stated.policyDigest, 'hex') }
        : undefined;
    return { confirmed, policy: this.policy, catalogueDigest: this.#catalogueDigest, commandKey: this.commandKey };
  }

  /** Remembers what the control plane last signed as confirmed; only a revision that this machine stated counts. Throws RecordsUnwritable. */
  confirm(revision: number, digest: Uint8Array): void {
    const stated = this.#records.data.revisions.find((candidate) => candidate.revision === revision);
    if (!stated || stated.policyDigest !== Buffer.from(digest).toString('hex')) return;
    if (this.#records.data.confirmedRevision !== revision) this.#records.change({ confirmedRevision: revision });
  }

  /** Whether a person repaired this machine and no proof has told of it. */
  get repaired(): boolean {
    return this.#records.data.repaired;
  }

  /** A person repaired this machine: the next proof says so. Throws RecordsUnwritable. */
  keepRepair(): void {
    if (!this.repaired) this.#records.change({ repaired: true });
  }

  /**
   * A proof that tells of the repair is about to be sent: no further one may.
   *
   * THREAT: a machine that says for ever that a person repaired it leaves the error state of a detected clone with nobody looking.
   * The repair is used up on disk before its proof leaves, and where that fails the proof stays here
   * (test/daemon/standing.test.ts). Throws RecordsUnwritable.
   */
  useRepair(): void {
    if (this.repaired) this.#records.change({ repaired: false });
  }

  /** States a new revision: durable before it is sent. Old ones go, but for the confirmed one. Throws RecordsUnwritable. */
  state(next: Omit<StatedRevision, 'revision'>): StatedRevision {
    const { revisions, confirmedRevision } = this.#records.data;
    const revision = { ...next, revision: (revisions.at(-1)?.revision ?? 0) + 1 };
    const kept = revisions.filter(
      (stated, index) => stated.revision === confirmedRevision || index >= revisions.length - 4,
    );
    this.#records.change({ revisions: [...kept, revision] });
    return revision;
  }
}
