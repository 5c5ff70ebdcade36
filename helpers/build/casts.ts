/*
 * `as` and `!` tell the compiler to believe something it cannot see. Each needs its reason on the line above.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

import { parse } from '@swc/core';

import { isNode, nodesOf, type Node } from './syntax.ts';
import { trackedFiles } from './tree.ts';

const isCast = (node: Node): boolean =>
  ['TsAsExpression', 'TsTypeAssertion', 'TsNonNullExpression'].includes(String(node['type']));

function endOf(node: Node): number {
  return isNode(node['span']) ? Number(node['span']['end']) : 0;
}

async function castLines(root: string, file: string): Promise<string[]> {
  const text = await readFile(join(root, file), 'utf8');
  // Positions count on from one parse to the next and begin at the first token, so a first token is planted at 0.
  const tree = await parse(`;${text}`, { syntax: 'typescript', tsx: file.endsWith('x'), target: 'es2022' });
  const bytes = Buffer.from(text);
  const lines = text.split('\n');
  const numbers = [...nodesOf(tree.body)]
    .filter((node) => isCast(node))
    .map(
      (node) =>
        bytes
          .subarray(0, endOf(node) - tree.span.start - 2)
          .toString('utf8')
          .split('\n').length,
    );
  return [...new Set(numbers)]
    .filter((number) => !hasReason(lines, number))
    .map(
      (number) => `${file}:${number}: a cast without its reason on the line above: ${(lines[number - 1] ?? '').trim()}`,
    );
}

/** The comment may stand above the statement's first line, which may lie a few lines above the cast. */
function hasReason(lines: readonly string[], number: number): boolean {
  for (let index = number - 1; index >= 0 && index >= number - 8; index -= 1) {
    if (/^\s*(\/\/|\*|\/\*)/.test(lines[index - 1] ?? '')) return true;
    if (/^\s*$/.test(lines[index - 1] ?? '') || /;\s*$/.test(lines[index - 1] ?? '')) return false;
  }
  return false;
}

/** One line for each cast of the shipped sources that gives no reason. */
export async function checkCasts(root: string): Promise<string[]> {
  const files = (await trackedFiles(root)).filter((file) =>
    /^(actors|daemon|guest|helpers|machines|server)\/.*\.tsx?$/.test(file),
  );
  return (await Promise.all(files.map((file) => castLines(root, file)))).flat();
}
