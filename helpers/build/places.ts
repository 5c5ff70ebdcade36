/*
 * Nothing of the machine where a file was written may stay in it: a path, a registry's host, a note to oneself. And the root
 * holds only what style and tools prescribe.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

import { trackedFiles } from './tree.ts';

// Bracketed letters keep these patterns from matching this file.
const forbidden: readonly { pattern: RegExp; what: string }[] = [
  { pattern: /(^|[^\w.])\/(wor[k]|far[m])\/[a-z.]/m, what: 'a path of the machine it was written on' },
  {
    pattern: /\/(hom[e]|User[s])\/(?!(USER|user|you|person|alice|bob|owner|agent)\b)[A-Za-z][\w.-]*\//m,
    what: 'a home folder of a person',
  },
  { pattern: /bash_job[s]|\/tmp\/tea[m]\b/m, what: 'a temporary place of the machine it was written on' },
  {
    pattern: /\/\/[\w.-]*(registr[y]|artifactor[y]|verdacci[o])[\w.-]*[/:]/im,
    what: 'the host of a package registry',
  },
  { pattern: /\b(TOD[O]|FIXM[E]|XX[X])\b/m, what: 'work left undone' },
];

/** Root entries that style.md section 2 prescribes or that hosts and tools look for there. */
const rootEntries: ReadonlySet<string> = new Set(
  [
    'machines actors helpers guest server daemon test docs .ci',
    'package.json package-lock.json tsconfig.json .npmrc .gitignore',
    '.oxlintrc.json .oxfmtrc.json .mocharc.json knip.json',
    'README.md SECURITY.md CHANGELOG.md LICENSE',
  ].flatMap((line) => line.split(' ')),
);

const lineLimit = 400;
const isText = (file: string): boolean => !/\.(png|jpe?g|webp|gif|ico|woff2?|bin|gz|tgz)$/.test(file);

/** The entries of the root that no rule prescribes, one line each. */
export function strayEntries(files: readonly string[]): string[] {
  const entries = new Set(files.map((file) => file.split('/')[0] ?? file));
  return [...entries]
    .filter((entry) => !rootEntries.has(entry))
    .map(
      (entry) =>
        `${entry}: the root holds prescribed entries only; find its folder or add it to helpers/build/places.ts with its reason`,
    );
}

/** What one file's text holds that it must not, one line each. */
export function foundIn(file: string, text: string): string[] {
  // The lock file names the public registry in every entry; npm needs it there.
  const rules = file === 'package-lock.json' ? [] : forbidden;
  const found = rules.flatMap(({ pattern, what }) => {
    const match = pattern.exec(text);
    return match ? [`${file}:${text.slice(0, match.index).split('\n').length}: ${what}: ${match[0].trim()}`] : [];
  });
  const lines = text.split('\n').length - 1;
  return /\.(tsx?|css)$/.test(file) && lines > lineLimit
    ? [...found, `${file}: ${lines} lines, the limit is ${lineLimit}`]
    : found;
}

/** Every such finding in the tree at `root`. */
export async function checkPlaces(root: string): Promise<string[]> {
  const files = await trackedFiles(root);
  const read = async (file: string): Promise<string[]> => foundIn(file, await readFile(join(root, file), 'utf8'));
  return [...strayEntries(files), ...(await Promise.all(files.filter(isText).map(read))).flat()];
}
