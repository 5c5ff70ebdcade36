import * as z from 'zod';
import { descriptorSchema } from '../../helpers/protocol/descriptor.ts';
import { digestTextSchema, timeSchema } from '../../helpers/protocol/ids.ts';

/** The revision in force and the one that waits, with every fact that differs. */
export const descriptorReviewSchema = z.strictObject({
  confirmed: z
    .strictObject({ revision: z.int(), document: descriptorSchema, decidedAt: timeSchema, decidedBy: z.string() })
    .nullable(),
  pending: z
    .strictObject({
      revision: z.int(),
      digest: digestTextSchema,
      document: descriptorSchema,
      arrivedAt: timeSchema,
      differences: z.array(
        z.strictObject({ fact: z.string(), before: z.string().nullable(), after: z.string().nullable() }),
      ),
      operations: z.strictObject({ added: z.array(z.string()), removed: z.array(z.string()) }),
    })
    .nullable(),
});
export type DescriptorReviewAnswer = z.infer<typeof descriptorReviewSchema>;
