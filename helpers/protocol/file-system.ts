/* What `promote` finds out about the file system of the root by trying it, and `daemon` tells on to the owner's command line. */
import * as z from 'zod';
import { failureCodes } from './operations.ts';

const found = {
  /** Its name, or its magic number. */
  fileSystem: z.string().max(64),
  /** Two files change places in one step; needed where a file is replaced. */
  exchange: z.boolean(),
  /** A rename never replaces what nobody expected; needed by every promotion. */
  noReplace: z.boolean(),
  /** A file without a name can be made and named later. */
  unnamed: z.boolean(),
  /** Whoever opens a file for writing can be made to wait. */
  leases: z.boolean(),
  /** Files share blocks. */
  reflink: z.boolean(),
};

/** What the file system of the root has. */
export const capabilitiesSchema = z.strictObject(found);
export type Capabilities = z.infer<typeof capabilitiesSchema>;

/** What was found, or why it could not be tried; `detail` holds no path. */
export const triedSchema = z.discriminatedUnion('outcome', [
  z.strictObject({ outcome: z.literal('found'), ...found }),
  z.strictObject({
    outcome: z.literal('refused'),
    code: z.enum(failureCodes),
    path: z.string().max(4096).optional(),
    detail: z.string().max(300).optional(),
  }),
]);
export type Tried = z.infer<typeof triedSchema>;
