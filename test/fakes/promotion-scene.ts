import assert from 'node:assert/strict';
import { createHash, generateKeyPairSync } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

import { connectPromote } from '../../actors/promote.ts';
import type { PromoteClient, PromoteProgress } from '../../actors/promote.ts';
import { defaultPolicy } from '../../daemon/config.ts';
import type { Policy } from '../../helpers/protocol/policy.ts';
import { digestDescriptor } from '../../helpers/files/digest.ts';
import { sealHeader, sealSteps } from '../../helpers/files/draft-index.ts';
import type { Base, Entry, Now, Step } from '../../helpers/files/draft-index.ts';
import { contentName, indexName, manifestOf, readDraft, stampOf } from '../../helpers/files/draft.ts';
import { manifestBytes, manifestDigest } from '../../helpers/files/manifest.ts';
import type { Manifest } from '../../helpers/files/manifest.ts';
import { rootIdentity } from '../../helpers/files/root.ts';
import { promotionIdSchema, runIdSchema } from '../../helpers/protocol/ids.ts';
import { signPayload } from '../../helpers/protocol/signed.ts';
import type { Signed } from '../../helpers/protocol/signed.ts';
import { approvalSchema, encodeStatement } from '../../helpers/protocol/statements.ts';
import type { Approval } from '../../helpers/protocol/statements.ts';
import { statx } from '../../helpers/runtime/native-files.ts';
import type { Exit } from '../../helpers/runtime/exits.ts';
import type { PromoteBody, PromoteReply } from '../../helpers/promote/protocol.ts';
import { startRealRow, uidOf } from './real-row.ts';
import type { RealInstallation } from './real-row.ts';

/** What a path of a draft becomes. */
export type Wanted =
  | { readonly file: string | Buffer; readonly mode?: number }
  | { readonly mode: number }
  | { readonly folder: number }
  | 'removed';

/** One thing in a tree: kind, mode, modification time and, of a file, its content's digest or, of a link, its target. */
export type Listed = {
  readonly kind: string;
  readonly mode: string;
  readonly mtimeNs: bigint;
  readonly content: string;
};
/** A whole tree by path, as latin1 text of its bytes; `.` is the root. */
export type Listing = ReadonlyMap<string, Listed>;

/** A running promote and the daemon's end of its channel. */
export interface Running {
  readonly pid: number;
  readonly client: PromoteClient;
  readonly progress: PromoteProgress[];
  readonly exited: Promise<Exit>;
}

/** Deadline of the daemon's end in tests. */
export const asking = { withinMs: 45_000 };

const hex = (digits: number, fill: string): string => fill.repeat(digits).slice(0, digits);
/** The run that every draft of a scene belongs to. */
export const RUN = runIdSchema.parse(`run_${hex(32, 'a')}`);
const openFolder = (folder: string): number => fs.openSync(folder, fs.constants.O_RDONLY | fs.constants.O_DIRECTORY);
const sha = (bytes: string | Buffer): string => createHash('sha256').update(bytes).digest('hex');

/** A root, a draft, promote's own folder and an owner's folder on disk, and the control plane's key. */
export class PromotionScene {
  readonly folder: string;
  readonly root: string;
  readonly draft: string;
  readonly own: string;
  readonly owner: string;
  readonly configuration: string;
  readonly key: { readonly publicKey: KeyObject; readonly privateKey: KeyObject };
  /** Uid that owns the root and that promote takes, or undefined where the tests run as an ordinary user. */
  readonly uid: number | undefined;
  promotion: 'page' | 'machine' = 'page';
  /** What the draft's base says that a file in the place of one of these would not have. */
  readonly losses = new Map<string, readonly string[]>();
  #sequence = 0;

