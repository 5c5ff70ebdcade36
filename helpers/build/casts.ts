/*
 * `as` and `!` tell the compiler to believe something it cannot see. Each needs its reason on the line above.
 */
import { nodesOf, readSource, type Node } from './syntax.ts';
import { trackedFiles } from './tree.ts';

const isCast = (node: Node): boolean =>
  ['TsAsExpression', 'TsTypeAssertion', 'TsNonNullExpression'].includes(String(node['type']));

async function castLines(root: string, file: string): Promise<string[]> {
  const { text, tree, lineOf } = await readSource(root, file);
  const lines = text.split('\n');
  const numbers = new Set([...nodesOf(tree.body)].filter(isCast).map(lineOf));
  return [...numbers]
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
