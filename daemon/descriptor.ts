/*
 * What this machine states about itself, built from the owner's policy and the root as `workspace` sees it. A revision is
 * stated when any structural fact changed, and waits for a person on the control plane.
 */
import os from 'node:os';
import { canonicalBytes, catalogueDigest, PROTOCOL_VERSION } from '../helpers/protocol/descriptor.ts';
import type { Descriptor } from '../helpers/protocol/descriptor.ts';
import { operations } from '../helpers/protocol/operations.ts';
import { sha256 } from '../helpers/protocol/signed.ts';
import { signStatement } from '../actors/key-store.ts';
import type { KeyStoreClient } from '../actors/key-store.ts';
import type { ControlChannel } from '../actors/control-plane.ts';
import type { ExecutorId } from '../helpers/protocol/ids.ts';
import { permittedOperations, policyDigest } from './config.ts';
import type { Policy } from '../helpers/protocol/policy.ts';
import type { Standing } from './standing.ts';
import type { StatedRevision } from './records.ts';
import { VERSION } from './version.ts';

const ANSWER_MS = 10_000;

/** The workspace root as `workspace` states it. */
export interface RootFacts {
  readonly rootName: string;
  readonly rootIdentity: Uint8Array;
}

/** Canonical descriptor bytes of one revision. */
export function describe(policy: Policy, root: RootFacts, revision: number): Buffer {
  const descriptor: Descriptor = {
    protocolVersion: PROTOCOL_VERSION,
    daemonVersion: VERSION,
    revision,
    profiles: ['workspace'],
    platform: {
      architecture: process.arch === 'arm64' ? 'arm64' : 'x64',
      system: 'linux',
      majorVersion: Number.parseInt(os.release(), 10),
    },
    supervisor: 'foreground',
    sandbox: { backend: 'none', reason: 'no-guest-support' },
    rootName: root.rootName,
    operations: permittedOperations(policy),
    catalogueDigest: catalogueDigest(),
    policyDigest: policyDigest(policy).toString('hex'),
    promotion: policy.promotion.confirm,
    difference: policy.difference.shown,
    limits: {
      resultBytes: Math.max(...operations.map(({ resultLimitBytes }) => resultLimitBytes)),
      runtimeMs: policy.limits.runtimeMs,
      concurrentCommands: policy.limits.concurrentCommands,
    },
  };
  return canonicalBytes(descriptor);
}

/** The revision that says what this machine is now: the newest stated one where it still does, a new one otherwise. Throws RecordsUnwritable. */
export function ensureStated(standing: Standing, policy: Policy, root: RootFacts): StatedRevision {
  const { stated } = standing;
  const rootIdentity = Buffer.from(root.rootIdentity).toString('hex');
  if (
    stated &&
    stated.rootIdentity === rootIdentity &&
    describe(policy, root, stated.revision).toString('base64') === stated.descriptor
  )
    return stated;
  const next = (stated?.revision ?? 0) + 1;
  return standing.state({
    descriptor: describe(policy, root, next).toString('base64'),
    policy,
    policyDigest: policyDigest(policy).toString('hex'),
    rootIdentity,
  });
}

/** Sends the newest stated revision; the control plane keeps it as pending until a person confirms it. */
export async function submitDescriptor(
  channel: ControlChannel,
  keyStore: KeyStoreClient,
  executor: ExecutorId,
  stated: StatedRevision,
  at: number,
): Promise<void> {
  const descriptor = Buffer.from(stated.descriptor, 'base64');
  const fields = { at, executor, revision: stated.revision, descriptorDigest: sha256(descriptor) };
  const signed = await signStatement(keyStore, 'machine.descriptor', fields, { withinMs: ANSWER_MS });
  await channel.ask('descriptor', { descriptor, signed }, ANSWER_MS);
}