  /** `asCaller`: everything belongs to this process, for tests that call promote's code in themselves. */
  constructor({ parent = os.tmpdir(), asCaller = false }: { parent?: string; asCaller?: boolean } = {}) {
    this.uid = asCaller ? undefined : uidOf(20);
    this.folder = fs.mkdtempSync(path.join(parent, 'promotion-'));
    fs.chmodSync(this.folder, 0o755);
    const at = (name: string): string => path.join(this.folder, name);
    [this.root, this.draft, this.own] = [at('root'), at('draft'), at('own')];
    [this.owner, this.configuration] = [at('owner'), at('configuration')];
    fs.mkdirSync(this.root, { mode: 0o755 });
    for (const folder of [this.draft, this.own, this.owner, this.configuration]) fs.mkdirSync(folder, { mode: 0o700 });
    this.key = generateKeyPairSync('ed25519');
    this.give(this.root, this.own, this.owner, this.draft, this.configuration);
    this.pin();
    this.policy();
  }

  remove(): void {
    fs.rmSync(this.folder, { recursive: true, force: true });
  }

  /** Gives paths to the root's owner. */
  give(...paths: readonly (string | Buffer)[]): void {
    if (this.uid === undefined) return;
    for (const given of paths) fs.lchownSync(given, this.uid, this.uid);
  }

  /** Path of something below the root, as bytes. */
  at(name: string | Buffer): Buffer {
    return Buffer.concat([Buffer.from(`${this.root}/`), Buffer.from(name)]);
  }

  /** Writes a file of the person. */
  put(name: string | Buffer, content: string | Buffer, mode = 0o644): void {
    fs.writeFileSync(this.at(name), content);
    fs.chmodSync(this.at(name), mode);
    this.give(this.at(name));
  }

  /** Makes a folder of the person. */
  folderAt(name: string | Buffer, mode = 0o755): void {
    fs.mkdirSync(this.at(name));
    fs.chmodSync(this.at(name), mode);
    this.give(this.at(name));
  }

  /** Writes the owner's pin. */
  pin(changes: Record<string, unknown> = {}): void {
    const rawKey = this.key.publicKey.export({ format: 'der', type: 'spki' }).subarray(-32);
    const pin = {
      version: 1,
      executor: `exr_${hex(32, '1')}`,
      commandKey: rawKey.toString('hex'),
      rootIdentity: this.identity().toString('hex'),
      promotion: this.promotion,
      ...changes,
    };
    const file = path.join(this.owner, 'pin.json');
    fs.writeFileSync(file, JSON.stringify(pin), { mode: 0o600 });
    this.give(file);
  }

  /** Writes the owner's policy, as a hand in the file would. */
  policy(changes: Partial<Policy> = {}): void {
    const file = path.join(this.configuration, 'policy.json');
    fs.writeFileSync(file, JSON.stringify({ ...defaultPolicy(), ...changes }), { mode: 0o600 });
    this.give(file);
  }

  /** Writes the person's confirmation on this machine. */
  confirm(changes: Record<string, unknown> = {}): void {
    const { manifest, digest } = this.manifest();
    const confirmations = path.join(this.owner, 'confirmations');
    fs.mkdirSync(confirmations, { recursive: true, mode: 0o700 });
    const file = path.join(confirmations, `${digest}.json`);
    const confirmation = {
      version: 1,
      run: manifest.run,
      manifestDigest: digest,
      rootIdentity: manifest.rootIdentity,
      guarded: manifest.changes.map((change) => change.path),
      at: Date.now(),
      ...changes,
    };
    fs.writeFileSync(file, JSON.stringify(confirmation), { mode: 0o600 });
    this.give(confirmations, file);
  }

  identity(): Buffer {
    const root = openFolder(this.root);
    try {
      return rootIdentity(root);
    } finally {
      fs.closeSync(root);
    }
  }

