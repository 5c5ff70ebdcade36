import * as z from 'zod';
import { PASSWORD_LIMIT } from './password.ts';

/** A name that people read. */
export const nameSchema = z.string().trim().min(1).max(64);
/** What somebody signs in as; lower case, so that two spellings are never two people. */
export const loginSchema = z
  .string()
  .trim()
  .toLowerCase()
  .min(1)
  .max(64)
  .regex(/^[a-z0-9][a-z0-9._@+-]*$/);
/** A password as it was typed; how long it must be is decided where it is set. */
export const passwordSchema = z.string().min(1).max(PASSWORD_LIMIT);
/** Text of a one-time link. */
export const tokenSchema = z.string().min(1).max(128);
