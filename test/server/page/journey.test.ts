/*
 * Two people in two browsers, one at 1280 and one at 390 pixels, keyboards only; the real control plane and a real machine. From an
 * empty server to a promoted change in a real folder, and to a machine that nobody can use any more.
 */
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';

import type { Browser } from 'playwright-core';
import { Agent } from '../../../daemon/demo/agent.ts';
import { until } from '../../../daemon/demo/children.ts';
import { findBarriers, openWindow, startBrowser } from './browser.ts';
import type { Window } from './browser.ts';
import { Keyboard } from './keyboard.ts';
import { Machine } from './machine.ts';
import { FILES } from './tour.ts';
import { OWNER, World } from './world.ts';

const ISLA = 'another four unrelated words';

/** A person and their browser. */
interface Somebody {
  readonly window: Window;
  readonly keys: Keyboard;
}

const heading = ({ window }: Somebody, name: string | RegExp) =>
  window.page.getByRole('heading', { level: 1, name }).waitFor();
const text = ({ window }: Somebody, wanted: string | RegExp) => window.page.getByText(wanted).first().waitFor();
const copied = ({ window }: Somebody, label: string) =>
  window.page.getByRole('group', { name: label, exact: true }).innerText();

describe('two people with keyboards alone', function () {
  this.timeout(120_000);
  let world: World;
  let browser: Browser;
  let machine: Machine;
  let ness: Somebody;
  let isla: Somebody;
  let agent: Agent;

  before(async function () {
    browser = await startBrowser(this);
    world = await World.start();
    machine = await Machine.start(world, 'workshop-desk', FILES);
    const open = async (width: number) => {
      const window = await openWindow(browser, width);
      return { window, keys: new Keyboard(window.page) };
    };
    ness = await open(1280);
    isla = await open(390);
  });
  after(async () => {
    await browser?.close();
    await agent?.close().catch(() => undefined);
    await machine?.stop();
    await world?.stop();
  });

  it('the first person opens the one-time link, which leaves the address, and becomes the owner', async () => {
    await ness.window.page.goto(world.setUpAddress);
    await heading(ness, 'Set up this server');
    assert.equal(new URL(ness.window.page.url()).hash, '');
    await ness.keys.fill('Your name', OWNER.name);
    await ness.keys.fill('Login name', OWNER.login);
    await ness.keys.fill('Password', OWNER.password);
    await ness.keys.fill('Organisation', OWNER.organisation);
    await ness.keys.fill('Team', OWNER.team);
    await ness.keys.fill('Project', OWNER.project);
    await ness.keys.press('Set up and sign in');
    await heading(ness, 'Machines');
    assert.equal((await ness.keys.focused()).name, 'Machines');
    await text(ness, 'No machine yet');
  });

  it('a second person is invited by a link that works once, signs in at 390 pixels and sets a password', async () => {
    await ness.keys.press('People');
    await heading(ness, 'People');
    await ness.keys.fill('Name', 'Isla Grant');
    await ness.keys.fill('Login name', 'isla');
    await ness.keys.press('Invite a person');
    await text(ness, 'Link for Isla Grant');
    const link = await copied(ness, 'One-time link');
    await isla.window.page.goto(link.trim());
    await heading(isla, 'Sign in');
    await isla.keys.press('Sign in');
    await heading(isla, 'Machines');
    await isla.keys.press(/Isla Grant$/);
    await heading(isla, 'Account');
    await isla.keys.fill('New password', ISLA);
    await isla.keys.press('Save');
    await text(isla, 'The password is set.');
  });

  it('the signed-in person enters the code, sees name, fingerprint, platform and expiry, and chooses label, scope and team', async () => {
    const code = await machine.offer();
    const offered = await machine.pairing('offered');
    await ness.keys.press('Machines');
    await ness.keys.press('Pair a machine');
    await heading(ness, 'Pair a machine');
    assert.match((await ness.keys.focused()).name, /^Code/);
    await ness.window.page.keyboard.type('1234');
    await ness.keys.key('Enter');
    await text(ness, 'A code has eight digits; 4 are there.');
    await ness.keys.key('Control+A');
    await ness.window.page.keyboard.type(`${code.slice(0, 4)} ${code.slice(4)}`);
    await ness.keys.key('Enter');
    await text(ness, 'Is this your machine?');
    const groups = offered.fingerprint.match(/.{4}/g)?.join(' ') ?? '';
    await ness.window.page.getByRole('img', { name: groups }).waitFor();
    for (const fact of ['workshop-desk', 'harbour-survey', 'x64', '9:']) await text(ness, fact);
    await ness.keys.fill('Label', 'Workshop desk');
    await ness.keys.press('The fingerprint is the same');
    await heading(ness, 'Pairing');
  });

  it('a claim on the page alone pairs nothing: the page sends the person to the machine, and follows what is said there', async () => {
    await text(ness, 'Now confirm at the machine');
    const { claim, commandKeyFingerprint } = await machine.pairing('claimed');
    assert.equal(claim.label, 'Workshop desk');
    assert.equal(claim.organisationName, OWNER.organisation);
    const groups = commandKeyFingerprint.match(/.{4}/g)?.join(' ') ?? '';
    await ness.window.page.getByRole('img', { name: groups }).waitFor();
    await machine.confirm();
    await text(ness, 'Workshop desk is paired');
  });

  it('N-086 the sentence of what a signature does not prove stands on the review and beside the mark on the machine; the review takes the password', async () => {
    await ness.keys.press('Review its description');
    await heading(ness, 'Review the description');
    await text(ness, 'That does not prove that the machine is not compromised.');
    await text(ness, 'Digest of the owner’s policy');
    await ness.keys.fill('Current password', 'not the password at all');
    await ness.keys.key('Enter');
    await text(ness, 'This is not your current password. Nothing was changed.');
    await ness.window.page.keyboard.type(OWNER.password);
    await ness.keys.key('Enter');
    await heading(ness, 'Workshop desk');
    await ness.window.page.locator('.title .state', { hasText: 'Online' }).waitFor();
    const mark = ness.window.page.locator('.verified', { hasText: 'Signature verified' });
    assert.match(await mark.innerText(), /does not prove that the machine is not compromised/);
    const everyMark = await ness.window.page.getByText('Signature verified').count();
    assert.equal(everyMark, await mark.count());
  });

  it('the owner shares the machine, and the other person sees it at once', async () => {
    await ness.keys.press('Sharing');
    await text(ness, 'only the people named here may use it');
    await isla.keys.press('Machines');
    await text(isla, 'No machine yet');
    await ness.keys.press('Add');
    await text(ness, 'Isla Grant may use this machine.');
    await text(isla, 'Workshop desk');
  });

  it('an agent is made, its token is shown once with settings for its client, and access is one switch', async () => {
    await isla.keys.press('Agents');
    await heading(isla, 'Agents');
    await isla.keys.fill('Name of the agent', 'Chart helper');
    await isla.keys.key('Enter');
    await heading(isla, 'Chart helper');
    await isla.keys.to('May open runs itself');
    await isla.keys.key('Space');
    await isla.keys.press('Issue a token');
    await text(isla, 'it is shown once and stored nowhere');
    const settings: { mcpServers: { nessie: { url: string; headers: { Authorization: string } } } } = JSON.parse(
      await copied(isla, 'Settings for an MCP client'),
    );
    const { url, headers } = settings.mcpServers.nessie;
    agent = new Agent(url, headers.Authorization.replace('Bearer ', ''));
    await ness.keys.to('Agents', { back: true });
    await ness.keys.key('Enter');
    await ness.window.page.getByRole('switch').waitFor();
    await ness.keys.to('Access of Chart helper');
    await ness.keys.key('Space');
    await text(ness, 'Chart helper has access to Workshop desk.');
  });

  it('a run is launched and watched: calls appear while the agent makes them', async () => {
    await isla.keys.press('Runs');
    await isla.keys.press('Launch a run');
    await heading(isla, 'Launch a run');
    await isla.keys.press('Launch');
    await text(isla, 'Nothing was called yet.');
    await agent.connect();
    const does = async (name: string, input: Record<string, unknown>): Promise<void> => {
      const answer = await agent.call(name, input);
      assert.ok(!answer.failed, `${name}: ${answer.text}`);
    };
    await does('file_read', { path: 'README.md' });
    await text(isla, 'file.read');
    const content = `${FILES['README.md']}\nChecked.\u202e\n`;
    await does('file_write', { path: 'README.md', content, overwrite: true });
    await does('file_write', { path: 'check.sh', content: '#!/bin/sh\nnode --test\n' });
    await does('file_chmod', { path: 'check.sh', executable: true });
    await text(isla, 'file.chmod');
  });

  it('the draft is reviewed: the difference is opened in this browser, hashed against the manifest, and shows what cannot be seen', async () => {
    await isla.keys.press('Review the draft');
    await heading(isla, '2 changes');
    await text(isla, 'It does not protect you from the server that serves this page');
    await isla.keys.press('Show what changed');
    await text(isla, 'The list of changes is the reviewed one');
    await isla.keys.press('Show the difference of README.md');
    await text(isla, 'Both sides were hashed in this browser');
    await text(isla, 'U+202E');
    await isla.keys.press('Show the difference of check.sh');
    await text(isla, 'it can be executed');
    assert.equal(fs.readFileSync(path.join(machine.root, 'README.md'), 'utf8'), FILES['README.md']);
  });

  it('a promotion takes the current password, and then the folder on the machine is the approved one', async () => {
    await isla.keys.press('Review the promotion');
    await text(isla, 'You approve 2 changes on Workshop desk');
    await isla.keys.key('Control+A');
    await isla.window.page.keyboard.type(OWNER.password);
    await isla.keys.key('Enter');
    await text(isla, 'This is not your current password. Nothing was changed.');
    assert.equal(fs.existsSync(path.join(machine.root, 'check.sh')), false);
    await isla.window.page.keyboard.type(ISLA);
    await isla.keys.key('Enter');
    await text(isla, 'The folder on the machine now holds these changes.');
    assert.match(fs.readFileSync(path.join(machine.root, 'README.md'), 'utf8'), /Checked/);
    assert.equal(fs.statSync(path.join(machine.root, 'check.sh')).mode & 0o111, 0o111);
  });

  it('access is taken away by the same switch, without a password, and the next call of the agent is refused', async () => {
    await ness.keys.to('Access of Chart helper');
    await ness.keys.key('Space');
    await text(ness, 'Chart helper has no access to Workshop desk any more.');
    const answer = await agent.call('file_read', { path: 'README.md' }).catch(() => ({ failed: true }));
    assert.equal(answer.failed, true);
  });

  it('the Computer menu pauses and resumes by arrows, asks before it disconnects, and both people see the end', async () => {
    const choose = async (item: string): Promise<void> => {
      await ness.keys.to('Computer', { back: true });
      await ness.keys.key('Enter');
      for (let step = 0; step < 6 && !(await ness.keys.focused()).name.startsWith(item); step += 1) {
        await ness.keys.key('ArrowDown');
      }
      await ness.keys.key('Enter');
    };
    const state = (word: string) => ness.window.page.locator('.title .state', { hasText: word }).waitFor();
    await choose('Pause');
    await state('Paused');
    await choose('Resume');
    await state('Online');
    await choose('Disconnect');
    await ness.window.page.getByRole('dialog', { name: 'Disconnect Workshop desk?' }).waitFor();
    await ness.keys.key('Escape');
    await until('the focus to come back', 5000, async () => (await ness.keys.focused()).name === 'Computer');
    await ness.keys.key('Enter');
    await ness.keys.key('ArrowDown');
    await ness.keys.key('Enter');
    await ness.keys.press(/^Disconnect$/);
    await state('Disconnected');
    await isla.keys.press('Machines');
    await text(isla, 'Disconnected');
  });

  it('nothing was out of sight while it had the focus, nothing broke the policy for scripts and styles, and no barrier is left', async () => {
    for (const { window, keys } of [ness, isla]) {
      assert.deepEqual(keys.blind, []);
      assert.deepEqual(window.faults, []);
      assert.deepEqual(await findBarriers(window.page), []);
    }
  });
});
