import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { bundle, ENTRIES } from '../../helpers/build/bundle.ts';

const TOP = path.resolve(import.meta.dirname, '..', '..');

let built: Promise<string> | undefined;

/** Every program of an executor and a control plane, built once for all tests of this process; answers their folder. */
export function everyProgram(): Promise<string> {
  built ??= build();
  return built;
}

async function build(): Promise<string> {
  const parent = fs.mkdtempSync(path.join(os.tmpdir(), 'faults-programs-'));
  // Rows of an executor under root have uids of their own and read their bundles.
  fs.chmodSync(parent, 0o755);
  process.once('exit', () => fs.rmSync(parent, { recursive: true, force: true }));
  // The control plane loads its packages from beside its installation.
  fs.symlinkSync(path.join(TOP, 'node_modules'), path.join(parent, 'node_modules'));
  const dist = path.join(parent, 'dist');
  await bundle(TOP, dist, ENTRIES);
  return dist;
}
