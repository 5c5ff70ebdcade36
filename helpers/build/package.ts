/*
 * `npm run pack`: the package for other projects, with its two entries `nessie-executor/machines` and `nessie-executor/testing`.
 * JavaScript by esbuild, every package external and xstate a peer, so that a reader's machines and ours are of one xstate; types by
 * the compiler. Ends with a tarball in dist/.
 */
import { spawn } from 'node:child_process';
import { copyFile, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

import { build } from 'esbuild';

/** Source of each entry, from the top of the tree. */
const ENTRIES = { machines: 'machines/index.ts', testing: 'test/kit/index.ts' } as const;

/** Writes the package's folder anew: package.json, licence, README, `js/` and `types/`. */
export async function preparePackage(top: string, folder: string): Promise<void> {
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  await build({
    absWorkingDir: top,
    entryPoints: { ...ENTRIES },
    outdir: path.join(folder, 'js'),
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node20.19',
    packages: 'external',
    legalComments: 'none',
    logLevel: 'error',
  });
  await emitTypes(top, folder);
  await writeFile(path.join(folder, 'package.json'), `${JSON.stringify(await manifest(top), null, 2)}\n`);
  await writeFile(path.join(folder, 'README.md'), README);
  await copyFile(path.join(top, 'LICENSE'), path.join(folder, 'LICENSE')).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error;
  });
}

/** Packs a prepared folder; answers the path of the tarball. Needs no network. */
export async function packPackage(folder: string, into: string): Promise<string> {
  const options = ['pack', '--offline', '--json', '--pack-destination', into];
  const output = await run('npm', options, folder);
  const answer: unknown = JSON.parse(output);
  const first: unknown = Array.isArray(answer) ? answer[0] : undefined;
  const name = typeof first === 'object' && first !== null && 'filename' in first ? first.filename : undefined;
  if (typeof name !== 'string') throw new Error('npm pack named no file');
  return path.join(into, name);
}

async function manifest(top: string): Promise<object> {
  const text = await readFile(path.join(top, 'package.json'), 'utf8');
  const own: unknown = JSON.parse(text);
  if (typeof own !== 'object' || own === null) throw new Error('package.json is not an object');
  // Our own package.json, whose fields the check compares.
  const { name, version, license, engines, dependencies } = own as Manifest;
  return {
    name,
    version,
    description: 'State machines of nessie-executor, and the kit that replays their traces.',
    license,
    type: 'module',
    engines,
    exports: {
      './machines': entry('machines/index', 'machines'),
      './testing': entry('test/kit/index', 'testing'),
    },
    files: ['js', 'types', 'LICENSE'],
    peerDependencies: { xstate: `^${dependencies['xstate']}` },
  };
}

function entry(types: string, js: string): object {
  return { types: `./types/${types}.d.ts`, default: `./js/${js}.js` };
}

type Manifest = {
  readonly name: string;
  readonly version: string;
  readonly license: string;
  readonly engines: object;
  readonly dependencies: { readonly [name: string]: string };
};

/** Declarations of the entries and of what they import; relative imports end in `.js` there, as a reader's compiler wants them. */
async function emitTypes(top: string, folder: string): Promise<void> {
  const config = path.join(folder, 'tsconfig.types.json');
  const options = {
    extends: path.join(top, 'tsconfig.json'),
    compilerOptions: {
      noEmit: false,
      declaration: true,
      emitDeclarationOnly: true,
      allowImportingTsExtensions: false,
      rewriteRelativeImportExtensions: true,
      rootDir: top,
      outDir: path.join(folder, 'types'),
      typeRoots: [path.join(top, 'node_modules/@types')],
      types: ['node'],
    },
    include: [],
    files: Object.values(ENTRIES).map((source) => path.join(top, source)),
  };
  await writeFile(config, JSON.stringify(options));
  await run(path.join(top, 'node_modules/.bin/tsc'), ['-p', config], top);
  await rm(config);
}

function run(program: string, options: readonly string[], cwd: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, options, { cwd, stdio: ['ignore', 'pipe', 'pipe'] });
    const output: Buffer[] = [];
    const errors: Buffer[] = [];
    child.stdout.on('data', (chunk: Buffer) => output.push(chunk));
    child.stderr.on('data', (chunk: Buffer) => errors.push(chunk));
    child.once('error', reject);
    child.once('close', (code) => {
      const said = Buffer.concat(output).toString('utf8');
      if (code === 0) return resolve(said);
      const why = `${said}${Buffer.concat(errors).toString('utf8')}`.trim();
      return reject(new Error(`${path.basename(program)} ended with ${String(code)}: ${why}`));
    });
  });
}

const README = `# nessie-executor

State machines of the executor and its control plane, pure, and a kit that replays their recorded traces.

\`\`\`js
import { readFileSync } from 'node:fs';
import { begin, commandMachine, step } from 'nessie-executor/machines';
import { expectTrace } from 'nessie-executor/testing';

const queued = begin(commandMachine, { commandId: 'cmd-1', executorId: 'exec-1' });
step(commandMachine, queued.stored, { type: 'command.cancel', by: 'person' });

it('still behaves as it did', () => expectTrace(readFileSync('recorded.jsonl', 'utf8')));
\`\`\`

xstate 5 is a peer: install it beside this package.
`;

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const folder = path.resolve('dist/package');
  await preparePackage(process.cwd(), folder);
  process.stdout.write(`wrote ${path.relative(process.cwd(), await packPackage(folder, path.resolve('dist')))}\n`);
}
