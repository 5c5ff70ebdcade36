import fs from 'node:fs';
import { createRequire } from 'node:module';

import { chromium } from 'playwright-core';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { skipBecause } from '../../skip.ts';

const CHROMIUM = '/usr/bin/chromium';
const FLAGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

/** Widths at which every view must work, in CSS pixels. */
export const WIDTHS = [390, 1280] as const;

/** Starts Chromium; the running suite is skipped where there is none. */
export async function startBrowser(context: Mocha.Context): Promise<Browser> {
  if (!fs.existsSync(CHROMIUM)) skipBecause(context, 'Debian’s chromium: apt-get install chromium');
  return launchBrowser();
}

/** Starts Chromium. Rejects where there is none. */
export function launchBrowser(): Promise<Browser> {
  return chromium.launch({ executablePath: CHROMIUM, args: FLAGS });
}

/** One window with what went wrong in it. */
export interface Window {
  readonly page: Page;
  readonly context: BrowserContext;
  /** Violations of the policy for scripts and styles, errors of the page, and what it wrote as an error. */
  readonly faults: string[];
  close(): Promise<void>;
}

/** Opens a window of one width with a fresh profile. */
export async function openWindow(
  browser: Browser,
  width: number,
  { dark = false, height = width < 600 ? 844 : 860 }: { readonly dark?: boolean; readonly height?: number } = {},
): Promise<Window> {
  const context = await browser.newContext({
    viewport: { width, height },
    colorScheme: dark ? 'dark' : 'light',
    reducedMotion: 'reduce',
    locale: 'en-GB',
    timezoneId: 'UTC',
    hasTouch: false,
  });
  const page = await context.newPage();
  const faults: string[] = [];
  await page.exposeFunction('reportViolation', (text: string) => faults.push(text));
  await page.addInitScript(() => {
    document.addEventListener('securitypolicyviolation', (event) => {
      const report: unknown = Reflect.get(globalThis, 'reportViolation');
      if (typeof report === 'function')
        report(`policy: ${event.violatedDirective} ${event.blockedURI} ${event.sample}`);
    });
  });
  page.on('pageerror', (error) => faults.push(`page: ${error.message}`));
  page.on('console', (message) => {
    // A refused call is written by the browser itself; the page shows it as a sentence.
    if (message.type() === 'error' && !message.text().startsWith('Failed to load resource'))
      faults.push(message.text());
  });
  return { page, context, faults, close: () => context.close() };
}

const axeSource = fs.readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** Findings of axe-core on what is shown: one line each. Runs outside the page's own policy, as an inspector does. */
export async function findBarriers(page: Page): Promise<readonly string[]> {
  const session = await page.context().newCDPSession(page);
  try {
    await session.send('Page.setBypassCSP', { enabled: true });
    await session.send('Runtime.evaluate', { expression: axeSource });
    const { result } = await session.send('Runtime.evaluate', {
      expression: `axe.run(document, {
        runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'],
      }).then(({ violations }) => violations.flatMap(({ id, nodes }) =>
        nodes.map(({ target, failureSummary }) => id + ' ' + target.join(' ') + ' ' + failureSummary.replaceAll('\\n', ' '))))`,
      awaitPromise: true,
      returnByValue: true,
    });
    // axe answers a list of violations, which the expression above turns into lines.
    return result.value as string[];
  } finally {
    await session.detach();
  }
}
