import assert from 'node:assert/strict';

import type { Browser, Page } from 'playwright-core';
import { formatLine, parseTrace } from '../../../machines/trace/format.ts';
import type { TraceLine } from '../../../machines/trace/format.ts';
import { traceOf } from '../../kit/trace-of.ts';
import { goldens } from '../../machines/scenarios/index.ts';
import { findBarriers, openWindow, startBrowser, WIDTHS } from '../../server/page/browser.ts';
import type { Window } from '../../server/page/browser.ts';
import { Keyboard } from '../../server/page/keyboard.ts';
import { oneCommand, pageFile, pageText } from './pages.ts';

/** Texts that end an element, open one, run, or turn the order of writing. */
const HOSTILE = [
  '</script><script>alert(1)</script>',
  '<img src=x onerror=alert(1)>',
  '{{script}}<!-- script -->',
  '"\'`${1}',
  '\u202Eevil\u0000',
  '__proto__',
];

/** A trace that no machine made: every text of it is hostile. */
function hostile(): string {
  const lines = HOSTILE.flatMap((text, index): TraceLine[] => {
    const after = { value: { [text]: text }, status: 'active' } as const;
    const common = { trace: 1, version: text, actor: text, actions: [text], after } as const;
    return [
      {
        ...common,
        seq: 3 * index,
        machine: text,
        event: { type: 'xstate.init', payload: { [text]: text } },
        before: null,
      },
      { ...common, seq: 3 * index + 1, machine: text, event: { type: text, payload: { text } }, before: after },
      { ...common, seq: 3 * index + 2, machine: 'daemon', event: { type: text, payload: {} }, before: after },
    ];
  });
  return lines.map(formatLine).join('');
}

/** A day of commands: thousands of actors, some of them at once. */
function long(lines: number): string {
  const golden = goldens['command']!.find(({ name }) => name === 'started-succeeded')!;
  const one = parseTrace(traceOf({ machine: 'command', actor: 'a', input: golden.input, events: golden.events }));
  const made: string[] = [];
  for (let seq = 0; seq < lines; seq += 1) {
    const line = one[seq % one.length]!;
    made.push(formatLine({ ...line, seq, actor: `cmd-${Math.floor(seq / one.length)}` }));
  }
  return made.join('');
}

async function looked<Value>(
  browser: Browser,
  trace: string,
  width: number,
  look: (window: Window, page: Page) => Promise<Value>,
  dark = false,
): Promise<Value> {
  const file = await pageFile(trace);
  const window = await openWindow(browser, width, { dark });
  try {
    const requests: string[] = [];
    window.page.on('request', (request) => requests.push(request.url()));
    await window.page.goto(file.url);
    const value = await look(window, window.page);
    assert.deepEqual([window.faults, requests], [[], [file.url]], 'nothing against the policy, nothing asked for');
    return value;
  } finally {
    await window.close();
    await file.remove();
  }
}

