import type { Browser } from 'playwright-core';
import { openWindow } from './browser.ts';
import type { Window } from './browser.ts';
import { OWNER } from './world.ts';

/** Opens a window in which the owner of a world is signed in. */
export async function openSignedIn(
  browser: Browser,
  origin: string,
  width: number,
  more: { readonly dark?: boolean; readonly height?: number } = {},
): Promise<Window> {
  const window = await openWindow(browser, width, more);
  const { page } = window;
  await page.goto(origin);
  await page.getByLabel('Login name').fill(OWNER.login);
  await page.getByLabel('Password').fill(OWNER.password);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('heading', { level: 1, name: 'Machines' }).waitFor();
  return window;
}

/** Goes to an address and waits until everything that was asked for is there. */
export async function show({ page }: Window, address: string): Promise<void> {
  await page.goto(address);
  await page.locator('h1').waitFor();
  await page.waitForFunction(() => document.querySelector('.asking') === null);
}
