/*
 * Secrets and contents planted everywhere, a whole story with its failures, then a search for them in every byte that is kept or
 * told. What may hold what:
 *
 *   root            what the person put there
 *   drafts/         contents that an agent wrote, paths
 *   records.json    the owner's policy as it was last in force, reasons and ignore rules included
 *   key-store/      the machine's private key; server data/command-key the control plane's
 *   results/        one result until it is acknowledged; nothing after that
 *   supervisor      its own arguments and configuration name the folders; so do the control plane's
 *   the two top     were started with this environment and keep it; no role below them does
 */
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { until } from '../../daemon/demo/children.ts';
import { defaultPolicy } from '../../daemon/config.ts';
import { writePolicy } from '../../daemon/cli/set-up.ts';
import { decode } from '../../helpers/protocol/codec.ts';
import { childrenOf } from './processes.ts';
import { filesBelow, findIn, processFacts } from './search.ts';
import type { Finding } from './search.ts';
import { searchable } from './traffic.ts';
import { PASSWORD, World } from './world.ts';

const mark = (what: string): string => `marker-${what}-${randomBytes(9).toString('hex')}`;

const content = {
  read: mark('read'),
  searched: mark('searched'),
  written: mark('written'),
  appended: mark('appended'),
  ignored: mark('ignored'),
};
const told = { query: mark('query'), path: mark('path'), body: mark('body'), wrongPassword: mark('password') };
const owned = { environment: mark('environment'), why: mark('why'), pattern: mark('pattern') };
const wrongToken = `nea_${mark('token')}`;

