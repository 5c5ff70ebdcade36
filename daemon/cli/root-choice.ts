/*
 * Which folder may become the root. Judged here for a clear answer before anything is written; `workspace` judges again at
 * every open, by descriptor.
 */
import fs from 'node:fs';
import path from 'node:path';
import { CliFailure } from './failure.ts';

/** What a root must lie apart from, and whether a whole home is wanted. */
export interface RootRules {
  /** Absolute folders of the executor itself, which need not exist yet. */
  readonly own: readonly string[];
  /** The owner's home, if known. */
  readonly home: string | undefined;
  readonly wholeHome: boolean;
}

/** The canonical folder behind what the owner named: links resolved, never a parent of it. Throws CliFailure: refused. */
export function chooseRoot(named: string, rules: RootRules): string {
  const root = canonicalFolder(named);
  if (root === path.parse(root).root) refuse('"/" cannot be the root; choose the folder of one project');
  if (!rules.wholeHome && rules.home !== undefined && isWithin(existingPart(rules.home), root)) {
    refuse('the root would hold your whole home; choose the folder of one project, or say --whole-home');
  }
  for (const own of rules.own) {
    const folder = existingPart(own);
    if (isWithin(folder, root) || isWithin(root, folder)) {
      refuse('the root and a folder of the executor itself lie inside one another; choose another root');
    }
  }
  return root;
}

function canonicalFolder(named: string): string {
  let root: string;
  try {
    root = fs.realpathSync(named);
  } catch (cause) {
    throw new CliFailure('refused', 'the root cannot be opened; name a folder that exists', { cause });
  }
  return fs.statSync(root).isDirectory() ? root : refuse('the root is not a folder; name one folder');
}

// What of a path exists, links resolved, and the rest of it as it is.
function existingPart(folder: string): string {
  const absolute = path.resolve(folder);
  if (fs.existsSync(absolute)) return fs.realpathSync(absolute);
  const parent = path.dirname(absolute);
  return parent === absolute ? absolute : path.join(existingPart(parent), path.basename(absolute));
}

function isWithin(folder: string, other: string): boolean {
  const below = path.relative(other, folder);
  return below === '' || !(below === '..' || below.startsWith(`..${path.sep}`) || path.isAbsolute(below));
}

function refuse(sentence: string): never {
  throw new CliFailure('refused', sentence);
}
