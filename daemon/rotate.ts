/*
 * New machine key in place of the old: one statement signed by both, taken by the control plane, then by key-store. A crash at
 * any step leaves exactly one usable key: the next key is kept beside the current one until the control plane has answered.
 */
import { setTimeout as wait } from 'node:timers/promises';
import { admitKey } from '../helpers/protocol/signed.ts';
import type { Core } from './core.ts';
import type { Home } from './home.ts';
import { OwnerRefused } from './owner.ts';
import { ChannelRefused } from '../actors/control-plane.ts';

const ASK_MS = 15_000;
const SETTLE_MS = 20_000;
const POLL_MS = 50;

/** Rotates the key of the paired executor, or finishes a rotation that was cut. */
export async function rotateKey(core: Core, home: Home): Promise<{ fingerprint: string }> {
  const { paired } = core.records.data;
  if (!paired) throw new OwnerRefused('NOT_PAIRED', 'Nothing is paired here.');
  const channel = home.executor?.channel;
  if (!channel) {
    throw new OwnerRefused('OFFLINE', 'The control plane must answer to a rotation; the machine is not online.');
  }
  const keyStore = core.keyStore.client;
  const prepared = await keyStore.request('keystore.rotate-prepare', {}, { withinMs: ASK_MS });
  const { publicKey, nextPublicKey, rotation } = prepared;
  const fields = {
    at: core.clock.now(),
    executor: paired.executor,
    oldPublicKey: publicKey,
    newPublicKey: nextPublicKey,
    rotation,
  };
  const signed = await keyStore.request(
    'keystore.rotate-sign',
    { type: 'machine.rotation', fields },
    { withinMs: ASK_MS },
  );
  try {
    await channel.ask('rotation', signed, ASK_MS);
  } catch (error) {
    if (!(error instanceof ChannelRefused)) throw error;
    throw new OwnerRefused(
      'ROTATION_REFUSED',
      `The control plane refused the rotation: ${error.code}. The current key stays.`,
    );
  }
  // THREAT: that answer is unsigned. The old key goes only when a session that the new one proved was answered by the pinned key.
  home.executor?.proveWithNext();
  const fingerprint = admitKey(nextPublicKey).fingerprint;
  for (let waited = 0; core.records.data.paired?.fingerprint !== fingerprint; waited += POLL_MS) {
    if (waited > SETTLE_MS)
      throw new OwnerRefused(
        'OFFLINE',
        'The new key is made and not proved yet; the daemon goes on by itself. Ask again later.',
      );
    await wait(POLL_MS);
  }
  return { fingerprint };
}

/**
 * The control plane has the next key: it becomes the only one here, and its fingerprint is recorded. Resolves with that, also where
 * only the record was missing. Rejects with RecordsUnwritable; the next session settles it then.
 */
export async function commitRotation(core: Core): Promise<string> {
  const keyStore = core.keyStore.client;
  const status = await keyStore.request('keystore.status', {}, { withinMs: ASK_MS });
  if (status.state === 'empty') throw new RangeError('there is no key');
  const publicKey = status.state === 'rotating' ? status.nextPublicKey : status.publicKey;
  if (status.state === 'rotating')
    await keyStore.request('keystore.rotate-commit', { nextPublicKey: publicKey }, { withinMs: ASK_MS });
  const { fingerprint } = admitKey(publicKey);
  const { paired } = core.records.data;
  if (paired && paired.fingerprint !== fingerprint) core.records.change({ paired: { ...paired, fingerprint } });
  return fingerprint;
}
