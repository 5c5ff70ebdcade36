/*
 * What this machine knows of itself at this moment and checks commands against: the owner's policy as the file has it, the
 * revisions it stated, and the one that a person confirmed last.
 */
import type { Low } from 'lowdb';
import { catalogueDigest } from '../helpers/protocol/descriptor.ts';
import { admitKey } from '../helpers/protocol/signed.ts';
import type { AdmittedKey } from '../helpers/protocol/signed.ts';
import { parsePolicy } from './config.ts';
import type { Policy } from './config.ts';
import type { GateFacts } from './gate.ts';
import type { PairedRecord, Records, StatedRevision } from './records.ts';

/** The owner's file as it was read last. */
export type PolicyReading =
  | { readonly state: 'valid'; readonly policy: Policy }
  | { readonly state: 'invalid'; readonly message: string };

/** Facts of one daemon; the records behind it are durable, the policy is the owner's file. */
export class Standing {
  readonly #records: Low<Records>;
  readonly #catalogueDigest = Buffer.from(catalogueDigest(), 'hex');
  #reading: PolicyReading = { state: 'invalid', message: 'policy.json was not read yet' };
  #commandKey: { readonly hex: string; readonly key: AdmittedKey } | undefined;
  /** Identity of the root as `workspace` sees it, 64 hexadecimal digits; absent until it said so. */
  rootIdentity: string | undefined;

  constructor(records: Low<Records>) {
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

  /** Remembers what the control plane last signed as confirmed; only a revision that this machine stated counts. */
  async confirm(revision: number, digest: Uint8Array): Promise<void> {
    const stated = this.#records.data.revisions.find((candidate) => candidate.revision === revision);
    if (!stated || stated.policyDigest !== Buffer.from(digest).toString('hex')) return;
    if (this.#records.data.confirmedRevision === revision) return;
    this.#records.data.confirmedRevision = revision;
    await this.#records.write();
  }

  /** Whether the next proof says that a person repaired this machine. */
  get repaired(): boolean {
    return this.#records.data.repaired;
  }

  /** Remembers that a person repaired, or that the control plane has been told. */
  async recordRepaired(repaired: boolean): Promise<void> {
    if (this.#records.data.repaired === repaired) return;
    this.#records.data.repaired = repaired;
    await this.#records.write();
  }

  /** States a new revision: durable before it is sent. Old ones go, but for the confirmed one. */
  async state(next: Omit<StatedRevision, 'revision'>): Promise<StatedRevision> {
    const { revisions, confirmedRevision } = this.#records.data;
    const revision = { ...next, revision: (revisions.at(-1)?.revision ?? 0) + 1 };
    const kept = revisions.filter(
      (stated, index) => stated.revision === confirmedRevision || index >= revisions.length - 4,
    );
    this.#records.data.revisions = [...kept, revision];
    await this.#records.write();
    return revision;
  }
}
