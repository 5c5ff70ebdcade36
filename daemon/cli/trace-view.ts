/*
 * `trace view`: a trace as one page that needs nothing else. The page's parts were built with the product; here they are put
 * together with the facts of one trace, and the policy names the digest of the one script and the one style.
 */
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { TRACE_PAGE } from '../../helpers/runtime/installation.ts';
import { replay } from '../../machines/trace/replay.ts';
import type { Facts, PageParts } from '../trace-page/facts.ts';
import { CliFailure } from './failure.ts';
import { installationFolder } from './supervised.ts';
import { counted, say } from './terminal.ts';
import type { Terminal } from './terminal.ts';
import { factsOf } from './trace-facts.ts';
import { readTraceText, writeNew } from './trace-files.ts';

/** Writes the page of a trace to a new file, or to standard output for `-`. Throws CliFailure. */
export function viewTrace(terminal: Terminal, file: string, output: string): void {
  const { text, lines } = readTraceText(file);
  if (lines.length === 0) throw new CliFailure('usage', 'the trace is empty: there is nothing to look at');
  const page = pageOf(readParts(), factsOf(lines, replay(text)));
  if (output === '-') return void terminal.out.write(page);
  writeNew(output, page);
  say(terminal, `${counted(lines.length, 'line')} written as a page; open it in a browser`);
}

/** The page: markup with everything in its place. Pure: equal facts give equal bytes. */
export function pageOf({ markup, style, script, diagrams }: PageParts, facts: Facts): string {
  const policy = [
    "default-src 'none'",
    `style-src '${digestOf(style)}'`,
    `script-src '${digestOf(script)}'`,
    "base-uri 'none'",
    "form-action 'none'",
  ].join('; ');
  // No `<` of a trace stands in the page, so that nothing in it can end the element that holds it.
  const data = JSON.stringify(facts).replaceAll('<', String.raw`\u003c`);
  const parts: { readonly [place: string]: string } = {
    style: `<style>${style}</style>`,
    script: `<script>${script}</script>`,
    diagrams: facts.machines.map(({ id }) => diagrams[id] ?? '').join(''),
    facts: `<script type="application/json" id="trace">${data}</script>`,
  };
  return markup.replace('{{policy}}', policy).replaceAll(/<!-- (\w+) -->/g, (_, place: string) => parts[place] ?? '');
}

function digestOf(text: string): string {
  return `sha256-${createHash('sha256').update(text, 'utf8').digest('base64')}`;
}

function readParts(): PageParts {
  try {
    // Written by the build of this very version; the manifest of the installation holds its digest.
    return JSON.parse(fs.readFileSync(path.join(installationFolder(), TRACE_PAGE), 'utf8')) as PageParts;
  } catch (cause) {
    if (cause instanceof CliFailure) throw cause;
    throw new CliFailure('configuration', 'the page of `trace view` is not built; run `npm run build`', { cause });
  }
}
