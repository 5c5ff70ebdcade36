import * as z from 'zod';
import { descriptorSchema } from '../../helpers/protocol/descriptor.ts';
import { digestTextSchema, executorIdSchema, pairingIdSchema, timeSchema } from '../../helpers/protocol/ids.ts';

/** One pairing as the page shows it to the person who claims or issued it. */
export const shownPairingSchema = z.strictObject({
  pairing: pairingIdSchema,
  flow: z.enum(['enrolment', 'code']),
  /** State of machines/pairing. */
  state: z.string(),
  /** Who ended it before it was confirmed. */
  by: z.enum(['person', 'machine']).nullable(),
  machineName: z.string().nullable(),
  /** SHA-256 of the machine's public key. */
  fingerprint: digestTextSchema.nullable(),
  platform: descriptorSchema.shape.platform.nullable(),
  sandbox: descriptorSchema.shape.sandbox.nullable(),
  daemonVersion: z.string().nullable(),
  rootName: z.string().nullable(),
  expiresAt: timeSchema,
  executor: executorIdSchema.nullable(),
  label: z.string().nullable(),
  scope: z.enum(['private', 'project', 'organization']).nullable(),
  teamName: z.string().nullable(),
});
export type ShownPairing = z.infer<typeof shownPairingSchema>;
