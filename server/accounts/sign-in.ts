import type { PersonId } from '../../helpers/protocol/ids.ts';
import { record } from '../audit/record.ts';
import type { Context } from '../context.ts';
import { Refusal } from '../refusal.ts';
import type { Writer } from '../store/store.ts';
import { addressSubject, limits, takeLimit } from './limits.ts';
import { linkAddress, linkTimes, makeLink, useLink } from './links.ts';
import { isPassword, recordRefusal } from './password.ts';
import { beginSession } from './sessions.ts';

/** Signs a person in by login and password; the answer is the cookie's text. An unknown login and a wrong password look and last alike. */
export async function signIn(
  context: Context,
  address: string,
  { login, password }: { readonly login: string; readonly password: string },
): Promise<string> {
  await takeLimit(context, limits.signInsOfAddress, addressSubject(address));
  await takeLimit(context, limits.signInsOfLoginHere, `${addressSubject(address)} ${login}`);
  await takeLimit(context, limits.signInsOfLogin, login);
  const row = await context.store.read
    .selectFrom('people')
    .select(['id', 'organisation', 'password', 'active'])
    .where('login', '=', login)
    .executeTakeFirst();
  const isRight = await isPassword(password, row?.active === 1 ? row.password : null);
  if (!isRight || row === undefined) {
    // The same work for a login that nobody has, so that time tells nothing.
    await recordRefusal(
      context,
      'person.sign-in-refused',
      row?.id,
      row === undefined ? 'LOGIN_UNKNOWN' : 'PASSWORD_WRONG',
    );
    throw new Refusal('SIGN_IN_REFUSED', 'Login name or password is not right.', { status: 401 });
  }
  return context.store.write(async (tx) => {
    await record(context, tx, {
      action: 'person.signed-in',
      organisation: row.organisation,
      person: row.id,
      outcome: 'done',
    });
    return beginSession(context, tx, row.id, false);
  });
}

/** Signs a person in by a one-time link, using it up. Throws Refusal LINK_INVALID. */
export async function signInByLink(context: Context, address: string, token: string): Promise<string> {
  await takeLimit(context, limits.linksOfAddress, addressSubject(address));
  return context.store.write(async (tx) => {
    const link = await useLink(context, tx, 'sign-in', token);
    if (link?.person === undefined || link.person === null) throw linkInvalid();
    await requireActive(tx, link.person);
    await record(context, tx, { action: 'person.signed-in-by-link', person: link.person, outcome: 'done' });
    return beginSession(context, tx, link.person, true);
  });
}

/** What an unknown, a used and an expired link all answer. */
export function linkInvalid(): Refusal {
  return new Refusal('LINK_INVALID', 'This one-time link is not good any longer.', {
    status: 401,
    remedy: 'Ask for a new one where this one came from.',
  });
}

/** A one-time address for a person of this control plane, asked for on the machine that runs it. Throws Refusal PERSON_ABSENT. */
export async function signInAddress(context: Context, login: string): Promise<string> {
  const token = await context.store.write(async (tx) => {
    const row = await tx
      .selectFrom('people')
      .select('id')
      .where('login', '=', login)
      .where('active', '=', 1)
      .executeTakeFirst();
    if (row === undefined) throw nobody(login);
    await record(context, tx, { action: 'person.link-made', person: row.id, outcome: 'done' });
    return makeLink(context, tx, { purpose: 'sign-in', person: row.id, lifeMs: linkTimes.signInMs });
  });
  return linkAddress(context, 'sign-in', token);
}

/** Takes the password of an account away and ends its sessions, asked for on the machine that runs the control plane. Throws Refusal PERSON_ABSENT. */
export async function forgetPassword(context: Context, login: string): Promise<void> {
  await context.store.write(async (tx) => {
    const row = await tx
      .updateTable('people')
      .set({ password: null })
      .where('login', '=', login)
      .where('active', '=', 1)
      .returning('id')
      .executeTakeFirst();
    if (row === undefined) throw nobody(login);
    await tx.deleteFrom('sessions').where('person', '=', row.id).execute();
    await record(context, tx, { action: 'person.password-forgotten', person: row.id, outcome: 'done' });
  });
}

function nobody(login: string): Refusal {
  return new Refusal('PERSON_ABSENT', `There is nobody with the login name ${login}.`, { status: 404 });
}

async function requireActive(tx: Writer, person: PersonId): Promise<void> {
  const row = await tx
    .selectFrom('people')
    .select('id')
    .where('id', '=', person)
    .where('active', '=', 1)
    .executeTakeFirst();
  if (row === undefined) throw linkInvalid();
}
