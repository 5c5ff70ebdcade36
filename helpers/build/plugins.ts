import fs from 'node:fs';
import path from 'node:path';

import type { Plugin } from 'esbuild';

/** koffi without its search for a binary: the one beside the bundle, whose hash the starter has checked. */
export const koffiBesideBundle: Plugin = {
  name: 'koffi beside the bundle',
  setup(build) {
    build.onResolve({ filter: /^koffi$/ }, () => ({ path: 'koffi', namespace: 'beside' }));
    build.onLoad({ filter: /.*/, namespace: 'beside' }, () => ({
      contents:
        "import { createRequire } from 'node:module';\nexport default createRequire(import.meta.url)('./koffi.node');\n",
      loader: 'js',
    }));
  },
};

function replaced(file: string, text: string, by: string): { contents: string; loader: 'js' } {
  const source = fs.readFileSync(file, 'utf8');
  if (!source.includes(text)) throw new Error(`${path.basename(file)} of piscina no longer contains: ${text}`);
  return { contents: source.replace(text, by), loader: 'js' };
}

/** Piscina starts the pool's bundle instead of its own file, and makes no code from text, which roles refuse. */
export function piscinaBesideBundle(top: string): Plugin {
  const inPackage = (file: string): string => path.join(top, 'node_modules', 'piscina', 'dist', file);
  return {
    name: 'piscina beside the bundle',
    setup(build) {
      // the package's exports hide the file that a thread starts with
      build.onResolve({ filter: /^piscina\/dist\/worker\.js$/ }, () => ({ path: inPackage('worker.js') }));
      build.onLoad({ filter: /piscina\/dist\/index\.js$/ }, ({ path: file }) =>
        replaced(file, "(0, node_path_1.resolve)(__dirname, 'worker.js')", "require.resolve('./workspace-worker.mjs')"),
      );
      build.onLoad({ filter: /piscina\/dist\/worker\.js$/ }, ({ path: file }) =>
        replaced(file, "new Function('specifier', 'return import(specifier)')", '((specifier) => import(specifier))'),
      );
    },
  };
}
