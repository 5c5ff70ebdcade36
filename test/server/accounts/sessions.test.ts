import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setupAddress } from '../../../server/accounts/setup.ts';
import { signInAddress } from '../../../server/accounts/sign-in.ts';
import { createApp } from '../../../server/app.ts';
import { startWork } from '../../../server/commands/start-work.ts';
import { PASSWORD } from '../control-plane.ts';
import { makeContext, Page, PUBLIC_ORIGIN, startGovernance } from '../governance.ts';
import type { Governance } from '../governance.ts';

const tokenOf = (address: string | undefined): string => String(address?.split('=')[1]);

describe('first-run setup', () => {
  it('one link makes the owner, once; then nobody sets up again', async () => {
    const { context } = await makeContext();
    const work = await startWork(context);
    const app = await createApp(context, work);
    const origin = await app.listen({ host: '127.0.0.1', port: 0 });
    const page = new Page(origin, 'ness', '' as never);
    const first = {
      organisation: 'Loch',
      team: 'Shore',
      project: 'Survey',
      login: 'ness',
      name: 'Ness',
      password: PASSWORD,
    };
    const setUp = (token: string, more: object = {}) => page.post('/api/page/setup', { ...first, token, ...more });

    assert.equal((await page.get('/api/page/session')).body.isSetUp, false);
    const older = tokenOf(await setupAddress(context));
    const address = await setupAddress(context);
    assert.match(String(address), /^http:\/\/127\.0\.0\.1:7420\/#setup=/);
    assert.equal((await setUp(older)).body.code, 'LINK_INVALID', 'a newer link makes the older one void');
    assert.equal((await setUp('guess')).body.code, 'LINK_INVALID');
    assert.equal((await setUp(tokenOf(address), { password: 'short' })).body.code, 'PASSWORD_WEAK');
    assert.equal((await setUp(tokenOf(address), { login: '../x' })).body.code, 'REQUEST_INVALID');
    assert.equal((await setUp(tokenOf(address))).status, 200);
    await page.readSession();
    assert.equal((await page.get('/api/page/organisation')).body.name, 'Loch');
    assert.equal(await setupAddress(context), undefined);
    assert.equal((await setUp(tokenOf(address))).body.code, 'LINK_INVALID');

    await work.stop();
    await app.close();
    await context.store.close();
  });
});

const isSignedIn = async (page: Page) => (await page.get('/api/page/organisation')).status === 200;

describe('sessions', () => {
  let plane: Governance;
  beforeEach(async () => {
    plane = await startGovernance();
  });
  afterEach(() => plane.stop());

  it('a password signs in; a wrong one and an unknown login answer the same bytes', async () => {
    const page = new Page(plane.origin, 'ness', plane.account.person);
    const answer = await page.signIn();
    assert.equal(answer.status, 200);
    assert.match(
      String(answer.headers.get('set-cookie')),
      /^nessie=[\w-]{43}; Max-Age=43200; Path=\/; HttpOnly; SameSite=Strict$/,
    );
    assert.ok(await isSignedIn(page));
    const wrong = await new Page(plane.origin, 'ness', plane.account.person).signIn('not the password');
    const unknown = await new Page(plane.origin, 'nobody', plane.account.person).signIn('not the password');
    assert.equal(wrong.status, 401);
    assert.deepEqual([wrong.status, wrong.text], [unknown.status, unknown.text]);
  });

  it('the cookie is bound to host and https where there is https', async () => {
    const { context } = await makeContext('https://nessie.example.org');
    const { cookieName } = await import('../../../server/accounts/sessions.ts');
    assert.equal(cookieName(context), '__Host-nessie');
    await context.store.close();
  });

  it('what may change something needs the origin of this server and the token of the session', async () => {
    const { owner } = plane;
    const tries: [string, Record<string, string>, number][] = [
      ['as the page does', {}, 200],
      ['from another site', { origin: 'https://elsewhere.example' }, 403],
      ['from the same host over another scheme', { origin: 'https://127.0.0.1:7420' }, 403],
      ['without an origin', { origin: '' }, 403],
      ['without the token', { 'x-nessie-csrf': '' }, 403],
      ['with another token', { 'x-nessie-csrf': 'A'.repeat(43) }, 403],
    ];
    for (const [what, headers, status] of tries) {
      assert.equal((await owner.request('POST', '/api/page/agents', { name: what }, headers)).status, status, what);
    }
    const other = await plane.invite('other');
    const stolen = await owner.request('POST', '/api/page/agents', { name: 'x' }, { 'x-nessie-csrf': other.csrf });
    assert.equal(stolen.body.code, 'CSRF_INVALID', 'a token of another session');
  });

  it('a cookie is rotated while it is used; the old one ends a minute later', async () => {
    const { owner } = plane;
    const old = owner.cookie;
    plane.clock.offsetMs += 901_000;
    assert.ok(await isSignedIn(owner));
    assert.notEqual(owner.cookie, old);
    const stale = new Page(plane.origin, 'ness', plane.account.person);
    stale.cookie = old;
    assert.ok(await isSignedIn(stale), 'a request under way');
    plane.clock.offsetMs += 61_000;
    assert.equal(await isSignedIn(stale), false);
    assert.ok(await isSignedIn(owner));
  });

  it('requests that rotate at the same time leave the person signed in', async () => {
    plane.clock.offsetMs += 901_000;
    const { owner } = plane;
    const answers = await Promise.all(Array.from({ length: 8 }, () => owner.get('/api/page/organisation')));
    assert.ok(answers.every(({ status }) => status === 200));
    assert.equal(answers.filter(({ headers }) => headers.get('set-cookie') !== null).length, 1);
    assert.ok(await isSignedIn(owner));
  });

  it('a stream of events never takes the cookie away that it cannot replace', async () => {
    plane.clock.offsetMs += 901_000;
    const { owner } = plane;
    const before = owner.cookie;
    const controller = new AbortController();
    const stream = await fetch(`${plane.origin}/api/page/events`, {
      headers: { cookie: before },
      signal: controller.signal,
    });
    assert.equal(stream.status, 200);
    assert.equal(stream.headers.get('set-cookie'), null);
    controller.abort();
    assert.ok(await isSignedIn(owner));
    assert.notEqual(owner.cookie, before, 'the next call rotates');
  });

  it('a session ends after two hours of silence and after twelve hours in any case', async () => {
    const { owner } = plane;
    plane.clock.offsetMs += 7_100_000;
    assert.ok(await isSignedIn(owner));
    plane.clock.offsetMs += 7_300_000;
    assert.equal(await isSignedIn(owner), false);
    await owner.enter(plane.context);
    for (let hour = 0; hour < 11; hour += 1) {
      plane.clock.offsetMs += 3_600_000;
      assert.ok(await isSignedIn(owner), `hour ${hour}`);
    }
    plane.clock.offsetMs += 3_700_000;
    assert.equal(await isSignedIn(owner), false);
  });

  it('signing out ends the session for good', async () => {
    const { owner } = plane;
    const { cookie } = owner;
    await owner.post('/api/page/sign-out');
    owner.cookie = cookie;
    assert.equal(await isSignedIn(owner), false);
  });

  it('a one-time link signs in once, for ten minutes, and only to its person', async () => {
    const page = new Page(plane.origin, 'ness', plane.account.person);
    const token = tokenOf(await signInAddress(plane.context, 'ness'));
    const enter = (text: string) => page.post('/api/page/sign-in-by-link', { token: text });
    assert.equal((await enter('guess')).body.code, 'LINK_INVALID');
    assert.equal((await enter(token)).status, 200);
    assert.ok(await isSignedIn(page));
    const again = new Page(plane.origin, 'ness', plane.account.person);
    assert.equal((await again.post('/api/page/sign-in-by-link', { token })).body.code, 'LINK_INVALID');
    const late = tokenOf(await signInAddress(plane.context, 'ness'));
    plane.clock.offsetMs += 600_001;
    assert.equal((await again.post('/api/page/sign-in-by-link', { token: late })).body.code, 'LINK_INVALID');
    await assert.rejects(signInAddress(plane.context, 'nobody'), { code: 'PERSON_ABSENT' });
  });

  it('secrets of sessions, links and agents are in no file of the store', async () => {
    const link = tokenOf(await signInAddress(plane.context, 'ness'));
    const { agent } = (await plane.owner.post('/api/page/agents', { name: 'a' })).body;
    const { token } = (await plane.owner.post(`/api/page/agents/${agent}/tokens`, { project: plane.account.project }))
      .body;
    for (const file of ['store.db', 'store.db-wal']) {
      const bytes = await readFile(join(plane.folder, file));
      for (const secret of [link, token, plane.owner.cookie.split('=')[1] ?? '', plane.owner.csrf, PASSWORD]) {
        assert.equal(bytes.includes(secret), false, `${secret} in ${file}`);
      }
    }
  });

  it('ten tries for a login and no more, with the right password too; without the counter none at all', async () => {
    const guess = (login: string, password: string) =>
      new Page(plane.origin, login, plane.account.person).post('/api/page/sign-in', { login, password });
    for (let index = 0; index < 10; index += 1) assert.equal((await guess('ness', 'wrong')).status, 401);
    const answer = await guess('ness', PASSWORD);
    assert.equal(answer.body.code, 'RATE_LIMITED');
    assert.match(answer.body.remedy, /Wait/);
    plane.clock.offsetMs += 601_000;
    assert.equal((await guess('ness', PASSWORD)).status, 200);
    await plane.context.store.write((tx) => tx.schema.dropTable('limits').execute());
    assert.equal((await guess('ness', PASSWORD)).body.code, 'UNAVAILABLE');
  });

  it('a first password is set in a session of a one-time link alone; a later one needs the current one and ends other sessions', async () => {
    await plane.context.store.write((tx) => tx.updateTable('people').set({ password: null }).execute());
    const next = 'another four words';
    assert.equal((await plane.owner.post('/api/page/password', { next })).body.code, 'LINK_REQUIRED');
    const page = new Page(plane.origin, 'ness', plane.account.person);
    await page.post('/api/page/sign-in-by-link', { token: tokenOf(await signInAddress(plane.context, 'ness')) });
    await page.readSession();
    assert.equal((await page.post('/api/page/password', { next: 'short' })).body.code, 'PASSWORD_WEAK');
    assert.equal((await page.post('/api/page/password', { next })).status, 200);
    assert.equal(await isSignedIn(plane.owner), false);
    assert.equal((await page.post('/api/page/password', { next: PASSWORD })).body.code, 'PASSWORD_WRONG');
    assert.equal((await page.post('/api/page/password', { current: next, next: PASSWORD })).status, 200);
    assert.ok(await isSignedIn(page));
  });

  it('an offboarded person’s sessions, links and tokens end at once', async () => {
    const guest = await plane.invite('guest');
    const link = tokenOf(await signInAddress(plane.context, 'guest'));
    await plane.owner.post(`/api/page/people/${guest.person}/offboard`);
    assert.equal(await isSignedIn(guest), false);
    guest.cookie = '';
    assert.equal((await guest.post('/api/page/sign-in-by-link', { token: link })).body.code, 'LINK_INVALID');
    assert.equal((await guest.signIn()).status, 401);
    assert.equal(
      (await plane.owner.post(`/api/page/people/${plane.owner.person}/offboard`)).body.code,
      'OWNER_REQUIRED',
    );
    assert.equal(PUBLIC_ORIGIN.startsWith('http://127.'), true);
  });
});
