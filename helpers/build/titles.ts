import { isNode, nodesOf, readSource, type Node } from './syntax.ts';
import { trackedFiles } from './tree.ts';

/** The title of one `it` or `describe`; what a template computes reads `…`. */
export interface TestTitle {
  readonly file: string;
  readonly title: string;
  readonly kind: 'test' | 'suite';
}

function textOf(node: unknown): string | undefined {
  if (!isNode(node)) return undefined;
  if (node['type'] === 'StringLiteral') return String(node['value']);
  if (node['type'] !== 'TemplateLiteral' || !Array.isArray(node['quasis'])) return undefined;
  return node['quasis'].map((quasi) => (isNode(quasi) ? String(quasi['cooked']) : '')).join('…');
}

function titleOf(node: Node): { title: string; kind: TestTitle['kind'] } | undefined {
  if (node['type'] !== 'CallExpression' || !isNode(node['callee'])) return undefined;
  const callee = node['callee']['value'];
  if (callee !== 'it' && callee !== 'describe') return undefined;
  const [first] = Array.isArray(node['arguments']) ? node['arguments'].filter(isNode) : [];
  const title = textOf(first?.['expression']);
  return title === undefined ? undefined : { title, kind: callee === 'it' ? 'test' : 'suite' };
}

/** Every title in test/ of the tree at `root`, read from the sources: what could run, whether or not it did. */
export async function testTitles(root: string): Promise<TestTitle[]> {
  const files = (await trackedFiles(root)).filter((file) => /^test\/.*\.test\.tsx?$/.test(file));
  const read = async (file: string): Promise<TestTitle[]> => {
    const { tree } = await readSource(root, file);
    return [...nodesOf(tree.body)].flatMap((node) => {
      const found = titleOf(node);
      return found ? [{ file, ...found }] : [];
    });
  };
  return (await Promise.all(files.map(read))).flat();
}