describe('the page of a trace', function () {
  this.timeout(120_000);
  let browser: Browser;

  before(async function () {
    browser = await startBrowser(this);
  });
  after(() => browser?.close());

  for (const width of WIDTHS) {
    it(`${width} px: no barrier, nothing wider than the window, no request, nothing against its policy, light and dark`, async () => {
      for (const dark of [false, true]) {
        const found = await looked(
          browser,
          oneCommand(),
          width,
          async (_, page) => {
            await page.keyboard.press('End');
            await page.getByText('What the line says').click();
            const isWider = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
            return [...(await findBarriers(page)), ...(isWider ? ['wider than the window'] : [])];
          },
          dark,
        );
        assert.deepEqual(found, []);
      }
    });
  }

  it('is walked by keys alone, in an order that follows the page, with a ring on whatever has the focus', async () => {
    await looked(browser, oneCommand(), 1280, async (_, page) => {
      const title = page.locator('#step-title');
      const count = parseTrace(oneCommand()).length;
      await page.keyboard.press('ArrowRight');
      await page.keyboard.press('ArrowRight');
      await page.keyboard.press('ArrowLeft');
      assert.match((await title.textContent()) ?? '', /^Line 2 of /);
      await page.keyboard.press('End');
      assert.match((await title.textContent()) ?? '', new RegExp(`^Line ${count} of ${count}`));
      await page.keyboard.press('Home');
      const keys = new Keyboard(page);
      const met = await keys.walkAll();
      assert.deepEqual(keys.blind, []);
      const places = ['Next', 'Last', 'Line', 'Actor', 'Timeline', 'What the line says', 'Fit to width', 'Diagram'].map(
        (name) => met.findIndex((one) => one.includes(name)),
      );
      assert.deepEqual(
        places,
        places.toSorted((a, b) => a - b),
        met.join(' | '),
      );
      assert.ok(!places.includes(-1), met.join(' | '));
      await page.locator('#lines').focus();
      await page.keyboard.press('ArrowDown');
      await page.keyboard.press('PageDown');
      assert.match((await title.textContent()) ?? '', /^Line 12 of /);
      await page.locator('#at').fill('5');
      await page.keyboard.press('Enter');
      assert.match((await title.textContent()) ?? '', /^Line 5 of /);
    });
  });

  it('lights where an actor is, where it was, and how it came; and says what happened and what holds', async () => {
    await looked(browser, oneCommand(), 1280, async (_, page) => {
      await page.locator('#actor').selectOption({ label: 'cmd-1 (command)' });
      await page.keyboard.press('Home');
      await page.keyboard.press('ArrowRight');
      await page.keyboard.press('ArrowRight');
      const lit = await page.evaluate(() =>
        ['now', 'been', 'way'].map((mark) =>
          [...document.querySelectorAll(`#machine-command .${mark}`)].map((one) =>
            one instanceof SVGElement ? (one.dataset['state'] ?? one.dataset['events'] ?? one.dataset['of']) : '',
          ),
        ),
      );
      assert.deepEqual(lit, [['accepted'], ['queued', 'leased'], ['leased', 'accepted', 'receipt.accepted']]);
      assert.match(
        await page.locator('#told').innerText(),
        /^receipt\.accepted came .*: it goes from leased to accepted\./,
      );
      assert.match(
        await page.locator('#holds').innerText(),
        /^accepted\n+[A-Z].*\n+May be asked for: server\.take-receipt/s,
      );
      assert.equal(await page.locator('#machine-daemon').isVisible(), false);
    });
  });

  it('hostile names, events, states and payloads stay text, with what a browser would hide written out', async () => {
    const text = await pageText(hostile());
    assert.equal(text.match(/<script/g)?.length, 2);
    assert.ok(!text.includes('\u202E') && !text.includes('<img'));
    await looked(browser, hostile(), 1280, async (_, page) => {
      for (let line = 0; line < HOSTILE.length * 3; line += 1) await page.keyboard.press('ArrowRight');
      const seen = await page.evaluate(
        () => [document.querySelectorAll('img').length, document.body.innerText] as const,
      );
      assert.equal(seen[0], 0);
      assert.ok(seen[1].includes('This program has no machine of that name') || seen[1].includes('no such state'));
      assert.ok(seen[1].includes('<img src=x onerror=alert(1)>') && seen[1].includes(String.raw`\u{202e}evil\x00`));
    });
  });

  it('names the line at which the machines of this program do otherwise', async () => {
    const other = oneCommand().replace('"value":"accepted"', '"value":"started"');
    await looked(browser, other, 1280, async (_, page) => {
      const summary = await page.locator('#summary').innerText();
      const [, line = ''] = /it does otherwise in 1 place, first at line (\d+)\.$/.exec(summary) ?? [];
      await page.locator('#at').fill(line);
      await page.keyboard.press('Enter');
      assert.match(await page.locator('#difference').innerText(), /leads to accepted, the trace has started/);
    });
  });

  it('20,000 lines open, are walked and are scrolled at once, with some dozens of rows in the document', async () => {
    const lines = 20_000;
    await looked(browser, long(lines), 1280, async (_, page) => {
      const spent = await page.evaluate(() => performance.getEntriesByType('navigation')[0]?.duration ?? 0);
      assert.ok(spent < 5_000, `${spent} ms`);
      const took = await page.evaluate(() => {
        const begin = performance.now();
        for (const key of ['End', 'ArrowLeft', 'Home', 'ArrowRight'])
          dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));
        return (performance.now() - begin) / 4;
      });
      assert.ok(took < 250, `${took} ms a step`);
      await page.locator('#lines').evaluate((list) => (list.scrollTop = list.scrollHeight / 2));
      await page.locator('#line-10000').waitFor();
      assert.ok((await page.locator('.row').count()) < 120);
    });
  });
});
