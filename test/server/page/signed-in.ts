import type { Browser, BrowserContext } from 'playwright-core';
import { openWindow } from './browser.ts';
import type { Window } from './browser.ts';
import { OWNER } from './world.ts';

type Cookies = Awaited<ReturnType<BrowserContext['cookies']>>;

/** Sessions by server: a login name gets ten tries in ten minutes, and a window more needs none. */
const sessions = new Map<string, Cookies>();

/** Opens a window in which the owner of a world is signed in. */
export async function openSignedIn(
  browser: Browser,
  origin: string,
  width: number,
  more: { readonly dark?: boolean; readonly height?: number } = {},
): Promise<Window> {
  const window = await openWindow(browser, width, more);
  const { page, context } = window;
  const kept = sessions.get(origin);
  if (kept !== undefined) await context.addCookies(kept);
  await page.goto(origin);
  if (kept === undefined) {
    await page.getByLabel('Login name').fill(OWNER.login);
    await page.getByLabel('Password').fill(OWNER.password);
    await page.getByRole('button', { name: 'Sign in' }).click();
  }
  await page.getByRole('heading', { level: 1, name: 'Machines' }).waitFor();
  if (kept === undefined) sessions.set(origin, await context.cookies());
  return window;
}

/** Goes to an address and waits until everything that was asked for is there. */
export async function show({ page }: Window, address: string): Promise<void> {
  await page.goto(address);
  await page.locator('h1').waitFor();
  await page.waitForFunction(() => document.querySelector('.asking') === null);
}
