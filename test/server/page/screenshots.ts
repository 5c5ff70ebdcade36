/*
 * Pictures of the page for the documentation, taken of the real page, server and machine. Started by helpers/build/screenshots.ts with
 * the folder to write to.
 */
import fs from 'node:fs';
import path from 'node:path';

import { launchBrowser, openWindow } from './browser.ts';
import type { Window } from './browser.ts';
import { openSignedIn, show } from './signed-in.ts';
import { furnish } from './tour.ts';

const folder = process.argv[2];
if (folder === undefined) throw new RangeError('usage: screenshots.ts FOLDER');
fs.mkdirSync(folder, { recursive: true });

const tour = await furnish();
const browser = await launchBrowser();
const { origin } = tour.world;

async function take({ page }: Window, name: string): Promise<void> {
  await page.mouse.move(0, 0);
  await page.screenshot({ path: path.join(folder ?? '', `${name}.png`), animations: 'disabled', caret: 'hide' });
}

/** What a person sees on the way from an empty server to a promoted change. */
async function takeWide(dark: boolean): Promise<void> {
  const suffix = dark ? '-dark' : '';
  const window = await openSignedIn(browser, origin, 1280, { dark });
  const { page } = window;
  await take(window, `machines${suffix}`);
  for (const name of dark ? [] : (['machine', 'machine-agents', 'pairing', 'run'] as const)) {
    await show(window, origin + (tour.views[name] ?? ''));
    await take(window, `${name}${suffix}`);
  }
  await show(window, origin + (tour.views['review'] ?? ''));
  await page.getByRole('button', { name: 'Show what changed' }).click();
  await page.getByRole('button', { name: 'Show the difference of src/soundings.ts' }).click();
  await page.getByText('Both sides were hashed').waitFor();
  await page.locator('#changes').scrollIntoViewIfNeeded();
  await page.evaluate(() => document.querySelector('.changes')?.scrollIntoView({ block: 'center' }));
  await take(window, `review${suffix}`);
  await window.close();
}

async function takeNarrow(): Promise<void> {
  const window = await openSignedIn(browser, origin, 390);
  const { page } = window;
  await take(window, 'machines-narrow');
  for (const name of ['run', 'review'] as const) {
    await show(window, origin + (tour.views[name] ?? ''));
    await take(window, `${name}-narrow`);
  }
  await show(window, origin + (tour.views['machine'] ?? ''));
  await page.getByRole('button', { name: 'Computer' }).click();
  await take(window, 'computer-menu-narrow');
  await window.close();
}

try {
  const signIn = await openWindow(browser, 1280);
  await signIn.page.goto(origin);
  await signIn.page.getByRole('heading', { level: 1 }).waitFor();
  await take(signIn, 'sign-in');
  await signIn.close();
  await takeWide(false);
  await takeWide(true);
  await takeNarrow();
} finally {
  await browser.close();
  await tour.stop();
}