  /** Writes a draft whose base is the root as it is now. */
  draftOf(wanted: Readonly<Record<string, Wanted>>, run: string = RUN): void {
    for (const name of fs.readdirSync(this.draft)) fs.unlinkSync(path.join(this.draft, name));
    let content = 0;
    const steps: Step[] = Object.entries(wanted).map(([name, now]) => {
      const base = this.#baseOf(name);
      if (typeof now === 'object' && 'file' in now) {
        content += 1;
        fs.writeFileSync(path.join(this.draft, String(contentName(content))), now.file, { mode: 0o600 });
      }
      return { path: name, entry: { base, now: nowOf(now, base, content), at: 2 } satisfies Entry };
    });
    const rootId = this.identity().toString('hex');
    const header = sealHeader({ run: runIdSchema.parse(run), rootIdentity: rootId, createdAt: 1 });
    const record = sealSteps(header.checksum, 2, steps);
    fs.writeFileSync(path.join(this.draft, String(indexName(run))), Buffer.concat([header.bytes, record.bytes]), {
      mode: 0o600,
    });
    this.give(...fs.readdirSync(this.draft).map((name) => path.join(this.draft, name)));
  }

  #baseOf(name: string): Base | null {
    const where = this.at(Buffer.from(name, 'latin1'));
    const stat = statusOf(where);
    if (stat === undefined) return null;
    const folder = openFolder(path.dirname(this.root));
    const relative = Buffer.concat([Buffer.from('root/'), Buffer.from(name, 'latin1')]);
    const stamp = stampOf(statx(folder, relative));
    fs.closeSync(folder);
    const mode = stat.mode & 0o7777;
    if (stat.isDirectory()) return { type: 'directory', mode, stamp };
    const sha256 = stat.isFile() ? digestOf(where) : sha('');
    const base = { type: 'file', bytes: stat.size, mode, sha256, stamp } as const;
    const lost = this.losses.get(name);
    return lost === undefined ? base : { ...base, lost };
  }

  /** The manifest that a reviewer sees now. */
  manifest(): { readonly manifest: Manifest; readonly digest: string } {
    const folder = openFolder(this.draft);
    try {
      const manifest = manifestOf(readDraft(folder));
      return { manifest, digest: manifestDigest(manifestBytes(manifest)) };
    } finally {
      fs.closeSync(folder);
    }
  }

  /** An approval of the draft as it is now, signed by the control plane's key or another one. */
  approve(changes: Partial<Record<keyof Approval, unknown>> = {}, key: KeyObject = this.key.privateKey): Signed {
    this.#sequence += 1;
    const id = createHash('sha256').update(`${this.folder}${this.#sequence}`).digest('hex').slice(0, 32);
    const approval = approvalSchema.parse({
      guard: this.#sequence,
      promotion: `prm_${id}`,
      executor: `exr_${hex(32, '1')}`,
      run: RUN,
      person: `per_${hex(32, '2')}`,
      agent: `agt_${hex(32, '3')}`,
      review: `rev_${hex(32, '4')}`,
      manifestDigest: Buffer.from(this.manifest().digest, 'hex'),
      rootIdentity: this.identity(),
      fence: 1,
      policyDigest: Buffer.alloc(32, 5),
      sequence: this.#sequence,
      notBefore: Date.now() - 1000,
      expiresAt: Date.now() + 600_000,
      ...changes,
    });
    return signPayload(key, 'control.approval', encodeStatement('control.approval', approval));
  }

  /** Some payload, signed by the control plane's key for any purpose. */
  sign(domain: string, payload: Uint8Array, key: KeyObject = this.key.privateKey): Signed {
    return signPayload(key, domain, payload);
  }

  /** Starts the real, confined promote on this scene's folders. */
  start(installation: RealInstallation): Running {
    const folders = { 4: this.root, 5: this.draft, 6: this.own, 7: this.owner, 8: this.configuration };
    const descriptors = Object.fromEntries(
      Object.entries(folders).map(([number, folder]) => [number, openFolder(folder)]),
    );
    const started = startRealRow(installation, { row: 'promote', descriptors }, this.uid);
    for (const descriptor of Object.values(descriptors)) fs.closeSync(descriptor);
    const progress: PromoteProgress[] = [];
    const client = connectPromote(started.channel, (told) => void progress.push(told));
    return { pid: started.pid, client, progress, exited: started.exited };
  }

  /** Recovers, applies, and ends the process; `meanwhile` happens between the two. */
  async apply(
    installation: RealInstallation,
    body: PromoteBody<'promote.apply'> = { approval: this.approve() },
    meanwhile: () => void = () => undefined,
  ): Promise<PromoteReply<'promote.apply'>> {
    const running = this.start(installation);
    try {
      await running.client.request('promote.recover', { promotions: [] }, asking);
      meanwhile();
      return await running.client.request('promote.apply', body, asking);
    } finally {
      running.client.close();
      await running.exited;
    }
  }

  /** Recovers in a process of its own, and asks which of these promotions were committed. */
  async recover(
    installation: RealInstallation,
    promotions: readonly string[] = [],
  ): Promise<Omit<PromoteReply<'promote.recover'>, 'slot'>> {
    const running = this.start(installation);
    try {
      const asked = promotions.map((id) => promotionIdSchema.parse(id));
      const { slot, ...recovered } = await running.client.request('promote.recover', { promotions: asked }, asking);
      assert.equal(slot, 0);
      return recovered;
    } finally {
      running.client.close();
      await running.exited;
    }
  }

  /** Everything below the root, and the root. */
  listing(): Listing {
    const found = new Map<string, Listed>([['.', listed(Buffer.from(this.root))]]);
    const walk = (folder: Buffer): void => {
      for (const name of fs.readdirSync(folder, { encoding: 'buffer' })) {
        const where = Buffer.concat([folder, Buffer.from('/'), name]);
        found.set(where.subarray(this.root.length + 1).toString('latin1'), listed(where));
        if (fs.lstatSync(where).isDirectory()) walk(where);
      }
    };
    walk(Buffer.from(this.root));
    return new Map([...found].toSorted(([one], [two]) => (one < two ? -1 : 1)));
  }
}

