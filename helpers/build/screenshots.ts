/*
 * `npx tsx helpers/build/screenshots.ts`: pictures in docs/images, of the page with a real server and machine, and of the
 * page of a trace, taken by a browser. Without Chromium it says so and leaves the pictures as they are.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import path from 'node:path';

const CHROMIUM = '/usr/bin/chromium';
const top = path.resolve(import.meta.dirname, '..', '..');

/** Programs of test/fixtures, each with the pictures that it takes. */
const PROGRAMS = ['page-screenshots.ts', 'trace-screenshot.ts'];

if (fs.existsSync(CHROMIUM)) {
  for (const program of PROGRAMS) {
    const script = path.join(top, 'test', 'fixtures', program);
    const child = spawn(process.execPath, ['--import', 'tsx', script, path.join(top, 'docs', 'images')], {
      cwd: top,
      stdio: ['ignore', 'inherit', 'inherit'],
    });
    const [code] = await once(child, 'exit');
    if (code !== 0) process.exitCode = 1;
  }
} else {
  process.stdout.write('pictures of the page are left as they are: Chromium is missing (apt-get install chromium)\n');
}
