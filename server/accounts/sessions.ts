/*
 * Sessions of people on the page: one cookie that no script can read, rotated while it is used, ended by silence and by age.
 *
 * THREAT: another site makes the browser send a request with the cookie. SameSite=Strict keeps the cookie at home; every call
 * that may change something also needs the origin of this server and a token that only the session's own page was given.
 */
import { randomBytes, timingSafeEqual } from 'node:crypto';
import type { CookieSerializeOptions } from '@fastify/cookie';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { OrganisationId, PersonId } from '../../helpers/protocol/ids.ts';
import { sha256 } from '../../helpers/protocol/signed.ts';
import type { Context } from '../context.ts';
import { Refusal } from '../refusal.ts';
import type { Writer } from '../store/store.ts';
import type { OrganisationRole } from '../store/tables.ts';

/** Times of a session, in ms. */
export const sessionTimes = {
  idleMs: 7_200_000,
  absoluteMs: 43_200_000,
  rotateMs: 900_000,
  overlapMs: 60_000,
  seenMs: 60_000,
} as const;

/** Header that carries the token of the session against forged requests. */
export const CSRF_HEADER = 'x-nessie-csrf';

/** Who asks, as the session proves. */
export interface SignedIn {
  readonly person: PersonId;
  readonly organisation: OrganisationId;
  readonly role: OrganisationRole;
  readonly session: string;
  /** The session began with a one-time link, which may set a first password. */
  readonly byLink: boolean;
}

declare module 'fastify' {
  interface FastifyRequest {
    signedIn: SignedIn | null;
  }
}

/** Name of the cookie: bound to host and https by its prefix where there is https. */
export function cookieName(context: Context): string {
  return context.settings.publicOrigin.startsWith('https:') ? '__Host-nessie' : 'nessie';
}

/** Begins a session in the caller's transaction; the answer is the cookie's text, which is stored nowhere. */
export async function beginSession(context: Context, tx: Writer, person: PersonId, byLink: boolean): Promise<string> {
  const token = context.random(32).toString('base64url');
  const now = context.clock.now();
  await tx
    .deleteFrom('sessions')
    .where('createdAt', '<=', now - sessionTimes.absoluteMs)
    .execute();
  await tx
    .updateTable('people')
    .set({ enteredAt: now })
    .where('id', '=', person)
    .where('enteredAt', 'is', null)
    .execute();
  await tx
    .insertInto('sessions')
    .values({
      id: randomBytes(16).toString('hex'),
      person,
      tokenDigest: digestOf(token),
      previousDigest: null,
      previousUntil: null,
      createdAt: now,
      rotatedAt: now,
      seenAt: now,
      byLink: byLink ? 1 : 0,
    })
    .execute();
  return token;
}

/** Gives the cookie to the browser. */
export function sendCookie(context: Context, reply: FastifyReply, token: string): void {
  const options: CookieSerializeOptions = {
    path: '/',
    httpOnly: true,
    sameSite: 'strict',
    secure: context.settings.publicOrigin.startsWith('https:'),
    maxAge: sessionTimes.absoluteMs / 1000,
  };
  void reply.setCookie(cookieName(context), token, options);
}

/** Token against forged requests that the session's page sends back in CSRF_HEADER. */
export function csrfToken(context: Context, session: string): string {
  return context.secrets.keyed('csrf', session).toString('base64url');
}

/** Finds whose session a request carries, rotating it when it is due. Null where it carries none that stands. */
export async function readSession(
  context: Context,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<SignedIn | null> {
  const token = request.cookies[cookieName(context)];
  if (token === undefined || token.length > 64) return null;
  const digest = digestOf(token);
  const now = context.clock.now();
  const row = await context.store.read
    .selectFrom('sessions')
    .innerJoin('people', 'people.id', 'sessions.person')
    .select(['sessions.id', 'person', 'organisation', 'role', 'byLink', 'rotatedAt', 'seenAt', 'tokenDigest'])
    .where((where) =>
      where.or([
        where('tokenDigest', '=', digest),
        where.and([where('previousDigest', '=', digest), where('previousUntil', '>', now)]),
      ]),
    )
    .where('sessions.createdAt', '>', now - sessionTimes.absoluteMs)
    .where('seenAt', '>', now - sessionTimes.idleMs)
    .where('active', '=', 1)
    .executeTakeFirst();
  if (row === undefined) return null;
  // A stream has no answer that could carry a new cookie: rotating there would sign the person out.
  const mayRotate = request.routeOptions.config.stream !== true && row.tokenDigest.equals(digest);
  if (mayRotate && now - row.rotatedAt >= sessionTimes.rotateMs) {
    const token = await rotate(context, row.id, digest);
    if (token !== undefined) sendCookie(context, reply, token);
  } else if (now - row.seenAt >= sessionTimes.seenMs) {
    await context.store.write((tx) =>
      tx.updateTable('sessions').set({ seenAt: now }).where('id', '=', row.id).execute(),
    );
  }
  return {
    person: row.person,
    organisation: row.organisation,
    role: row.role,
    session: row.id,
    byLink: row.byLink === 1,
  };
}

/** A new cookie in place of the old one, which requests under way may still use for a minute. Undefined where another request was first. */
async function rotate(context: Context, session: string, digest: Buffer): Promise<string | undefined> {
  const token = context.random(32).toString('base64url');
  const now = context.clock.now();
  const changed = await context.store.write((tx) =>
    tx
      .updateTable('sessions')
      .set({
        tokenDigest: digestOf(token),
        previousDigest: digest,
        previousUntil: now + sessionTimes.overlapMs,
        rotatedAt: now,
        seenAt: now,
      })
      .where('id', '=', session)
      .where('tokenDigest', '=', digest)
      .executeTakeFirst(),
  );
  return changed.numUpdatedRows === 1n ? token : undefined;
}

/** Refuses a request that may change something and does not come from this server's own page. Throws Refusal ORIGIN_FOREIGN or CSRF_INVALID. */
export function checkOwnPage(context: Context, request: FastifyRequest): void {
  if (request.method === 'GET' || request.method === 'HEAD') return;
  if (request.headers.origin !== context.settings.publicOrigin) {
    throw new Refusal('ORIGIN_FOREIGN', 'This request does not come from the page of this server.', { status: 403 });
  }
  const session = request.signedIn?.session;
  if (session === undefined) return;
  const given = Buffer.from(String(request.headers[CSRF_HEADER] ?? ''), 'utf8');
  const expected = Buffer.from(csrfToken(context, session), 'utf8');
  if (given.length === expected.length && timingSafeEqual(given, expected)) return;
  throw new Refusal('CSRF_INVALID', 'This request lacks the token of its session.', {
    status: 403,
    remedy: 'Load the page again.',
  });
}

/** The person who asks. Throws Refusal SIGN_IN_REQUIRED. */
export function personOfRequest(request: FastifyRequest): SignedIn {
  if (request.signedIn !== null) return request.signedIn;
  throw new Refusal('SIGN_IN_REQUIRED', 'Sign in first.', { status: 401 });
}

function digestOf(token: string): Buffer {
  return sha256(Buffer.from(token, 'utf8'));
}
