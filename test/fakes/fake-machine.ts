/* Keys and descriptors of a machine that exists in a test alone. */
import { generateKeyPairSync } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { catalogueDigest } from '../../helpers/protocol/descriptor.ts';
import type { Descriptor } from '../../helpers/protocol/descriptor.ts';
import { operations } from '../../helpers/protocol/operations.ts';
import { sha256 } from '../../helpers/protocol/signed.ts';

/** A key pair of one machine. */
export interface MachineKey {
  readonly publicKey: Buffer;
  readonly privateKey: KeyObject;
}

/** Makes a machine's key pair. */
export function machineKey(): MachineKey {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  return { publicKey: publicKey.export({ format: 'der', type: 'spki' }).subarray(-32), privateKey };
}

/** A descriptor of a machine without guests that offers every operation; `changes` go over it. */
export function machineDescriptor(changes: Partial<Descriptor> = {}): Descriptor {
  return {
    protocolVersion: 1,
    daemonVersion: '0.1.0',
    revision: 1,
    profiles: ['workspace'],
    platform: { architecture: 'x64', system: 'linux', majorVersion: 6 },
    supervisor: 'foreground',
    sandbox: { backend: 'none', reason: 'kvm-absent' },
    rootName: 'project',
    operations: operations.map(({ key }) => key),
    catalogueDigest: catalogueDigest(),
    policyDigest: sha256(Buffer.from('policy')).toString('hex'),
    promotion: 'page',
    difference: 'page',
    limits: { resultBytes: 400_000, runtimeMs: 30_000, concurrentCommands: 16 },
    ...changes,
  };
}
