/*
 * The page as files for a browser: bundled, minified, every name with a hash of its content, and one document that names them.
 * Two builds of one tree give equal bytes.
 */
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

import { build } from 'esbuild';

const SOURCE = 'server/page';
const ASSETS = 'assets';

/** Largest script that a browser must load before it shows anything, in bytes; the first language comes on top. */
export const PAGE_BUDGET_BYTES = 120_000;

/** What was built: sizes in bytes by name below the folder. */
export interface BuiltPage {
  readonly sizes: Readonly<Record<string, number>>;
  /** Bytes of script that are loaded before the first view. */
  readonly initialBytes: number;
}

function hashedCopy(file: string, folder: string): string {
  const content = fs.readFileSync(file);
  const hash = createHash('sha256').update(content).digest('hex').slice(0, 10);
  const { name, ext } = path.parse(file);
  const address = `${ASSETS}/${name}-${hash}${ext}`;
  fs.mkdirSync(path.join(folder, ASSETS), { recursive: true });
  fs.writeFileSync(path.join(folder, address), content);
  return address;
}

/** Builds the page of the tree at `top` into a folder: `index.html` and `assets/`. */
export async function buildPage(top: string, folder: string): Promise<BuiltPage> {
  const source = path.join(top, SOURCE);
  const { metafile } = await build({
    absWorkingDir: top,
    entryPoints: { main: `${SOURCE}/main.tsx`, page: `${SOURCE}/styles/page.css` },
    outdir: folder,
    entryNames: `${ASSETS}/[name]-[hash]`,
    chunkNames: `${ASSETS}/[name]-[hash]`,
    bundle: true,
    splitting: true,
    minify: true,
    platform: 'browser',
    format: 'esm',
    target: ['es2022', 'chrome120', 'firefox120', 'safari17'],
    jsx: 'automatic',
    jsxImportSource: 'preact',
    charset: 'utf8',
    legalComments: 'none',
    logLevel: 'error',
    metafile: true,
  });
  const outputs = Object.entries(metafile.outputs);
  const inFolder = (output: string): string => path.relative(folder, path.join(top, output));
  const built = (entry: string): string => {
    const found = outputs.find(([, { entryPoint }]) => entryPoint === entry);
    if (found === undefined) throw new Error(`the build gave nothing for ${entry}`);
    return inFolder(found[0]);
  };
  const names: Readonly<Record<string, string>> = {
    'main.tsx': built(`${SOURCE}/main.tsx`),
    'page.css': built(`${SOURCE}/styles/page.css`),
    'icon.svg': hashedCopy(path.join(source, 'icon.svg'), folder),
  };
  const html = fs
    .readFileSync(path.join(source, 'index.html'), 'utf8')
    .replaceAll(/(href|src)="([^"]+)"/g, (_, attribute: string, name: string) => {
      const address = names[name];
      if (address === undefined) throw new Error(`index.html names ${name}, which is not built`);
      return `${attribute}="/${address}"`;
    });
  fs.writeFileSync(path.join(folder, 'index.html'), html);
  const sizes = Object.fromEntries(outputs.map(([output, { bytes }]) => [inFolder(output), bytes]));
  return { sizes, initialBytes: initialBytes(metafile.outputs, `${SOURCE}/main.tsx`) };
}

type Outputs = Readonly<
  Record<
    string,
    {
      readonly bytes: number;
      readonly entryPoint?: string;
      readonly imports: readonly { readonly path: string; readonly kind: string }[];
    }
  >
>;

/** The entry and whatever it imports before it runs. */
function initialBytes(outputs: Outputs, entry: string): number {
  const first = Object.entries(outputs).find(([, { entryPoint }]) => entryPoint === entry)?.[0];
  const waiting = first === undefined ? [] : [first];
  const loaded = new Set<string>();
  for (let name = waiting.pop(); name !== undefined; name = waiting.pop()) {
    if (loaded.has(name)) continue;
    loaded.add(name);
    const output = outputs[name];
    waiting.push(...(output?.imports ?? []).filter(({ kind }) => kind === 'import-statement').map((one) => one.path));
  }
  return [...loaded].reduce((sum, name) => sum + (outputs[name]?.bytes ?? 0), 0);
}

// Run by hand it prints what was built and how large it is; `npm run build` alone writes to dist/, whose manifest covers it.
if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const folder = fs.mkdtempSync(path.join(tmpdir(), 'page-'));
  const { sizes, initialBytes: initial } = await buildPage(path.resolve(import.meta.dirname, '..', '..'), folder);
  fs.rmSync(folder, { recursive: true });
  for (const [name, bytes] of Object.entries(sizes)) console.log(`${String(bytes).padStart(8)} ${name}`);
  console.log(`${String(initial).padStart(8)} bytes of script before the first view, of ${PAGE_BUDGET_BYTES}`);
}
