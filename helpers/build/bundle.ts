/*
 * `npm run build`: one file a program in dist/, koffi's binary beside them, and a manifest of SHA-256 sums that every starter
 * checks. Two builds of one tree give equal bytes: nothing of the time or the place enters a bundle.
 */
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

import { build, type Metafile } from 'esbuild';

import { MANIFEST, TRACE_PAGE } from '../runtime/installation.ts';
import { buildPage } from './page.ts';
import { buildTracePage } from './trace-page.ts';
import { koffiBesideBundle, piscinaBesideBundle } from './plugins.ts';

/** One program of an installation: the bundle's name without its ending, and its source from the top of the tree. */
export type Entry = { readonly name: string; readonly source: string; readonly packages: 'bundled' | 'external' };

const bundled = (name: string, source: string): Entry => ({ name, source, packages: 'bundled' });

/** Every program that ships. */
export const ENTRIES: readonly Entry[] = [
  bundled('launch', 'helpers/runtime/launch.ts'),
  bundled('probe', 'helpers/runtime/probe.ts'),
  bundled('supervisor', 'helpers/supervisor/main.ts'),
  bundled('daemon', 'daemon/main.ts'),
  bundled('link', 'helpers/link/main.ts'),
  bundled('key-store', 'helpers/key-store/main.ts'),
  bundled('workspace', 'helpers/workspace/main.ts'),
  bundled('workspace-worker', 'helpers/workspace/worker.ts'),
  bundled('promote', 'helpers/promote/main.ts'),
  bundled('cli', 'daemon/cli/main.ts'),
  { name: 'server', source: 'server/main.ts', packages: 'external' },
];

/** Packages written for require() find one. */
const REQUIRE =
  "import { createRequire as makeRequire } from 'node:module';\nconst require = makeRequire(import.meta.url);";

async function bundleEntries(
  top: string,
  folder: string,
  entries: readonly Entry[],
  packages: Entry['packages'],
): Promise<Metafile> {
  const chosen = entries.filter((entry) => entry.packages === packages);
  const result = await build({
    absWorkingDir: top,
    entryPoints: chosen.map(({ name, source }) => ({ in: source, out: name })),
    outdir: folder,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20.19',
    banner: { js: REQUIRE },
    define: { 'process.env.NODE_ENV': '"production"' },
    legalComments: 'none',
    logLevel: 'error',
    metafile: true,
    ...(packages === 'external' ? { packages: 'external' as const } : { external: ['@napi-rs/nice'] }),
    plugins: [koffiBesideBundle, piscinaBesideBundle(top)],
  });
  return result.metafile;
}

/** koffi's prebuilt binary for this machine's C library. */
function koffiBinary(top: string): string {
  const require = createRequire(path.join(top, 'package.json'));
  const koffi = path.dirname(require.resolve('koffi'));
  const glibc = fs.existsSync('/lib/ld-musl-x86_64.so.1') ? 'musl' : 'linux';
  const arch = process.arch;
  return path.join(koffi, '..', '@koromix', `koffi-linux-${arch}`, `${glibc}_${arch}`, 'koffi.node');
}

function writeManifest(folder: string): void {
  const found = fs.readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const names = found.map((entry) => path.relative(folder, path.join(entry.parentPath, entry.name)));
  const files = names.toSorted().map((name) => {
    const sum = createHash('sha256').update(fs.readFileSync(path.join(folder, name)));
    return [name, sum.digest('hex')] as const;
  });
  const manifest = { version: 1, files: Object.fromEntries(files) };
  fs.writeFileSync(path.join(folder, MANIFEST), `${JSON.stringify(manifest, null, 2)}\n`);
}

/** Builds the entries whose source exists into a folder, which is replaced as a whole; returns esbuild's metafiles and the names that were left out. */
export async function bundle(
  top: string,
  folder: string,
  entries: readonly Entry[],
): Promise<{ readonly metafiles: readonly Metafile[]; readonly absent: readonly string[] }> {
  const present = entries.filter(({ source }) => fs.existsSync(path.resolve(top, source)));
  const next = `${folder}.next`;
  fs.rmSync(next, { recursive: true, force: true });
  fs.mkdirSync(next, { recursive: true, mode: 0o755 });
  const metafiles: Metafile[] = [];
  for (const packages of ['bundled', 'external'] as const) {
    if (present.some((entry) => entry.packages === packages))
      metafiles.push(await bundleEntries(top, next, present, packages));
  }
  fs.copyFileSync(koffiBinary(top), path.join(next, 'koffi.node'));
  fs.chmodSync(path.join(next, 'koffi.node'), 0o644);
  if (present.some(({ name }) => name === 'server')) await buildPage(top, path.join(next, 'page'));
  if (present.some(({ name }) => name === 'cli')) {
    fs.writeFileSync(path.join(next, TRACE_PAGE), JSON.stringify(await buildTracePage(top)));
  }
  writeManifest(next);
  fs.rmSync(folder, { recursive: true, force: true });
  fs.renameSync(next, folder);
  return { metafiles, absent: entries.filter((entry) => !present.includes(entry)).map(({ source }) => source) };
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const top = path.resolve(import.meta.dirname, '..', '..');
  const { absent } = await bundle(top, path.join(top, 'dist'), ENTRIES);
  for (const source of absent) console.log(`left out, no such file yet: ${source}`);
}
