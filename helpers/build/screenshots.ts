/*
 * `npx tsx helpers/build/screenshots.ts`: pictures of the page in docs/images, taken of the real page, server and machine by a browser. Without
 * Chromium it says so and leaves the pictures as they are.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import path from 'node:path';

const CHROMIUM = '/usr/bin/chromium';
const top = path.resolve(import.meta.dirname, '..', '..');

if (fs.existsSync(CHROMIUM)) {
  const script = path.join(top, 'test', 'fixtures', 'page-screenshots.ts');
  const child = spawn(process.execPath, ['--import', 'tsx', script, path.join(top, 'docs', 'images')], {
    cwd: top,
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  const [code] = await once(child, 'exit');
  process.exitCode = code === 0 ? 0 : 1;
} else {
  process.stdout.write('pictures of the page are left as they are: Chromium is missing (apt-get install chromium)\n');
}
