import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

import { factsOf } from '../../../daemon/cli/trace-facts.ts';
import { pageOf } from '../../../daemon/cli/trace-view.ts';
import { buildTracePage } from '../../../helpers/build/trace-page.ts';
import { parseTrace } from '../../../machines/trace/format.ts';
import { replay } from '../../../machines/trace/replay.ts';
import { braid } from '../../fixtures/braid.ts';
import { goldens } from '../../machines/scenarios/index.ts';

const top = resolve(import.meta.dirname, '../../..');

/** The story of one command on both sides: the daemon takes it, the machine runs it, the control plane records it. */
export function oneCommand(): string {
  const of = (machine: string, name: string, actor: string) => {
    const golden = goldens[machine]!.find((one) => one.name === name)!;
    return { machine, actor, input: golden.input, events: golden.events };
  };
  const scenarios = [
    of('command', 'started-succeeded', 'cmd-1'),
    of('daemon', 'serves-a-command-and-stops', 'daemon'),
    of('execution', 'succeeded', 'command-cmd-1'),
  ];
  const turns = [0, 1, 1, 1, 1, 1, 0, 1, 2, 2, 2, 0, 1, 2, 2, 0, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 0, 0, 0, 0];
  return braid(scenarios, [...turns, ...Array.from({ length: 20 }, () => 1)]);
}

/** Text of the page of a trace. */
export async function pageText(trace: string): Promise<string> {
  return pageOf(await buildTracePage(top), factsOf(parseTrace(trace), replay(trace)));
}

/** Writes the page of a trace to a file; answers its address, and how it is removed. */
export async function pageFile(trace: string): Promise<{ readonly url: string; readonly remove: () => Promise<void> }> {
  const folder = await mkdtemp(join(tmpdir(), 'trace-page-'));
  const file = join(folder, 'trace.html');
  await writeFile(file, await pageText(trace));
  return { url: pathToFileURL(file).href, remove: () => rm(folder, { recursive: true }) };
}
