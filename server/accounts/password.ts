import { randomBytes, scrypt, timingSafeEqual } from 'node:crypto';
import { promisify } from 'node:util';
import type { PersonId } from '../../helpers/protocol/ids.ts';
import { record } from '../audit/record.ts';
import type { Context } from '../context.ts';
import { Refusal } from '../refusal.ts';
import { limits, takeLimit } from './limits.ts';

interface Cost {
  readonly N: number;
  readonly r: number;
  readonly p: number;
}

/** Cost of a new hash: about a quarter of a second of one core, 32 MiB, on a thread of its own. */
const COST: Cost = { N: 32_768, r: 8, p: 3 };
const MEMORY_LIMIT_BYTES = 67_108_864;
const HASH_BYTES = 32;

/** Shortest password, in characters. */
export const PASSWORD_MINIMUM = 12;
/** Longest password, in characters. */
export const PASSWORD_LIMIT = 256;

const derive = promisify<string, Buffer, number, Cost & { maxmem: number }, Buffer>(scrypt);

/** Hashes a new password as `scrypt$N$r$p$salt$hash`. Throws Refusal PASSWORD_WEAK. */
export async function hashPassword(password: string): Promise<string> {
  if (password.length < PASSWORD_MINIMUM || password.length > PASSWORD_LIMIT) {
    throw new Refusal(
      'PASSWORD_WEAK',
      `A password has ${PASSWORD_MINIMUM} to ${PASSWORD_LIMIT} characters; this one has ${password.length}.`,
      { status: 400, remedy: 'Choose a longer one, for instance four unrelated words.' },
    );
  }
  const salt = randomBytes(16);
  const hash = await derive(password.normalize('NFKC'), salt, HASH_BYTES, { ...COST, maxmem: MEMORY_LIMIT_BYTES });
  return ['scrypt', COST.N, COST.r, COST.p, salt.toString('base64'), hash.toString('base64')].join('$');
}

/** Whether a password is the one that was hashed. With no hash the same work is done, so that time tells nothing. */
export async function isPassword(password: string, stored: string | null): Promise<boolean> {
  const [scheme, N, r, p, salt = '', hash = ''] = (stored ?? '').split('$');
  const known = scheme === 'scrypt';
  const cost = known ? { N: Number(N), r: Number(r), p: Number(p) } : COST;
  const expected = known ? Buffer.from(hash, 'base64') : randomBytes(HASH_BYTES);
  const given = await derive(
    password.slice(0, PASSWORD_LIMIT).normalize('NFKC'),
    known ? Buffer.from(salt, 'base64') : randomBytes(16),
    HASH_BYTES,
    {
      ...cost,
      maxmem: MEMORY_LIMIT_BYTES,
    },
  );
  return known && timingSafeEqual(given, expected);
}

/**
 * Whether somebody who is signed in knows the account's current password: asked for each gated change, whatever was entered just
 * before (N-193, N-194). Throws Refusal RATE_LIMITED, UNAVAILABLE, or PASSWORD_NOT_SET with the remedy.
 */
export async function checkPassword(context: Context, person: PersonId, password: string): Promise<boolean> {
  await takeLimit(context, limits.passwordsOfPerson, person);
  const row = await context.store.read
    .selectFrom('people')
    .select('password')
    .where('id', '=', person)
    .where('active', '=', 1)
    .executeTakeFirst();
  if (row === undefined) return false;
  if (row.password === null) {
    throw new Refusal('PASSWORD_NOT_SET', 'This change needs the current password, and this account has none yet.', {
      status: 403,
      remedy: 'Sign in with a one-time link and set a password under Account, then try again.',
    });
  }
  return isPassword(password, row.password);
}

/** Records that somebody did not prove who they are. */
export async function recordRefusal(
  context: Context,
  action: string,
  person: PersonId | undefined,
  reason: string,
): Promise<void> {
  const who = person === undefined ? {} : { person };
  await context.store.write((tx) => record(context, tx, { action, ...who, outcome: 'refused', reason }));
}

/** As checkPassword, for a route. Throws Refusal PASSWORD_WRONG too. */
export async function requirePassword(context: Context, person: PersonId, password: string): Promise<void> {
  if (await checkPassword(context, person, password)) return;
  await recordRefusal(context, 'person.password-refused', person, 'PASSWORD_WRONG');
  throw new Refusal('PASSWORD_WRONG', 'This is not the current password; nothing was changed.', { status: 403 });
}