function digestOf(where: Buffer): string {
  const descriptor = fs.openSync(where, 'r');
  try {
    return digestDescriptor(descriptor).sha256;
  } finally {
    fs.closeSync(descriptor);
  }
}

function statusOf(where: Buffer): fs.Stats | undefined {
  try {
    return fs.lstatSync(where);
  } catch {
    // no such name, or a file where a folder would have to be: nothing stands there
    return undefined;
  }
}

function nowOf(wanted: Wanted, base: Base | null, content: number): Now {
  if (wanted === 'removed') return { type: 'removed' };
  if ('folder' in wanted) return { type: 'directory', mode: wanted.folder };
  if ('file' in wanted) {
    const bytes = Buffer.byteLength(wanted.file);
    return { type: 'file', content, bytes, mode: wanted.mode ?? 0o644, sha256: sha(wanted.file) };
  }
  if (base?.type !== 'file') throw new TypeError('a mode alone changes only a file that stands');
  return { type: 'file', content: 0, bytes: base.bytes, mode: wanted.mode, sha256: base.sha256 };
}

function listed(where: Buffer): Listed {
  const stat = fs.lstatSync(where, { bigint: true });
  const mode = (Number(stat.mode) & 0o7777).toString(8);
  const facts = { mode, mtimeNs: stat.mtimeNs };
  if (stat.isDirectory()) return { kind: 'folder', ...facts, content: '' };
  if (stat.isSymbolicLink()) return { kind: 'link', ...facts, content: fs.readlinkSync(where) };
  if (!stat.isFile()) return { kind: 'other', ...facts, content: '' };
  return { kind: 'file', ...facts, content: sha(fs.readFileSync(where)) };
}

/** A listing without times, for trees that a promotion has changed. */
export function timeless(listing: Listing): ReadonlyMap<string, Omit<Listed, 'mtimeNs'>> {
  return new Map([...listing].map(([name, { kind, mode, content }]) => [name, { kind, mode, content }]));
}
