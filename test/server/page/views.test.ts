import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';

import type { Browser } from 'playwright-core';
import { addresses } from '../../../server/page/router.tsx';
import { findBarriers, startBrowser, WIDTHS } from './browser.ts';
import { Keyboard } from './keyboard.ts';
import { openSignedIn, show } from './signed-in.ts';
import { furnish } from './tour.ts';
import type { Tour } from './tour.ts';

describe('every view of the page', function () {
  this.timeout(120_000);
  let tour: Tour;
  let browser: Browser;

  before(async function () {
    browser = await startBrowser(this);
    tour = await furnish();
  });
  after(async () => {
    await browser?.close();
    await tour?.stop();
  });

  it('is on the tour', () => {
    assert.equal(Object.keys(tour.views).length, Object.keys(addresses).length + 1);
  });

  for (const width of WIDTHS) {
    it(`${width} px: no barrier, nothing wider than the window, nothing against the policy for scripts and styles, light and dark`, async () => {
      const found: string[] = [];
      for (const dark of [false, true]) {
        const window = await openSignedIn(browser, tour.world.origin, width, { dark });
        for (const [name, address] of Object.entries(tour.views)) {
          await show(window, tour.world.origin + address);
          for (const barrier of await findBarriers(window.page)) found.push(`${name}: ${barrier}`);
          const wider = await window.page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
          if (wider) found.push(`${name}: wider than the window`);
        }
        found.push(...window.faults);
        await window.close();
      }
      assert.deepEqual(found, []);
    });

    it(`${width} px: everything that Tab meets has a ring and is in sight, the way past the navigation too`, async () => {
      const window = await openSignedIn(browser, tour.world.origin, width);
      const keys = new Keyboard(window.page);
      for (const [name, address] of Object.entries(tour.views)) {
        await show(window, tour.world.origin + address);
        // A view about one field begins there; from the top of the document the way past the navigation comes first.
        await window.page.evaluate(
          () => document.activeElement instanceof HTMLElement && document.activeElement.blur(),
        );
        await window.page.locator('body').press('Home');
        const met = await keys.walkAll();
        assert.ok(met.includes('Skip to the content'), `${name}: ${met.join(' | ')}`);
      }
      assert.deepEqual(keys.blind, []);
      await window.close();
    });
  }

  it('a view shows its own heading, title and place in the navigation', async () => {
    const window = await openSignedIn(browser, tour.world.origin, 1280);
    for (const [name, address] of Object.entries(tour.views)) {
      await show(window, tour.world.origin + address);
      assert.equal(await window.page.locator('h1').count(), 1, name);
      const heading = await window.page.locator('h1').innerText();
      await window.page.waitForFunction((text) => document.title === `${text} · Nessie`, heading);
      if (name !== 'account' && name !== 'unknown') {
        assert.equal(await window.page.locator('.nav a[aria-current=page]').count(), 1, name);
      }
    }
    await window.close();
  });

  it('the skip link leads past the navigation into the view', async () => {
    const window = await openSignedIn(browser, tour.world.origin, 1280);
    await show(window, `${tour.world.origin}/runs`);
    await window.page.keyboard.press('Tab');
    await window.page.keyboard.press('Enter');
    await window.page.keyboard.press('Tab');
    assert.equal((await new Keyboard(window.page).focused()).name, 'Launch a run');
    await window.close();
  });

  it('a project is made, and somebody becomes a member of it, without a barrier in the dialog', async () => {
    const window = await openSignedIn(browser, tour.world.origin, 390);
    const { page } = window;
    await show(window, `${tour.world.origin}/people`);
    // A name of its own each time: the world is the whole suite's, and one that is tried again has made a project already.
    const name = `Soundings ${randomBytes(4).toString('hex')}`;
    await page.getByLabel('Name of the new one').fill(name);
    await page.getByRole('button', { name: 'Make it' }).click();
    await page.getByText(`${name} is made.`).waitFor();
    await page.getByRole('button', { name: 'Memberships of Isla Grant' }).click();
    await page.getByLabel(`Project: ${name}`).selectOption('admin');
    await page.getByText('The memberships of Isla Grant are changed.').waitFor();
    assert.equal(await page.getByLabel(`Project: ${name}`).inputValue(), 'admin');
    assert.deepEqual(await findBarriers(page), []);
    assert.deepEqual(window.faults, []);
    await window.close();
  });

  it('another language is chosen and kept', async () => {
    const window = await openSignedIn(browser, tour.world.origin, 390);
    const { page } = window;
    await show(window, `${tour.world.origin}/account`);
    await page.getByLabel('Language').selectOption('de');
    await page.getByRole('heading', { level: 1, name: 'Konto' }).waitFor();
    assert.equal(await page.evaluate(() => document.documentElement.lang), 'de');
    await show(window, `${tour.world.origin}/machines/${tour.executor}`);
    await page.getByText('Der gekoppelte Schlüssel').waitFor();
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth > innerWidth), false);
    assert.deepEqual(await findBarriers(page), []);
    await window.close();
  });

  it('back and forward walk through the views', async () => {
    const window = await openSignedIn(browser, tour.world.origin, 1280);
    await window.page.getByRole('link', { name: 'Runs' }).click();
    await window.page.getByRole('heading', { level: 1, name: 'Runs' }).waitFor();
    await window.page.goBack();
    await window.page.getByRole('heading', { level: 1, name: 'Machines' }).waitFor();
    await window.page.goForward();
    await window.page.getByRole('heading', { level: 1, name: 'Runs' }).waitFor();
    await window.close();
  });

  it('nothing on screen moves when an answer is renewed or a sentence is said', async () => {
    const window = await openSignedIn(browser, tour.world.origin, 1280);
    await show(window, `${tour.world.origin}/machines/${tour.executor}/agents`);
    await window.page.evaluate(() => {
      const shifts: string[] = [];
      Reflect.set(globalThis, 'shifts', shifts);
      new PerformanceObserver((list) => {
        for (const entry of list.getEntries()) {
          const sources: unknown = Reflect.get(entry, 'sources');
          for (const source of Array.isArray(sources) ? sources : []) {
            const node: unknown = Reflect.get(source, 'node');
            if (node instanceof Node) shifts.push(`${node.nodeName} ${node.textContent ?? ''}`);
          }
        }
      }).observe({ type: 'layout-shift', buffered: false });
    });
    const toggle = window.page.getByRole('switch', { name: 'Access of Night shift' });
    for (const on of ['true', 'false']) {
      await toggle.click();
      await window.page.locator(`[role=switch][aria-label="Access of Night shift"][aria-checked=${on}]`).waitFor();
    }
    assert.deepEqual(await window.page.evaluate(() => Reflect.get(globalThis, 'shifts')), []);
    await window.close();
  });
});
