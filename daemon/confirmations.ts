/*
 * Whether the owner confirmed a draft at this machine: looked up before a promotion is accepted, so that one that must wait for a
 * person is refused at once. `promote` decides again, and it alone knows whether a confirmation was used up.
 */
import { CONFIRMATION_MS, ownerConfirmationSchema } from '../helpers/promote/protocol.ts';
import type { RunId } from '../helpers/protocol/ids.ts';
import { readOwnersText } from './owners-text.ts';

/** Largest confirmation that is read: the guarded paths of a whole draft. */
const LIMIT_BYTES = 67_108_864;

/** What must be confirmed; digests are 64 hexadecimal digits, `now` is this machine's clock in ms since the Unix epoch. */
export interface Unconfirmed {
  readonly run: RunId;
  readonly manifestDigest: string;
  readonly rootIdentity: string | undefined;
  readonly now: number;
}

/** Whether a confirmation in the configuration folder covers these changes and is not too old. */
export function isConfirmedHere(
  configuration: string,
  { run, manifestDigest, rootIdentity, now }: Unconfirmed,
): boolean {
  const text = readOwnersText(`${configuration}/owner/confirmations/${manifestDigest}.json`, LIMIT_BYTES);
  if (text === undefined) return false;
  const { data } = ownerConfirmationSchema.safeParse(jsonOrUndefined(text));
  return (
    data !== undefined &&
    data.run === run &&
    data.manifestDigest === manifestDigest &&
    data.rootIdentity === rootIdentity &&
    now - data.at <= CONFIRMATION_MS
  );
}

function jsonOrUndefined(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // A confirmation that is no JSON confirms nothing.
    return undefined;
  }
}
