/*
 * Identifiers and small quantities that both sides share. Every id is a prefix and 128 random bits in hexadecimal, so that
 * a mistaken one is refused by its shape and none can be guessed.
 */
import * as z from 'zod';

const identifier = <const Prefix extends string>(prefix: Prefix) =>
  z
    .string()
    .regex(new RegExp(`^${prefix}_[0-9a-f]{32}$`))
    .brand<Prefix>();

export const executorIdSchema = identifier('exr');
export const commandIdSchema = identifier('cmd');
export const runIdSchema = identifier('run');
export const bindingIdSchema = identifier('bnd');
export const personIdSchema = identifier('per');
export const agentIdSchema = identifier('agt');
export const projectIdSchema = identifier('prj');
export const teamIdSchema = identifier('team');
export const organisationIdSchema = identifier('org');
export const pairingIdSchema = identifier('pair');
export const reviewIdSchema = identifier('rev');
export const promotionIdSchema = identifier('prm');

export type ExecutorId = z.infer<typeof executorIdSchema>;
export type CommandId = z.infer<typeof commandIdSchema>;
export type RunId = z.infer<typeof runIdSchema>;
export type BindingId = z.infer<typeof bindingIdSchema>;
export type PersonId = z.infer<typeof personIdSchema>;
export type AgentId = z.infer<typeof agentIdSchema>;
export type ProjectId = z.infer<typeof projectIdSchema>;
export type TeamId = z.infer<typeof teamIdSchema>;
export type OrganisationId = z.infer<typeof organisationIdSchema>;
export type PairingId = z.infer<typeof pairingIdSchema>;
export type ReviewId = z.infer<typeof reviewIdSchema>;
export type PromotionId = z.infer<typeof promotionIdSchema>;

/** Exactly `length` bytes. */
export const bytes = (length: number) =>
  z.custom<Uint8Array>((value) => value instanceof Uint8Array && value.length === length, `expected ${length} bytes`);
/** At most `limit` bytes. */
export const bytesTo = (limit: number) =>
  z.custom<Uint8Array>(
    (value) => value instanceof Uint8Array && value.length <= limit,
    `expected at most ${limit} bytes`,
  );

/** A SHA-256, 32 bytes. */
export const digestSchema = bytes(32);
/** A SHA-256 as 64 hexadecimal digits, where people or JSON read it. */
export const digestTextSchema = z.string().regex(/^[0-9a-f]{64}$/);
/** Milliseconds since the Unix epoch. */
export const timeSchema = z.int().min(0);
/** A counter that only grows. */
export const counterSchema = z.int().min(0);
