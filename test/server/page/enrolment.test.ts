import assert from 'node:assert/strict';

import type { Browser } from 'playwright-core';
import { findBarriers, startBrowser } from './browser.ts';
import { Machine } from './machine.ts';
import { openSignedIn, show } from './signed-in.ts';
import { World } from './world.ts';

describe('enrolling a machine that nobody sits at', function () {
  this.timeout(60_000);
  let browser: Browser;
  let world: World;
  let machine: Machine;

  before(async function () {
    browser = await startBrowser(this);
    world = await World.start();
    await world.setUp();
    machine = await Machine.start(world, 'rack-4', { 'a.txt': 'a' });
  });
  after(async () => {
    await browser?.close();
    await machine?.stop();
    await world?.stop();
  });

  it('the command is shown once; the fingerprint that the machine prints must be compared before anything counts', async () => {
    const window = await openSignedIn(browser, world.origin, 1280);
    const { page } = window;
    await show(window, `${world.origin}/machines/enrol`);
    await page.getByLabel('Label').fill('Rack 4');
    await page.getByText('Project', { exact: true }).click();
    await page.getByRole('combobox', { name: 'Project' }).waitFor();
    await page.getByText('Organisation', { exact: true }).click();
    await page.getByRole('button', { name: 'Make the command' }).click();
    const command = await page.getByRole('group', { name: 'Command for the machine', exact: true }).innerText();
    const [, request = '', challenge = ''] = /--request (\S+) --challenge (\S+)/.exec(command) ?? [];
    assert.deepEqual(await findBarriers(page), []);
    await page.getByRole('link', { name: 'The command has run' }).click();
    await page.getByText('Waiting for the machine').waitFor();
    await machine.enrol(request, Buffer.from(challenge, 'base64url'));
    await page.getByText('Compare the fingerprint').waitFor();
    const { fingerprint } = await machine.pairing('offered');
    await page.getByRole('img', { name: fingerprint.match(/.{4}/g)?.join(' ') ?? '' }).waitFor();
    const confirm = page.getByRole('button', { name: 'Confirm this machine' });
    assert.equal(await confirm.isDisabled(), true);
    await page.getByLabel('All groups are the same').check();
    await confirm.click();
    await page.getByText('Rack 4 is paired').waitFor();
    await page.getByRole('link', { name: 'Review its description' }).waitFor();
    assert.deepEqual(window.faults, []);
    await window.close();
  });
});
