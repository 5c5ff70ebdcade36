/*
 * `npm run trace`: writes test/traces/<machine>/<scenario>.jsonl anew from the scenarios and removes those that no scenario names.
 * The difference is reviewed like code.
 */
import { mkdir, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { traceOf } from '../../kit/trace-of.ts';
import { goldens } from './index.ts';

const folder = join(import.meta.dirname, '../../traces');

for (const [machine, scenarios] of Object.entries(goldens)) {
  await mkdir(join(folder, machine), { recursive: true });
  const names = new Set(scenarios.map(({ name }) => `${name}.jsonl`));
  const stale = (await readdir(join(folder, machine))).filter((name) => !names.has(name));
  for (const name of stale) await rm(join(folder, machine, name));
  for (const { name, input, events } of scenarios) {
    const file = join(folder, machine, `${name}.jsonl`);
    const text = traceOf({ machine, actor: machine, input, events });
    const before = await readFile(file, 'utf8').catch(() => '');
    if (text === before) continue;
    await writeFile(file, text);
    process.stdout.write(`wrote test/traces/${machine}/${name}.jsonl\n`);
  }
}
