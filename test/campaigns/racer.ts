/*
 * A process that swaps a folder for a link to a folder outside, as fast as it can, against the workspace's walk. The same racer
 * against a walk that checks and then opens must escape, else it proves nothing.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import path from 'node:path';
import { Bench } from '../helpers/workspace/bench.ts';
import type { Campaign } from './campaign.ts';

const ROUND_MS = 5000;
/** Tries of the careless walk after each read of ours: its gap is microseconds wide. */
const CARELESS = 25;

/** `npm run campaign -- racer`: 12 rounds of five seconds. */
export const racer: Campaign = {
  name: 'racer',
  rounds: 12,
  async begin() {
    const bench = new Bench();
    bench.put({ 'dir/sub/file': 'inside', '../outside/sub/file': 'SECRET' });
    fs.mkdirSync(path.join(bench.folder, 'outside'), { recursive: true });
    fs.writeFileSync(path.join(bench.folder, 'outside', 'file'), 'SECRET');
    const script = path.resolve(import.meta.dirname, '../fixtures/swapping-racer.mjs');
    const swapping = spawn(process.execPath, [script, bench.at('dir/sub'), path.join(bench.folder, 'outside')], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    await once(swapping.stdout, 'data');
    return {
      round: () => race(bench),
      async end() {
        swapping.kill('SIGKILL');
        await once(swapping, 'exit');
        await bench.remove();
      },
    };
  },
};

async function race(bench: Bench): Promise<string> {
  const deadline = performance.now() + ROUND_MS;
  let reads = 0;
  let careless = 0;
  while (performance.now() < deadline) {
    const answer = await bench.ask('file.read', { path: 'dir/sub/file' });
    if ('content' in answer) {
      if (answer.content !== 'inside') throw new Error('the walk left the root');
      reads += 1;
    }
    if (JSON.stringify(answer).includes(bench.folder)) throw new Error('an answer names a host path');
    for (let one = 0; one < CARELESS; one += 1) if (escapes(bench.at('dir/sub/file'))) careless += 1;
  }
  if (reads === 0) throw new Error('no read succeeded: the race was none');
  if (careless === 0) throw new Error('the walk without openat2 never escaped: the race was none');
  return 'no escape; the walk that checks first escaped';
}

/** Checks that the folder is none but a folder, then opens the file: what every careful program does that has no openat2. */
function escapes(file: string): boolean {
  try {
    if (!fs.lstatSync(path.dirname(file)).isDirectory()) return false;
    return fs.readFileSync(file, 'utf8') === 'SECRET';
  } catch {
    // Between two swaps there is no such folder.
    return false;
  }
}
