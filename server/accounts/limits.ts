import { isIPv6 } from 'node:net';
import { aboutError } from '../about-error.ts';
import type { Context } from '../context.ts';
import { Refusal } from '../refusal.ts';

/** How often one thing may be done within any span of `withinMs`. */
export interface Limit {
  readonly name: string;
  readonly count: number;
  readonly withinMs: number;
}

const TEN_MINUTES_MS = 600_000;

/** Every limit of the control plane (N-078 and our own). */
export const limits = {
  codesOfAddress: { name: 'codes-address', count: 5, withinMs: TEN_MINUTES_MS },
  lookupsOfAddress: { name: 'lookups-address', count: 10, withinMs: TEN_MINUTES_MS },
  lookupsOfAccount: { name: 'lookups-account', count: 10, withinMs: TEN_MINUTES_MS },
  machineCallsOfAddress: { name: 'machine-calls-address', count: 120, withinMs: 60_000 },
  signInsOfAddress: { name: 'sign-ins-address', count: 30, withinMs: TEN_MINUTES_MS },
  /** Of one login from one address; the login as a whole has more, so that a stranger elsewhere does not lock its owner out. */
  signInsOfLoginHere: { name: 'sign-ins-login-address', count: 10, withinMs: TEN_MINUTES_MS },
  signInsOfLogin: { name: 'sign-ins-login', count: 60, withinMs: TEN_MINUTES_MS },
  linksOfAddress: { name: 'links-address', count: 30, withinMs: TEN_MINUTES_MS },
  runsOfAgent: { name: 'runs-agent', count: 60, withinMs: 3_600_000 },
  passwordsOfPerson: { name: 'passwords-person', count: 20, withinMs: TEN_MINUTES_MS },
} as const satisfies Record<string, Limit>;

/**
 * Counts one use of a limit by one subject. Throws Refusal RATE_LIMITED (429) beyond it and UNAVAILABLE (503) where it cannot be
 * counted: what cannot be counted is not let through. A refused use is not counted.
 */
export async function takeLimit(context: Context, limit: Limit, subject: string): Promise<void> {
  const taken = await countUse(context, limit, subject).catch((cause: unknown) => {
    context.log.error({ ...aboutError(cause), limit: limit.name }, 'limit not counted');
    throw new Refusal('UNAVAILABLE', 'This cannot be done now: its limit cannot be counted. Try again in a minute.', {
      status: 503,
    });
  });
  if (taken) return;
  throw new Refusal(
    'RATE_LIMITED',
    `Too many tries: ${limit.count} in ${limit.withinMs / 60_000} minutes are possible.`,
    {
      status: 429,
      remedy: 'Wait a few minutes and try again.',
    },
  );
}

async function countUse({ store, clock, secrets }: Context, limit: Limit, subject: string): Promise<boolean> {
  const bucket = secrets.keyed('limits', limit.name, subject);
  const now = clock.now();
  return store.write(async (tx) => {
    await tx.deleteFrom('limits').where('expiresAt', '<=', now).execute();
    const row = await tx.selectFrom('limits').select('hits').where('bucket', '=', bucket).executeTakeFirst();
    const recent = timesOf(row?.hits).filter((time) => time > now - limit.withinMs);
    if (recent.length >= limit.count) return false;
    const hits = bytesOf([...recent, now]);
    await tx
      .insertInto('limits')
      .values({ bucket, hits, expiresAt: now + limit.withinMs })
      .onConflict((conflict) => conflict.column('bucket').doUpdateSet({ hits, expiresAt: now + limit.withinMs }))
      .execute();
    return true;
  });
}

function timesOf(hits: Buffer | undefined): number[] {
  if (hits === undefined) return [];
  return Array.from({ length: hits.length / 8 }, (_, index) => hits.readDoubleBE(index * 8));
}

function bytesOf(times: readonly number[]): Buffer {
  const hits = Buffer.alloc(times.length * 8);
  for (const [index, time] of times.entries()) hits.writeDoubleBE(time, index * 8);
  return hits;
}

/** The address that a limit counts: of IPv6 the 64 bits that one subscriber holds. */
export function addressSubject(address: string): string {
  if (!isIPv6(address)) return address;
  const [head = '', tail] = address.toLowerCase().split('::');
  const left = head.split(':');
  if (tail === undefined) return left.slice(0, 4).join(':');
  const right = tail === '' ? [] : tail.split(':');
  const groups = [
    ...left.filter(Boolean),
    ...Array<string>(Math.max(0, 8 - left.filter(Boolean).length - right.length)).fill('0'),
    ...right,
  ];
  return groups.slice(0, 4).join(':');
}
