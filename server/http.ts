import type {
  FastifyBaseLogger,
  FastifyInstance,
  RawReplyDefaultExpression,
  RawRequestDefaultExpression,
  RawServerDefault,
} from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import * as z from 'zod';

/** The HTTP server of the control plane; routes are typed by their zod schemas. */
export type App = FastifyInstance<
  RawServerDefault,
  RawRequestDefaultExpression,
  RawReplyDefaultExpression,
  FastifyBaseLogger,
  ZodTypeProvider
>;

/** What every refusal and failure answers. */
export const errorSchema = z.strictObject({
  /** One code for one cause. */
  code: z.string(),
  /** One sentence for a person. */
  message: z.string(),
  /** What to do about it, where something can be done. */
  remedy: z.string().optional(),
});

/** Where a call answers nothing but that it was done. */
export const doneSchema = z.strictObject({ done: z.literal(true) });

/** The answer of doneSchema. */
export const DONE: z.infer<typeof doneSchema> = { done: true };
