/*
 * Files that a program writes and people read. Each generator exports `render()`; `npm run docs` writes what it returns, the
 * check compares. A generator that is not in the tree writes nothing, so its file must not be there either.
 */
import { access, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

/** A generated file and the module, both relative to the root, whose `render` makes its text. */
export interface Generated {
  readonly file: string;
  readonly generator: string;
}

/** All of them. */
export const generatedFiles: readonly Generated[] = [
  { file: 'helpers/PROCESSES.md', generator: 'helpers/build/processes.ts' },
  { file: 'machines/STATES.md', generator: 'helpers/build/states.ts' },
  { file: 'docs/codes.md', generator: 'helpers/build/codes.ts' },
  { file: 'docs/policy.md', generator: 'helpers/build/policy.ts' },
];

async function read(path: string): Promise<string | undefined> {
  return readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  });
}

async function renderOf(root: string, { generator }: Generated): Promise<string | undefined> {
  const path = join(root, generator);
  const present = await access(path).then(
    () => true,
    () => false,
  );
  if (!present) return undefined;
  const module: unknown = await import(pathToFileURL(path).href);
  if (typeof module !== 'object' || module === null || !('render' in module) || typeof module.render !== 'function') {
    throw new TypeError(`${generator} exports no function render`);
  }
  return String(await module.render());
}

/** One line for each generated file that is stale, missing, or without its generator. */
export async function checkGenerated(root: string): Promise<string[]> {
  const problems = await Promise.all(
    generatedFiles.map(async (generated) => {
      const { file, generator } = generated;
      const [text, expected] = await Promise.all([read(join(root, file)), renderOf(root, generated)]);
      if (text === expected) return undefined;
      if (expected === undefined) return `${file} is said to be generated, but ${generator} is not in the tree`;
      return `${file} is ${text === undefined ? 'missing' : 'stale'}: npm run docs`;
    }),
  );
  return problems.filter((problem) => problem !== undefined);
}

/** Writes every generated file whose generator is in the tree at `root`; answers the names of those that changed. */
export async function writeGenerated(root: string): Promise<string[]> {
  const changed: string[] = [];
  for (const generated of generatedFiles) {
    const text = await renderOf(root, generated);
    if (text === undefined || text === (await read(join(root, generated.file)))) continue;
    await writeFile(join(root, generated.file), text);
    changed.push(generated.file);
  }
  return changed;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  for (const file of await writeGenerated(process.cwd())) process.stdout.write(`wrote ${file}\n`);
}
