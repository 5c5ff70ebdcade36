/*
 * One numbered call in words: its name, then each folder, file and name that it was given, without anything that another run of
 * the same work would have different. The victim spells its calls and strace's lines are read into the same words.
 */
import fs from 'node:fs';

import type { Argument } from '../../../helpers/runtime/libc.ts';

/** What stands at each place of a call's arguments; a place that is not named here says nothing that identifies the call. */
const PLACES: Readonly<Record<string, readonly ('open' | 'name' | 'other')[]>> = {
  openat2: ['open', 'name'],
  mkdirat: ['open', 'name'],
  unlinkat: ['open', 'name'],
  renameat2: ['open', 'name', 'open', 'name'],
  linkat: ['other', 'name', 'open', 'name'],
  fsetxattr: ['open', 'name'],
  copy_file_range: ['open', 'other', 'open'],
};
const FIRST_ALONE = ['open'] as const;

/** Words of a call that this process makes; the places of its descriptors are looked up without changing anything. */
export function describeCall(name: string, args: readonly Argument[]): string {
  const places = (PLACES[name] ?? FIRST_ALONE).map((kind, index) => {
    const argument = args[index];
    if (kind === 'open') return fs.readlinkSync(`/proc/self/fd/${String(argument)}`, 'latin1');
    return kind === 'name' && Buffer.isBuffer(argument) ? argument.subarray(0, -1).toString('latin1') : '';
  });
  return steady(`${name} ${places.filter((place) => place !== '').join(' ')}`);
}

const ESCAPE = /\\(?:x([0-9a-f]{2})|([0-7]{1,3})|(.))/g;

function unescaped(text: string): string {
  return text.replaceAll(ESCAPE, (_, hex?: string, octal?: string, other?: string) => {
    if (hex !== undefined) return String.fromCodePoint(Number.parseInt(hex, 16));
    return octal === undefined ? (other ?? '') : String.fromCodePoint(Number.parseInt(octal, 8));
  });
}

/** An argument as `strace -y` prints it: an open file with its path, the working directory, a text, or anything else up to a comma. */
const PRINTED =
  /\s*(?:\d+<([^>]*)>|AT_FDCWD(?:<[^>]*>)?|"((?:[^"\\]|\\.)*)"(?:\.\.\.)?|\{[^}]*\}|[^,()\s][^,()]*)(?:\(deleted\))?/g;

/** Words of a line of `strace -f -y`, or undefined where it tells of no call. */
export function describeLine(line: string): { readonly name: string; readonly words: string } | undefined {
  const [, name, rest] = /^\d+\s+([a-z0-9_]+)\((.*)$/.exec(line) ?? [];
  if (name === undefined || rest === undefined) return undefined;
  const printed = [...rest.matchAll(PRINTED)];
  const places = (PLACES[name] ?? FIRST_ALONE).map((kind, index) => {
    const [, open, text] = printed[index] ?? [];
    return kind === 'other' ? '' : unescaped((kind === 'open' ? open : text) ?? '');
  });
  return { name, words: steady(`${name} ${places.filter((place) => place !== '').join(' ')}`) };
}

/** Leaves out what is of one run alone: where its folders lie, ids, random names, inode and descriptor numbers. */
export function steady(words: string): string {
  return words
    .replaceAll(/\/\S*?\/promotion-[^/ ]+\//g, '')
    .replaceAll(/\.nessie-stage-[0-9a-f]{32}/g, 'STAGE')
    .replaceAll(/prm_[0-9a-f]{32}/g, 'PROMOTION')
    .replaceAll(/#\d+/g, 'UNNAMED')
    .replaceAll(/\/proc\/self\/fd\/\d+/g, 'OPEN')
    .replaceAll(' (deleted)', '');
}
