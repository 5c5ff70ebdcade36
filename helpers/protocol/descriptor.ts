/*
 * What a machine says about itself: structural facts only. No host path, no origin, no authority. The bytes are canonical
 * JSON (RFC 8785), because both sides rebuild them to compare.
 */
import canonicalize from 'canonicalize';
import * as z from 'zod';
import { sha256 } from './signed.ts';
import { digestTextSchema } from './ids.ts';
import { operations } from './operations.ts';

/** Version of the control protocol; another one is refused with both versions named. */
export const PROTOCOL_VERSION = 1;

/** Closed shape of a descriptor. Numbers are `ms` and `bytes` where the name says so. */
export const descriptorSchema = z.strictObject({
  protocolVersion: z.literal(PROTOCOL_VERSION),
  /** Version text of the daemon, so that a refused descriptor can name both. */
  daemonVersion: z.string().regex(/^\d+\.\d+\.\d+$/),
  revision: z.int().min(1),
  profiles: z
    .array(z.enum(['workspace', 'guest']))
    .min(1)
    .max(2),
  platform: z.strictObject({
    architecture: z.enum(['x64', 'arm64']),
    system: z.enum(['linux']),
    majorVersion: z.int().min(1).max(999),
  }),
  supervisor: z.enum(['systemd', 'foreground']),
  sandbox: z.discriminatedUnion('backend', [
    z.strictObject({ backend: z.literal('none'), reason: z.enum(['no-guest-support', 'kvm-absent', 'kvm-denied']) }),
  ]),
  /** Base name of the workspace root, as path text, so that a person recognises the boundary. */
  rootName: z.string().min(1).max(1024),
  /** Empty where the owner permits nothing: that too must reach the people who would use the machine. */
  operations: z.array(z.string().max(64)).max(32),
  /** SHA-256 of the operations' schemas as this daemon has them. */
  catalogueDigest: digestTextSchema,
  /** SHA-256 of the owner's effective policy. */
  policyDigest: digestTextSchema,
  promotion: z.enum(['page', 'machine']),
  difference: z.enum(['page', 'machine']),
  limits: z.strictObject({
    resultBytes: z.int().min(1).max(400_000),
    runtimeMs: z.int().min(1000).max(300_000),
    concurrentCommands: z.int().min(1).max(64),
  }),
});
export type Descriptor = z.infer<typeof descriptorSchema>;

/** Canonical JSON bytes of a value that a strict schema has passed. Throws for what JSON cannot hold. */
export function canonicalBytes(value: unknown): Buffer {
  const text = canonicalize(value);
  if (text === undefined) throw new TypeError('value has no canonical JSON');
  return Buffer.from(text, 'utf8');
}

/** Reads descriptor bytes: strict, and refused unless they are the canonical spelling. Throws ZodError or SyntaxError. */
export function parseDescriptor(bytes: Uint8Array): Descriptor {
  const descriptor = descriptorSchema.parse(JSON.parse(Buffer.from(bytes).toString('utf8')));
  if (!canonicalBytes(descriptor).equals(bytes)) throw new SyntaxError('descriptor is not canonical JSON');
  return descriptor;
}

/** SHA-256 over key, caller and JSON Schemas of every operation, 64 hexadecimal digits. Costs milliseconds: keep the answer. */
export function catalogueDigest(): string {
  const schemas = operations.map(({ key, caller, arguments: input, result }) => ({
    key,
    caller,
    arguments: z.toJSONSchema(input, { io: 'input' }),
    result: z.toJSONSchema(result, { io: 'output' }),
  }));
  return sha256(canonicalBytes(schemas)).toString('hex');
}
