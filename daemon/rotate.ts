/*
 * New machine key in place of the old: one statement signed by both, taken by the control plane, then by key-store. A crash at
 * any step leaves exactly one usable key: the next key is kept beside the current one until the control plane has answered.
 */
import { admitKey } from '../helpers/protocol/signed.ts';
import type { Core } from './core.ts';
import type { Home } from './home.ts';
import { OwnerRefused } from './owner.ts';
import { ChannelRefused } from '../actors/control-plane.ts';

const ASK_MS = 15_000;

/** Rotates the key of the paired executor, or finishes a rotation that was cut. */
export async function rotateKey(core: Core, home: Home): Promise<{ fingerprint: string }> {
  const { paired } = core.records.data;
  if (!paired) throw new OwnerRefused('NOT_PAIRED', 'Nothing is paired here.');
  const channel = home.executor?.channel;
  if (!channel || channel.epoch === 0)
    throw new OwnerRefused('OFFLINE', 'The control plane must answer to a rotation; the machine is not online.');
  const keyStore = core.keyStore.client;
  const { publicKey, nextPublicKey, rotation } = await keyStore.request(
    'keystore.rotate-prepare',
    {},
    { withinMs: ASK_MS },
  );
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
  return { fingerprint: await commitRotation(core) };
}

/** The control plane has the next key: it becomes the only one here. Resolves with its fingerprint. */
export async function commitRotation(core: Core): Promise<string> {
  const keyStore = core.keyStore.client;
  const status = await keyStore.request('keystore.status', {}, { withinMs: ASK_MS });
  if (status.state !== 'rotating') throw new RangeError('no rotation is under way');
  await keyStore.request('keystore.rotate-commit', { nextPublicKey: status.nextPublicKey }, { withinMs: ASK_MS });
  const { fingerprint } = admitKey(status.nextPublicKey);
  const { paired } = core.records.data;
  if (paired) core.records.data.paired = { ...paired, fingerprint };
  await core.records.write();
  return fingerprint;
}
