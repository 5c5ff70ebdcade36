/*
 * The installation that this tree builds, made when it is not there or older than the tree.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import path from 'node:path';

const TOP = path.resolve(import.meta.dirname, '..', '..');

/** Builds the programs into dist/ and answers its path. Rejects with what the builder said. */
export async function bundleHere(): Promise<string> {
  const dist = path.join(TOP, 'dist');
  const builder = spawn(process.execPath, ['--import', 'tsx', path.join(TOP, 'helpers', 'build', 'bundle.ts')], {
    cwd: TOP,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const [code] = await once(builder, 'exit');
  if (code !== 0 || !fs.existsSync(path.join(dist, 'manifest.json')))
    throw new Error('the programs could not be built');
  return dist;
}
