import assert from 'node:assert/strict';

import type { Browser } from 'playwright-core';
import { stopChild, until } from '../../../daemon/demo/children.ts';
import { findBarriers, openWindow, startBrowser } from './browser.ts';
import type { Window } from './browser.ts';
import { openSignedIn, show } from './signed-in.ts';
import { OWNER, World } from './world.ts';

describe('coming in and being out', function () {
  this.timeout(60_000);
  let browser: Browser;
  let world: World;
  const windows: Window[] = [];
  const open = async (width = 1280): Promise<Window> => {
    const window = await openWindow(browser, width);
    windows.push(window);
    return window;
  };

  before(async function () {
    browser = await startBrowser(this);
    world = await World.start();
  });
  after(async () => {
    await browser?.close();
    await world?.stop();
  });
  afterEach(async () => {
    for (const window of windows.splice(0)) {
      assert.deepEqual(window.faults, []);
      await window.close();
    }
  });

  it('without the one-time link nobody sets anything up, and the page says where it is', async () => {
    const { page } = await open(390);
    await page.goto(world.origin);
    await page.getByText('Nobody owns this server yet.').waitFor();
    assert.equal(await page.locator('input').count(), 0);
    assert.deepEqual(await findBarriers(page), []);
  });

  it('a password that is too short is refused before it travels, and an invented link by the server', async () => {
    const { page } = await open();
    await page.goto(`${world.origin}/#setup=${'A'.repeat(43)}`);
    for (const [label, text] of Object.entries({
      'Your name': 'Eve',
      'Login name': 'eve',
      Organisation: 'Loch',
      Team: 'T',
      Project: 'P',
    })) {
      await page.getByLabel(label, { exact: true }).fill(text);
    }
    await page.getByLabel('Password').fill('short');
    await page.getByRole('button', { name: 'Set up and sign in' }).click();
    assert.equal(await page.getByRole('alert').count(), 0);
    await page.getByLabel('Password').fill(OWNER.password);
    await page.getByRole('button', { name: 'Set up and sign in' }).click();
    await page.getByRole('alert').waitFor();
    assert.equal(await page.getByRole('heading', { level: 1 }).innerText(), 'Set up this server');
  });

  it('a wrong password and an unknown name get the same sentence', async () => {
    await world.setUp();
    const sentences: string[] = [];
    for (const login of [OWNER.login, 'nobody']) {
      const { page } = await open();
      await page.goto(world.origin);
      await page.getByLabel('Login name').fill(login);
      await page.getByLabel('Password').fill('not the password at all');
      await page.getByRole('button', { name: 'Sign in' }).click();
      sentences.push(await page.getByRole('alert').innerText());
    }
    assert.equal(sentences[0], sentences[1]);
  });

  it('a set-up link that is used up leads to signing in', async () => {
    const { page } = await open();
    await page.goto(world.setUpAddress);
    await page.getByText('This server is set up already.').waitFor();
  });

  it('a password can be shown, and is hidden at first', async () => {
    const { page } = await open();
    await page.goto(world.origin);
    const field = page.getByLabel('Password');
    assert.equal(await field.getAttribute('type'), 'password');
    await page.getByRole('button', { name: 'Show' }).click();
    assert.equal(await field.getAttribute('type'), 'text');
  });

  it('an address deep in the page is shown after signing in, and signing out ends the session on the server', async () => {
    const window = await open();
    const { page, context } = window;
    await page.goto(`${world.origin}/agents`);
    await page.getByLabel('Login name').fill(OWNER.login);
    await page.getByLabel('Password').fill(OWNER.password);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('heading', { level: 1, name: 'Agents' }).waitFor();
    const cookies = await context.cookies();
    assert.ok(cookies.length === 1 && cookies.every(({ httpOnly, sameSite }) => httpOnly && sameSite === 'Strict'));
    assert.equal(await page.evaluate(() => document.cookie), '');
    await page.getByRole('link', { name: OWNER.name }).click();
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByRole('heading', { level: 1, name: 'Sign in' }).waitFor();
    await context.addCookies(cookies);
    await page.reload();
    await page.getByRole('heading', { level: 1, name: 'Sign in' }).waitFor();
  });

  it('a session that ended elsewhere leads back to signing in at the next thing that is asked', async () => {
    const window = await openSignedIn(browser, world.origin, 1280);
    windows.push(window);
    await window.context.clearCookies();
    // The page asks for something by itself now and then: where that comes first there is no link any more.
    const agents = window.page.getByRole('link', { name: 'Agents' });
    await agents.click({ timeout: 5000 }).catch(() => undefined);
    await window.page.getByRole('heading', { level: 1, name: 'Sign in' }).waitFor();
  });

  it('a name that looks like code is a name: nothing of it is taken as an element', async () => {
    const window = await openSignedIn(browser, world.origin, 1280);
    windows.push(window);
    const { page } = window;
    await show(window, `${world.origin}/agents`);
    const name = '<img src=x onerror=alert(1)>{name}&lt;';
    await page.getByLabel('Name of the agent').fill(name);
    await page.getByRole('button', { name: 'Make an agent' }).click();
    await page.getByRole('heading', { level: 1, name }).waitFor();
    assert.equal(await page.locator('main img').count(), 0);
    assert.equal(await page.title(), `${name} · Nessie`);
  });

  it('the policy for scripts and styles really holds: what a page must not do fails in this one', async () => {
    const { page, faults } = await open();
    await page.goto(world.origin);
    await page.locator('h1').waitFor();
    const outcome: readonly string[] = await page.evaluate(`(async () => {
      const tries = {
        'text as an element': () => { document.body.innerHTML = '<b>x</b>'; },
        'a policy of its own': () => trustedTypes.createPolicy('own', {}),
        'a script of another host': () => { document.createElement('script').src = 'https://example.org/x.js'; },
        'text as a worker': () => new Worker('data:text/javascript,1'),
      };
      const outcome = Object.entries(tries).map(([what, attempt]) => {
        try { attempt(); return what + ': possible'; } catch { return what + ': refused'; }
      });
      const foreign = await fetch('https://example.org/').then(() => 'possible', () => 'refused');
      return [...outcome, 'another host: ' + foreign];
    })()`);
    assert.equal(outcome.length, 5);
    assert.deepEqual(
      outcome.filter((line) => !line.endsWith('refused')),
      [],
    );
    await until('a report of the policy', 5000, () => faults.some((fault) => fault.startsWith('policy:')));
    faults.splice(0);
  });

  it('a server that is gone is said to be gone, and what is on screen stays', async () => {
    const window = await openSignedIn(browser, world.origin, 1280);
    windows.push(window);
    await stopChild(world.server.process);
    await window.page.getByText('No live connection to the server.').waitFor();
    await window.page.getByRole('heading', { level: 1, name: 'Machines' }).waitFor();
    await window.page.getByRole('link', { name: 'Runs' }).click();
    await window.page.getByText('The server does not answer.').waitFor();
    assert.deepEqual(await findBarriers(window.page), []);
  });
});
