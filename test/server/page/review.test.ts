import assert from 'node:assert/strict';

import type { Browser } from 'playwright-core';
import { Agent } from '../../../daemon/demo/agent.ts';
import type { Person } from '../../../daemon/demo/person.ts';
import { giveAccess } from '../../../daemon/demo/settle.ts';
import { findBarriers, startBrowser } from './browser.ts';
import type { Window } from './browser.ts';
import { SealingMachine } from './sealing-machine.ts';
import type { Sides } from './sealing-machine.ts';
import { openSignedIn, show } from './signed-in.ts';
import { OWNER, World } from './world.ts';

const MARKER = 'marker-of-a-content-that-nobody-reviewed';

describe('a review on the page', function () {
  this.timeout(90_000);
  let browser: Browser;
  let world: World;
  let owner: Person;

  before(async function () {
    browser = await startBrowser(this);
  });
  after(() => browser?.close());
  // A world of its own each: an address gets five pairing codes in ten minutes (N-078).
  beforeEach(async () => {
    world = await World.start();
    owner = await world.setUp();
  });
  afterEach(() => world.stop());

  /** A machine with a draft, reviewed and on screen. */
  async function reviewed(
    draft: Readonly<Record<string, Sides>>,
    policy: Parameters<SealingMachine['join']>[3] = {},
  ): Promise<{ machine: SealingMachine; window: Window; run: string; review: string; end: () => Promise<void> }> {
    const machine = new SealingMachine(draft);
    await machine.join(world, owner, `machine ${Math.random().toString(36).slice(2, 8)}`, policy);
    const access = await giveAccess(owner, machine.executor, 'Helper');
    await machine.rejoin();
    const agent = new Agent(access.endpoint, access.token);
    await agent.connect();
    await agent.call('file_list', {});
    const { runs } = await owner.get<{ runs: { run: string }[] }>(`/api/page/runs?executor=${machine.executor}`);
    const run = runs[0]?.run ?? '';
    const { review } = await owner.post<{ review: string }>(`/api/page/runs/${run}/review`);
    const window = await openSignedIn(browser, world.origin, 1280);
    await show(window, `${world.origin}/reviews/${review}`);
    const end = async (): Promise<void> => {
      await window.close();
      await agent.close().catch(() => undefined);
      await machine.leave();
    };
    return { machine, window, run, review, end };
  }

  const draft = { 'a.txt': { before: 'one\ntwo\n', after: 'one\n2\n' }, 'b.txt': { before: null, after: 'new\n' } };

  it('lines are shown on both sides with their numbers, once their digests agree', async () => {
    const { window, end } = await reviewed(draft);
    await window.page.getByRole('button', { name: 'Show what changed' }).click();
    await window.page.getByRole('button', { name: 'Show the difference of a.txt' }).click();
    await window.page.getByText('Both sides were hashed in this browser').waitFor();
    const rows = await window.page
      .locator('.lines tbody tr')
      .evaluateAll((all) =>
        all.map((row) => [row.className, ...[...row.querySelectorAll('td')].map((cell) => cell.textContent)]),
      );
    assert.deepEqual(rows, [
      ['', '1', '1', ' one'],
      ['removed', '2', '', '-two'],
      ['added', '', '2', '+2'],
    ]);
    assert.deepEqual(await findBarriers(window.page), []);
    assert.deepEqual(window.faults, []);
    await end();
  });

  const lies: Readonly<Record<string, NonNullable<SealingMachine['lie']>>> = {
    'another content than the manifest states': ({ part }, honest) =>
      part.of === 'after' ? Buffer.from(`${MARKER}\n`) : honest,
    'another manifest than the reviewed one': ({ part }, honest) =>
      part.of === 'manifest' ? Buffer.from(honest.toString('utf8').replace('b.txt', 'c.txt')) : honest,
  };
  for (const [what, lie] of Object.entries(lies)) {
    it(`${what} is said loudly, and nothing of it is shown`, async () => {
      const { machine, window, end } = await reviewed(draft);
      machine.lie = lie;
      await window.page.getByRole('button', { name: 'Show what changed' }).click();
      const alert = window.page.getByRole('alert').filter({ hasText: 'This is not what was reviewed' });
      if (what.startsWith('another content')) {
        await window.page.getByRole('button', { name: 'Show the difference of a.txt' }).click();
      }
      await alert.waitFor();
      assert.match(await alert.innerText(), /Do not promote this review/);
      assert.equal((await window.page.content()).includes(MARKER), false);
      assert.equal(await window.page.locator('.lines').count(), 0);
      assert.deepEqual(await findBarriers(window.page), []);
      await end();
    });
  }

  it('content travels sealed: it stands in no answer that the browser was sent, and in no file of the server', async () => {
    const secret = 'a-line-that-only-the-two-ends-may-see';
    const { window, end } = await reviewed({ 'secret.txt': { before: null, after: `${secret}\n` } });
    const answers: Buffer[] = [];
    window.page.on('response', (response) => {
      if (response.url().includes('/api/')) {
        void response.body().then(
          (body) => answers.push(body),
          () => undefined,
        );
      }
    });
    await window.page.getByRole('button', { name: 'Show what changed' }).click();
    await window.page.getByRole('button', { name: 'Show the difference of secret.txt' }).click();
    await window.page.getByText(secret).waitFor();
    assert.ok(answers.length >= 2);
    assert.equal(Buffer.concat(answers).includes(secret), false);
    assert.equal(world.holds(secret), false);
    await end();
  });

  it('more than a hundred changes are turned over page by page', async () => {
    const many = Object.fromEntries(
      Array.from({ length: 130 }, (_, index) => [`f${String(index).padStart(3, '0')}`, { before: null, after: 'x' }]),
    );
    const { window, end } = await reviewed(many);
    await window.page.getByText('1 to 100 of 130').waitFor();
    assert.equal(await window.page.locator('.changes > li').count(), 100);
    await window.page.getByRole('button', { name: 'Next 100' }).click();
    await window.page.getByText('101 to 130 of 130').waitFor();
    assert.equal(await window.page.locator('.changes > li').count(), 30);
    await window.page.getByRole('button', { name: 'Show what changed' }).click();
    await window.page.getByRole('button', { name: 'Show the difference of f129' }).click();
    await window.page.getByText('Both sides were hashed in this browser').waitFor();
    await end();
  });

  it('where the owner shows content at the machine alone, the page says the command and offers no way around', async () => {
    const { window, run, end } = await reviewed(draft, { difference: 'machine' });
    await window.page.getByText('Content is shown at the machine').waitFor();
    await window.page.getByText(`nessie-executor review ${run}`).first().waitFor();
    assert.equal(await window.page.getByRole('button', { name: 'Show what changed' }).count(), 0);
    await end();
  });

  it('where the owner requires the machine too, the page says so before the password is typed', async () => {
    const { window, run, end } = await reviewed(draft, { promotion: 'machine' });
    await window.page.getByText('This machine asks a second time').waitFor();
    await window.page.getByText(`nessie-executor review ${run} --approve`).waitFor();
    assert.deepEqual(await findBarriers(window.page), []);
    await end();
  });

  it('a promotion that the machine refuses says why and that nothing was changed', async () => {
    const { machine, window, end } = await reviewed(draft);
    machine.promotes = false;
    await window.page.getByRole('button', { name: 'Review the promotion' }).click();
    await window.page.getByLabel('Current password').fill(OWNER.password);
    await window.page.getByRole('button', { name: 'Promote', exact: true }).click();
    await window.page.getByText('A file on the machine is no longer what it was').waitFor();
    assert.deepEqual(window.faults, []);
    await end();
  });
});
