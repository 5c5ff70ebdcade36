/*
 * `npm run demo`: the whole story, narrated, no person needed. `--json` prints one line of JSON a step and one at the end.
 */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { bundleHere } from './installation.ts';
import { Story } from './story.ts';

const json = process.argv.includes('--json');

async function main(): Promise<number> {
  const dist = await bundleHere();
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'nessie-demo-'));
  // Under root the roles have uids of their own, which must be able to reach the project.
  fs.chmodSync(folder, 0o755);
  process.env['NESSIE_ALLOW_LOOPBACK_HTTP'] = '1';
  const story = new Story(dist, folder);
  let failed: unknown;
  let steps = 0;
  try {
    for (const step of story.steps) {
      const started = performance.now();
      const detail = await step.act();
      steps += 1;
      tell({ step: step.name, ok: true, ms: Math.round(performance.now() - started) }, step.says, detail, steps === 1);
    }
  } catch (error) {
    failed = error;
    tell(
      { step: story.steps[steps]?.name ?? '', ok: false, ms: 0 },
      story.steps[steps]?.says ?? '',
      error instanceof Error ? error.message : 'failed',
      steps === 0,
    );
  }
  await story.end();
  if (json) console.log(JSON.stringify({ demo: failed === undefined ? 'passed' : 'failed', steps }));
  else
    console.log(
      failed === undefined
        ? `\nAll ${steps} steps hold.`
        : `\nThe story stopped at step ${steps + 1}; its logs are kept in ${folder}`,
    );
  if (failed === undefined) fs.rmSync(folder, { recursive: true, force: true });
  return failed === undefined ? 0 : 1;
}

function tell(line: { step: string; ok: boolean; ms: number }, says: string, detail: string, first: boolean): void {
  if (json) console.log(JSON.stringify(first ? { ...line, node: process.version } : line));
  else console.log(`${line.ok ? '✓' : '✗'} ${says}\n    ${detail} (${line.ms} ms)`);
  if (json && !line.ok) console.error(detail);
}

process.exitCode = await main();
