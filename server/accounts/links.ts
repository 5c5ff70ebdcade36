import type { PersonId } from '../../helpers/protocol/ids.ts';
import { sha256 } from '../../helpers/protocol/signed.ts';
import type { Context } from '../context.ts';
import type { Writer } from '../store/store.ts';

/** How long a one-time link is good, in ms. */
export const linkTimes = { setupMs: 86_400_000, signInMs: 600_000, invitationMs: 86_400_000 } as const;

/** Makes a one-time link in the caller's transaction and answers its secret text, which is stored nowhere. */
export async function makeLink(
  context: Context,
  tx: Writer,
  link: { readonly purpose: 'setup' | 'sign-in'; readonly person: PersonId | null; readonly lifeMs: number },
): Promise<string> {
  const token = context.random(32).toString('base64url');
  const now = context.clock.now();
  if (link.purpose === 'setup') await tx.deleteFrom('links').where('purpose', '=', 'setup').execute();
  await tx.deleteFrom('links').where('expiresAt', '<=', now).execute();
  await tx
    .insertInto('links')
    .values({
      digest: linkDigest(token),
      purpose: link.purpose,
      person: link.person,
      expiresAt: now + link.lifeMs,
      usedAt: null,
    })
    .execute();
  return token;
}

/** Uses a link up in the caller's transaction. Undefined for one that is unknown, of another purpose, used or expired: they look alike. */
export async function useLink(
  context: Context,
  tx: Writer,
  purpose: 'setup' | 'sign-in',
  token: string,
): Promise<{ readonly person: PersonId | null } | undefined> {
  const now = context.clock.now();
  const used = await tx
    .updateTable('links')
    .set({ usedAt: now })
    .where('digest', '=', linkDigest(token))
    .where('purpose', '=', purpose)
    .where('usedAt', 'is', null)
    .where('expiresAt', '>', now)
    .returning('person')
    .executeTakeFirst();
  return used;
}

function linkDigest(token: string): Buffer {
  return sha256(Buffer.from(token, 'utf8'));
}

/** The address that a person opens: the secret stands behind `#`, so that no server log and no referrer ever holds it. */
export function linkAddress(context: Context, purpose: 'setup' | 'sign-in', token: string): string {
  return `${context.settings.publicOrigin}/#${purpose}=${token}`;
}