describe('planted markers', function () {
  this.timeout(180_000);
  let world: World;
  /** Everything that anybody was answered, by who was. */
  const answers: (readonly [string, Buffer])[] = [];
  /** Answers that carry a content because a granted operation asked for it. */
  const contents: string[] = [];

  before(async () => {
    world = await World.begin({
      prepare: plant,
      isRecorded: true,
      environment: { NESSIE_TEST_PLANTED: owned.environment },
    });
  });
  after(() => world.end());

  const bytesOf = (group: Readonly<Record<string, string>>): Map<string, Buffer> =>
    new Map(Object.entries(group).map(([name, text]) => [name, Buffer.from(text)]));
  const nowhere = (found: readonly Finding[]): void => assert.deepEqual(found, []);
  const at = (...names: readonly string[]): string => path.join(world.folder, ...names);
  const secrets = (): Map<string, Buffer> => {
    // Records of helpers/key-store/pair.ts.
    const seed = (folder: string): Buffer =>
      Buffer.from((decode(fs.readFileSync(path.join(folder, 'key'))) as { seed: Uint8Array }).seed);
    return new Map([
      ['machine key', seed(path.join(world.places.stateDir, 'key-store'))],
      ['command key', seed(at('server', 'data', 'command-key'))],
      ['agent token', Buffer.from(world.access.token)],
      ['password', Buffer.from(PASSWORD)],
      ['wrong password', Buffer.from(told.wrongPassword)],
      ['wrong token', Buffer.from(wrongToken)],
    ]);
  };

  async function call(name: string, input: Record<string, unknown>, fails = false): Promise<void> {
    const answer = await world.agent
      .call(name, input)
      .catch((error: unknown) => ({ failed: true, text: String(error) }));
    answers.push([`answer of ${name} ${answers.length}`, Buffer.from(answer.text)]);
    assert.equal(answer.failed, fails, `${name}: ${answer.text}`);
    if (!fails) contents.push(answers.at(-1)?.[0] ?? '');
  }

  async function fetched(what: string, route: string, init: RequestInit): Promise<void> {
    const response = await fetch(world.origin + route, init);
    answers.push([what, Buffer.from(await response.text())]);
    assert.ok(response.status >= 400, `${what} is refused`);
  }

  it('a whole story is told, and every handler is made to fail', async () => {
    const { places } = world;
    const policy = defaultPolicy();
    writePolicy(places, {
      ...policy,
      ignore: { patterns: [...policy.ignore.patterns, owned.pattern], why: owned.why },
    });
    await call('file_read', { path: 'read.txt' });
    await call('file_search', { query: content.searched });
    await call('file_write', { path: 'written.txt', content: content.written });
    await call('file_append', { path: 'written.txt', content: content.appended });
    await call('file_read', { path: `${told.path}/none.txt` }, true);
    await call('file_read', { path: '.env' }, true);
    await call('file_read', { path: `../${told.path}` }, true);
    await call('file_search', { query: `(${told.query}`, syntax: 'pattern' }, true);
    await call('file_write', { path: 'written.txt', content: content.written }, true);
    await call(
      'file_patch',
      { path: 'written.txt', expectedSha256: '0'.repeat(64), edits: [{ find: told.query, replace: told.body }] },
      true,
    );
    await call('file_read', { path: 'read.txt', [told.query]: told.body }, true);
    await call('workspace_review', {});
    await world.kill('workspace');
    await call('file_append', { path: 'written.txt', content: content.appended }, true);
    await until('the workspace to be back', 30_000, async () => !(await world.agent.call('file_list', {})).failed);
  });

  it('strangers and mistakes are answered', async () => {
    const json = { 'content-type': 'application/json' };
    const origin = { origin: world.origin };
    await fetched('MCP without a token', '/mcp', {
      method: 'POST',
      headers: { ...json, authorization: `Bearer ${wrongToken}` },
      body: '{}',
    });
    await fetched('MCP that is no JSON', '/mcp', {
      method: 'POST',
      headers: { ...json, authorization: `Bearer ${world.access.token}` },
      body: `{"${told.body}`,
    });
    await fetched('wrong password', '/api/page/sign-in', {
      method: 'POST',
      headers: { ...json, ...origin },
      body: JSON.stringify({ login: 'owner', password: told.wrongPassword }),
    });
    await fetched('sign-in of another shape', '/api/page/sign-in', {
      method: 'POST',
      headers: { ...json, ...origin },
      body: JSON.stringify({ [told.body]: told.wrongPassword }),
    });
    await fetched('pairing call of another shape', '/api/pairing/start', {
      method: 'POST',
      headers: { 'content-type': 'application/msgpack' },
      body: told.body,
    });
    const { runs } = await world.person.get<{ runs: { run: string }[] }>('/api/page/runs');
    for (const { run } of runs) {
      const detail = await world.person.get<unknown>(`/api/page/runs/${run}`);
      answers.push(['page: run', Buffer.from(JSON.stringify(detail))]);
    }
    answers.push([
      'page: executors',
      Buffer.from(JSON.stringify(await world.person.get<unknown>('/api/page/executors'))),
    ]);
    fs.writeFileSync(
      path.join(world.places.configDir, 'policy.json'),
      `{"version": 1, "${owned.why}": "${owned.pattern}"`,
    );
    await until('the policy to be invalid', 20_000, async () => (await world.status()).policy.state === 'invalid');
    await call('file_read', { path: 'read.txt' }, true);
  });

  it('no answer and no page carries a host path, a token, a key, a password or the environment', () => {
    const group = new Map([...secrets(), ...bytesOf(owned), ['host path', Buffer.from(world.folder)]]);
    nowhere(findIn(answers, group));
    nowhere(findIn(answers, bytesOf({ ignored: content.ignored })));
  });

  it('no failure carries a content', () => {
    const failures = answers.filter(([name]) => !contents.includes(name));
    nowhere(findIn(failures, bytesOf(content)));
  });

  it('neither log has any of it', () => {
    const logs = ['executor.log', path.join('server', 'server.log')];
    const bytes = logs.map((name) => [name, fs.readFileSync(at(name))] as const);
    nowhere(findIn(bytes, new Map([...secrets(), ...bytesOf(content), ...bytesOf(told), ...bytesOf(owned)])));
    nowhere(findIn(bytes.slice(0, 1), new Map([['host path', Buffer.from(world.root)]])));
  });

  it('R81 no database, journal, log or audit record of the control plane has contents, arguments or secrets in any byte', async () => {
    const search = (): void => {
      const files = [...filesBelow(at('server', 'data'))].filter(([name]) => !name.startsWith('command-key'));
      assert.ok(
        files.some(([name]) => name === 'store.db-wal') || !fs.existsSync(at('server', 'data', 'store.db-wal')),
      );
      nowhere(findIn(files, new Map([...secrets(), ...bytesOf(content), ...bytesOf(told), ...bytesOf(owned)])));
      nowhere(findIn(files, new Map([['root folder', Buffer.from(world.root)]])));
    };
    search();
    await world.kill('server');
    search();
    await world.startServer();
    await world.online();
    search();
  });

  it('the state folder has contents in drafts alone, and the machine’s key in the key-store’s folder alone', () => {
    const files = [...filesBelow(world.places.stateDir)];
    const outside = files.filter(([name]) => !name.startsWith('drafts/'));
    const { environment, ...policy } = owned;
    nowhere(findIn(outside, new Map([...bytesOf(content), ...bytesOf(told), ...bytesOf({ environment })])));
    const besideRecords = outside.filter(([name]) => name !== 'daemon/records.json');
    nowhere(findIn(besideRecords, bytesOf(policy)));
    nowhere(
      findIn(
        files.filter(([name]) => !name.startsWith('key-store/')),
        secrets(),
      ),
    );
    const drafted = findIn(files, bytesOf({ written: content.written }));
    assert.ok(
      drafted.some(({ place }) => place.startsWith('drafts/')),
      'the search finds what is there',
    );
    nowhere(findIn(files, bytesOf({ read: content.read, searched: content.searched, ignored: content.ignored })));
    assert.deepEqual(fs.readdirSync(path.join(world.places.stateDir, 'daemon', 'results')), []);
  });

  it('N-003 the private key of the machine stands in no traffic, log, argument, environment, answer and in nothing that the control plane keeps', () => {
    const seed = secrets().get('machine key');
    assert.ok(seed);
    // RFC 8032, section 5.1.5: what signs is derived from the seed, and would do in its place.
    const derived = createHash('sha512').update(seed).digest();
    const scalar = Buffer.from(derived.subarray(0, 32));
    scalar.writeUInt8(scalar.readUInt8(0) & 0xf8, 0);
    scalar.writeUInt8((scalar.readUInt8(31) & 0x7f) | 0x40, 31);
    const group = new Map([
      ['seed', seed],
      ['scalar', scalar],
      ['prefix', Buffer.from(derived.subarray(32))],
    ]);
    const traffic = [...searchable(world.proxy.carried)];
    const shown = bytesOf({ read: content.read });
    assert.ok(findIn(traffic, shown).length > 0, 'the search sees what travels, under its mask too');
    nowhere(findIn(traffic, group));
    nowhere(findIn(answers, group));
    nowhere(findIn(processFacts(world.pids()), group));
    nowhere(findIn(filesBelow(at('server')), group));
    nowhere(findIn([['log', fs.readFileSync(at('executor.log'))]], group));
    const kept = findIn(filesBelow(world.places.stateDir), group);
    assert.deepEqual([...new Set(kept.map(({ place }) => place))], ['key-store/key'], 'it is in its one file alone');
  });

  it('N-127 of the root’s path the base name alone leaves the machine, and a person is shown it', async () => {
    const traffic = [...searchable(world.proxy.carried)];
    const paths = {
      root: world.root,
      folder: world.folder,
      state: world.places.stateDir,
      config: world.places.configDir,
    };
    nowhere(findIn(traffic, bytesOf(paths)));
    nowhere(findIn(filesBelow(at('server', 'data')), bytesOf({ root: world.root, folder: world.folder })));
    const shown = await world.person.get<unknown>(`/api/page/executors/${world.executorId}/descriptor`);
    assert.match(JSON.stringify(shown), new RegExp(`"rootName":"${path.basename(world.root)}"`));
  });

  it('traces and ledger name no host path', () => {
    const files = [...filesBelow(path.join(world.places.stateDir, 'daemon'))];
    assert.ok(files.some(([name]) => name.includes('trace')));
    nowhere(findIn(files, new Map([['host path', Buffer.from(world.folder)]])));
  });

  it('no process has any of it in its arguments, and no role has the environment of whoever started the tree', () => {
    const pids = world.pids();
    const facts = [...processFacts(pids)];
    nowhere(
      findIn(
        facts.filter(([name]) => name.endsWith('arguments')),
        new Map([...secrets(), ...bytesOf(content), ...bytesOf(told), ...bytesOf(owned)]),
      ),
    );
    nowhere(findIn(facts, new Map([...secrets(), ...bytesOf(content), ...bytesOf(told)])));
    const roles = [world.pidOf('supervisor'), world.pidOf('server')].flatMap((top) =>
      childrenOf(top).map(({ pid }) => pid),
    );
    assert.ok(roles.length >= 5);
    nowhere(findIn(processFacts(roles), new Map([...bytesOf(owned), ['host path', Buffer.from(world.root)]])));
  });
});

function plant(root: string): void {
  fs.writeFileSync(path.join(root, 'read.txt'), `${content.read}\n`);
  fs.writeFileSync(path.join(root, 'search.txt'), `before ${content.searched} after\n`);
  fs.writeFileSync(path.join(root, '.env'), `${content.ignored}\n`);
}
