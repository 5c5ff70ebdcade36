/*
 * The page of `trace view` as parts that the command line puts together: markup, style, script, and the diagram of each machine as it
 * lies in docs/machines/. Two builds of one tree give equal bytes.
 */
import fs from 'node:fs';
import path from 'node:path';

import { build } from 'esbuild';

import type { PageParts } from '../../daemon/trace-page/facts.ts';
import { traced } from '../../machines/registry.ts';
import { STYLE } from './diagram/svg.ts';

const SOURCE = 'daemon/trace-page';

/** Builds the parts from the tree at `top`. */
export async function buildTracePage(top: string): Promise<PageParts> {
  const { outputFiles } = await build({
    absWorkingDir: top,
    entryPoints: { main: `${SOURCE}/main.ts`, page: `${SOURCE}/page.css` },
    outdir: path.join(top, 'dist'),
    bundle: true,
    minify: true,
    write: false,
    platform: 'browser',
    format: 'iife',
    target: ['es2022', 'chrome120', 'firefox120', 'safari17'],
    charset: 'utf8',
    legalComments: 'none',
    logLevel: 'error',
  });
  const textOf = (ending: string): string => outputFiles.find((file) => file.path.endsWith(ending))?.text.trim() ?? '';
  const style = `<style>${STYLE}</style>\n`;
  const diagrams = Object.keys(traced).map((id) => {
    const svg = fs.readFileSync(path.join(top, 'docs/machines', `${id}.svg`), 'utf8');
    return [id, svg.replace(style, '')] as const;
  });
  return {
    markup: fs.readFileSync(path.join(top, SOURCE, 'page.html'), 'utf8'),
    style: `${STYLE}\n${textOf('.css')}`,
    script: textOf('.js'),
    diagrams: Object.fromEntries(diagrams),
  };
}
