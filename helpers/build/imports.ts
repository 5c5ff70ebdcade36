/*
 * The import checker. It reads every import of every source file from the syntax tree and judges it by import-rules.ts.
 * One pass sees values and types apart, `import()` and `import('x').T` included.
 */
import { builtinModules } from 'node:module';
import { posix } from 'node:path';

import { bans, folders, reaches } from './import-rules.ts';
import { isNode, nodesOf, readSource, type Node } from './syntax.ts';
import { trackedFiles } from './tree.ts';

/** One import: `target` as import-rules.ts spells it, or `computed` where the text does not say what is loaded. */
export interface Import {
  readonly file: string;
  readonly target: string;
  readonly kind: 'value' | 'type';
  /** Names taken from the target; `*` is the whole namespace, `default` the default export. */
  readonly names: readonly string[];
}

/** One broken rule: who imports what, the rule's name, and why the rule stands. */
export interface Violation {
  readonly file: string;
  readonly target: string;
  readonly rule: string;
  readonly reason: string;
}

function literal(value: unknown): string | undefined {
  return isNode(value) && value['type'] === 'StringLiteral' && typeof value['value'] === 'string'
    ? value['value']
    : undefined;
}

function namesOf(node: Node): string[] {
  const specifiers = Array.isArray(node['specifiers']) ? node['specifiers'].filter(isNode) : [];
  return specifiers.map((specifier) => {
    if (specifier['type'] === 'ImportDefaultSpecifier') return 'default';
    if (specifier['type'] !== 'ImportSpecifier') return '*';
    const name = specifier['imported'] ?? specifier['local'];
    return isNode(name) ? String(name['value']) : '*';
  });
}

function specifierOf(node: Node): { specifier: string | undefined; kind: Import['kind'] } | undefined {
  switch (node['type']) {
    case 'ImportDeclaration':
    case 'ExportAllDeclaration':
    case 'ExportNamedDeclaration': {
      const specifier = literal(node['source']);
      return specifier === undefined ? undefined : { specifier, kind: node['typeOnly'] === true ? 'type' : 'value' };
    }
    case 'TsImportType':
      return { specifier: literal(node['argument']), kind: 'type' };
    case 'TsExternalModuleReference':
      return { specifier: literal(node['expression']), kind: 'value' };
    case 'CallExpression': {
      if (!isNode(node['callee']) || node['callee']['type'] !== 'Import') return undefined;
      const [first] = Array.isArray(node['arguments']) ? node['arguments'].filter(isNode) : [];
      return { specifier: literal(first?.['expression']), kind: 'value' };
    }
    default:
      return undefined;
  }
}

function targetOf(file: string, specifier: string | undefined): string {
  if (specifier === undefined) return 'computed';
  if (specifier.startsWith('.')) return posix.join(posix.dirname(file), specifier);
  if (specifier.startsWith('node:')) return specifier;
  return builtinModules.includes(specifier) ? `node:${specifier}` : `npm:${specifier}`;
}

/** Reads the imports of one file of the tree at `root`; `file` is relative. Throws an Error that names a broken file. */
export async function importsOf(root: string, file: string): Promise<Import[]> {
  const { tree } = await readSource(root, file);
  const found: Import[] = [];
  for (const node of nodesOf(tree.body)) {
    const edge = specifierOf(node);
    if (edge) found.push({ file, target: targetOf(file, edge.specifier), kind: edge.kind, names: namesOf(node) });
  }
  return found;
}

function judge(edge: Import): Violation | undefined {
  const { file, target, kind } = edge;
  const broken = (rule: string, reason: string): Violation => ({ file, target, rule, reason });
  if (target === 'computed') {
    if (/^(test|helpers\/build)\//.test(file)) return undefined;
    return broken('imports are literal', 'a computed import cannot be judged, so what ships has none');
  }
  if (target === 'npm:zod' && kind === 'value' && edge.names.some((name) => name !== '*')) {
    return broken('zod as a namespace', '`import * as z` bundles a third of what `import { z }` does');
  }
  for (const ban of bans) {
    if (ban.target.test(target) && !ban.exempt.test(file) && (kind === 'value' || ban.kind === 'values and types')) {
      return broken(ban.name, ban.reason);
    }
  }
  const folder = folders.find((row) => row.files.test(file));
  if (!folder) return broken('every file has a row', 'a folder that import-rules.ts does not list may import nothing');
  const allowed = kind === 'type' ? [...folder.values, ...(folder.types ?? [])] : folder.values;
  return allowed.some((pattern) => pattern.test(target)) ? undefined : broken(folder.name, folder.reason);
}

function chainTo(start: string, target: RegExp, edges: ReadonlyMap<string, readonly string[]>): string[] | undefined {
  const paths: string[][] = [[start]];
  const seen = new Set([start]);
  for (let path = paths.shift(); path; path = paths.shift()) {
    for (const next of edges.get(path.at(-1) ?? start) ?? []) {
      if (target.test(next)) return [...path, next];
      if (seen.has(next)) continue;
      seen.add(next);
      paths.push([...path, next]);
    }
  }
  return undefined;
}

function judgeReach(edges: readonly Import[]): Violation[] {
  const graph = new Map<string, string[]>();
  for (const { file, target, kind } of edges)
    if (kind === 'value') graph.set(file, [...(graph.get(file) ?? []), target]);
  return reaches.flatMap(({ name, from, target, reason }) =>
    [...graph.keys()]
      .filter((file) => from.test(file))
      .flatMap((file) => {
        const chain = chainTo(file, target, graph);
        return chain ? [{ file, target: chain.slice(1).join(' > '), rule: name, reason }] : [];
      }),
  );
}

/** Judges all imports of the tree at `root`. Throws if it saw no file, since then it has judged nothing. */
export async function checkImports(root: string): Promise<{ files: number; imports: number; violations: Violation[] }> {
  const files = (await trackedFiles(root)).filter((file) =>
    /^(actors|daemon|guest|helpers|machines|server|test)\/.*\.tsx?$/.test(file),
  );
  if (files.length === 0) throw new Error(`the import checker saw no source file below ${root}`);
  const edges = (await Promise.all(files.map((file) => importsOf(root, file)))).flat();
  const direct = edges.map(judge).filter((violation) => violation !== undefined);
  return { files: files.length, imports: edges.length, violations: [...direct, ...judgeReach(edges)] };
}
