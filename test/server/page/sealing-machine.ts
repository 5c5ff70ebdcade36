/*
 * A machine at the level of the protocol with one small draft, sealed to whoever asks: honest, or lying where a test says so.
 */
import { createHash, randomBytes } from 'node:crypto';

import nacl from 'tweetnacl';
import type { Person } from '../../../daemon/demo/person.ts';
import { manifestBytes } from '../../../helpers/files/manifest.ts';
import type { Change } from '../../../helpers/files/manifest.ts';
import type { Descriptor } from '../../../helpers/protocol/descriptor.ts';
import type { ExecutorId } from '../../../helpers/protocol/ids.ts';
import { FakeExecutor, freshState } from '../../fakes/fake-executor.ts';
import type { Delivered, Play } from '../../fakes/fake-executor.ts';
import { machineDescriptor } from '../../fakes/fake-machine.ts';
import { digestOfClaim, PairingMachine } from '../governance.ts';
import { OWNER } from './world.ts';
import type { World } from './world.ts';

/** Both sides of one change; `null` where there is none. */
export interface Sides {
  readonly before: string | null;
  readonly after: string | null;
}

/** Changes that one review answers. */
const PAGE = 100;
const ROOT_IDENTITY = 'ab'.repeat(32);
const digest = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');
const side = (content: string) => {
  const bytes = Buffer.from(content, 'utf8');
  return { bytes: bytes.length, mode: '644', sha256: digest(bytes) };
};

function changeOf(path: string, { before, after }: Sides): Change {
  const type = 'file';
  if (before === null) return { path, type, kind: 'created', before, after: side(after ?? '') };
  if (after === null) return { path, type, kind: 'deleted', before: side(before), after };
  return { path, type, kind: 'modified', before: side(before), after: side(after) };
}

const success = (result: object): Play => ({ outcome: 'succeeded', result: { success: true, ...result } });

/** Asks for one part as the page does. */
interface Wanted {
  readonly recipientKey: string;
  readonly part: { readonly of: 'manifest' } | { readonly of: 'before' | 'after'; readonly change: number };
  readonly offset: number;
}

/** One draft of one run. */
export class SealingMachine {
  readonly changes: readonly (readonly [string, Sides])[];
  /** What is sealed in place of a part, where the machine lies. */
  lie: ((wanted: Wanted, honest: Buffer) => Buffer) | undefined;
  /** Outcome of the next promotion. */
  promotes = true;
  executor = '';
  #fake: FakeExecutor | undefined;

  constructor(draft: Readonly<Record<string, Sides>>) {
    this.changes = Object.entries(draft).toSorted(([one], [other]) => (one < other ? -1 : 1));
  }

  /** Pairs with the owner's confirmation, comes online, and has its description confirmed. */
  async join(world: World, owner: Person, label: string, changes: Partial<Descriptor> = {}): Promise<void> {
    const bare = new PairingMachine(world.origin, Date);
    bare.descriptor = machineDescriptor({ rootName: 'work', ...changes });
    const { body } = await bare.start();
    const { pairing } = await owner.post<{ pairing: string }>('/api/page/pairings/lookup', { code: body.code });
    const { teams } = await owner.get<{ teams: { id: string }[] }>('/api/page/organisation');
    const { fingerprint } = bare;
    const claim = { label, scope: 'private', team: teams[0]?.id, project: null, fingerprint };
    await owner.post(`/api/page/pairings/${pairing}/claim`, claim);
    const claimed = await bare.poll(pairing);
    const confirmed = await bare.confirm(pairing, digestOfClaim(claimed.body.claim));
    const { executor, commandKey } = confirmed.body.paired as { executor: ExecutorId; commandKey: Uint8Array };
    this.executor = executor;
    const { origin } = world;
    const { key, descriptor } = bare;
    const machine = {
      origin,
      executor,
      key,
      controlKey: commandKey,
      descriptor,
      play: (one: Delivered) => this.#play(one),
    };
    const state = freshState();
    state.guard = bare.guard;
    this.#fake = new FakeExecutor(machine, state);
    await this.#fake.online();
    const path = `/api/page/executors/${executor}/descriptor`;
    const { pending } = await owner.get<{ pending: { revision: number; digest: string } }>(path);
    const { revision, digest: shown } = pending;
    await owner.post(path, { revision, digest: shown, answer: 'confirm', password: OWNER.password });
    await this.#fake.closed;
    await this.#fake.online();
  }

  /** Comes online again after a change of access fenced the connection. */
  async rejoin(): Promise<void> {
    await this.#fake?.closed;
    await this.#fake?.online();
  }

  /** Sends a newer description over the connection. */
  async announce(descriptor: Descriptor): Promise<void> {
    await this.#fake?.announce(descriptor);
  }

  async leave(): Promise<void> {
    await this.#fake?.close();
  }

  #play({ envelope, arguments: input }: Delivered): Play {
    const manifest = this.#manifest(envelope.run);
    switch (envelope.operation) {
      case 'file.list':
        return success({ path: '.', entries: [], truncated: false });
      case 'workspace.review':
        // As below.
        return success(this.#review(manifest, Number((input as { cursor?: string }).cursor ?? 0)));
      case 'review.difference':
        // The control plane parsed the arguments with the operation's schema.
        return success(this.#seal(input as Wanted, manifest));
      case 'workspace.promote': {
        // As above.
        const { manifestDigest, promotionId } = input as { manifestDigest: string; promotionId: string };
        if (this.promotes) return success({ manifestDigest, promotionId });
        return { outcome: 'failed', result: { success: false, code: 'PROMOTION_CONFLICT' } };
      }
      default:
        return { outcome: 'failed', result: { success: false, code: 'WORKSPACE_UNAVAILABLE' } };
    }
  }

  #manifest(run: Delivered['envelope']['run']): Buffer {
    const changes = this.changes.map(([path, sides]) => changeOf(path, sides));
    return manifestBytes({ version: 2, run, rootIdentity: ROOT_IDENTITY, changes });
  }

  #review(manifest: Buffer, from: number) {
    const next = from + PAGE;
    const changes = this.changes.slice(from, next).map(([path, sides]) => {
      const { kind, type } = changeOf(path, sides);
      return { path, kind, type, byteCount: Buffer.byteLength(sides.after ?? sides.before ?? ''), hostChanged: false };
    });
    return {
      changeCount: this.changes.length,
      changes,
      manifestDigest: digest(manifest),
      rootIdentity: ROOT_IDENTITY,
      ...(next < this.changes.length ? { cursor: String(next) } : {}),
    };
  }

  #seal(wanted: Wanted, manifest: Buffer) {
    const { part, recipientKey, offset } = wanted;
    const of = part.of === 'manifest' ? undefined : (this.changes[part.change]?.[1][part.of] ?? '');
    const honest = of === undefined ? manifest : Buffer.from(of, 'utf8');
    const content = this.lie?.(wanted, honest) ?? honest;
    const piece = content.subarray(offset, offset + 262_144);
    const sender = nacl.box.keyPair();
    const nonce = randomBytes(24);
    const sealed = nacl.box(piece, nonce, Buffer.from(recipientKey, 'base64'), sender.secretKey);
    const next = offset + piece.length;
    return {
      sealed: Buffer.from(sealed).toString('base64'),
      nonce: nonce.toString('base64'),
      senderKey: Buffer.from(sender.publicKey).toString('base64'),
      totalBytes: content.length,
      ...(next < content.length ? { next } : {}),
    };
  }
}
