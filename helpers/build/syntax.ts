import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

import { parse, type Module } from '@swc/core';

/** A node of @swc/core's tree, read without trusting its shape. */
export type Node = Readonly<Record<string, unknown>>;

/** Whether a part of the tree is an object at all. */
export const isNode = (value: unknown): value is Node => typeof value === 'object' && value !== null;

/** Every typed node below a part of the tree, itself included, in source order. */
export function* nodesOf(value: unknown): Generator<Node> {
  if (Array.isArray(value)) for (const item of value) yield* nodesOf(item);
  else if (isNode(value)) {
    if (typeof value['type'] === 'string') yield value;
    for (const item of Object.values(value)) if (isNode(item)) yield* nodesOf(item);
  }
}

/** A source file and its tree. */
export interface Source {
  readonly text: string;
  readonly tree: Module;
  /** Number of the line, counted from 1, on which a node of the tree ends. */
  readonly lineOf: (node: Node) => number;
}

/** Reads one file of the tree at `root`; `file` is relative. Throws an Error that names the file and what is broken in it. */
export async function readSource(root: string, file: string): Promise<Source> {
  const text = await readFile(join(root, file), 'utf8');
  // Positions count on from one parse to the next and begin at the first token, so a first token is planted at 0.
  const options = { syntax: 'typescript', tsx: file.endsWith('x'), target: 'es2022' } as const;
  // The line that names the interpreter is of the same length as a comment, and only a comment may stand behind that token.
  const tree = await parse(`;${text.replace(/^#!/, '//')}`, options).catch((cause: unknown) => {
    throw new Error(`${file} cannot be parsed: ${String(cause)}`, { cause });
  });
  const bytes = Buffer.from(text);
  const lineOf = ({ span }: Node): number => {
    const end = isNode(span) ? Number(span['end']) : 0;
    return bytes
      .subarray(0, end - tree.span.start - 2)
      .toString('utf8')
      .split('\n').length;
  };
  return { text, tree, lineOf };
}
