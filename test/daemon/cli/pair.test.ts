import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

import { placesIn } from '../../../daemon/cli/places.ts';
import { readPin } from '../../../daemon/cli/set-up.ts';
import { freePort, startServer, stopChild, until } from '../../../daemon/demo/children.ts';
import type { RunningServer } from '../../../daemon/demo/children.ts';
import { Person } from '../../../daemon/demo/person.ts';
import { CommandLine } from '../../fixtures/command-line.ts';
import type { Ran } from '../../fixtures/command-line.ts';
import { skipBecause } from '../../skip.ts';

/** Longest wait for a condition; long, because the machine may be busy with other things. */
const PATIENCE_MS = 60_000;

const FINGERPRINT = /((?:[0-9a-f]{4} ){15}[0-9a-f]{4})/;

/** The key that the terminal shows beside a name. */
function keyBeside(name: string, shown: string): string {
  const found = new RegExp(`${name}\\s+${FINGERPRINT.source}`).exec(shown);
  return (found?.[1] ?? '').replaceAll(' ', '');
}

describe('pairing with a real control plane, a person on each side', function () {
  this.timeout(180_000);
  let cli: CommandLine;
  let server: RunningServer;
  let person: Person;
  let team: string;
  let controlKey: string;
  let folder: string;
  let count = 0;

  before(async function () {
    if (!['/usr/bin', '/bin'].some((bin) => fs.existsSync(path.join(bin, 'script'))))
      return skipBecause(this, 'the script program');
    cli = await CommandLine.build(true);
    folder = fs.mkdtempSync(path.join(os.tmpdir(), 'pairing-'));
    fs.chmodSync(folder, 0o755);
    server = await startServer(cli.dist, path.join(folder, 'server'), await freePort());
    person = new Person(server.origin);
    await person.setUp(server.setup ?? '', {
      organisation: 'Organisation',
      team: 'Team',
      project: 'Project',
      login: 'owner',
      name: 'Owner',
      password: 'correct horse battery staple',
    });
    const organisation = await person.get<{ teams: { id: string }[] }>('/api/page/organisation');
    team = organisation.teams[0]?.id ?? '';
    const session = await person.get<{ server: { commandKeyFingerprint: string } }>('/api/page/session');
    controlKey = session.server.commandKeyFingerprint;
  });
  after(async () => {
    await stopChild(server.process);
    await cli.remove();
    fs.rmSync(folder, { recursive: true, force: true });
  });

  function machine() {
    count += 1;
    const home = path.join(folder, `machine-${count}`);
    const root = path.join(folder, `root-${count}`);
    fs.mkdirSync(root);
    return { here: (...words: string[]) => ['--in', home, ...words], places: placesIn(home), root };
  }
  const claim = async (shown: string): Promise<undefined> => {
    const code = /(\d{4}) (\d{4})/.exec(shown.slice(shown.indexOf('type')));
    const found = await person.post<{ pairing: string; fingerprint: string }>('/api/page/pairings/lookup', {
      code: `${code?.[1]}${code?.[2]}`,
    });
    assert.equal(keyBeside('this machine', shown), found.fingerprint, 'both sides show one key of the machine');
    assert.equal(keyBeside('control plane', shown), controlKey, 'both sides show one key of the control plane');
    const destination = { label: 'Desk', scope: 'private', team, fingerprint: found.fingerprint };
    await person.post(`/api/page/pairings/${found.pairing}/claim`, destination);
  };
  const pairByCode = ({ here, root }: ReturnType<typeof machine>, answer: string): Promise<Ran> =>
    cli.atTerminal(here('pair', '--origin', server.origin, '--root', root, '--no-qr'), [
      { when: /control plane[\s\S]*valid until/, type: claim },
      { when: /Type "yes"/, type: answer },
    ]);

  it('eight digits: the same keys on both sides, the person at the machine says yes, and the control plane’s key is pinned', async () => {
    const one = machine();
    const { code, out } = await pairByCode(one, 'yes');
    assert.equal(code, 0, out);
    assert.match(out, /label +Desk/);
    const pin = readPin(one.places);
    assert.ok(pin && out.includes(pin.executor));
    const { executors } = await person.get<{ executors: { executor: string }[] }>('/api/page/executors');
    assert.ok(executors.some(({ executor }) => executor === pin.executor));
  });

  it('the person at the machine says no: nothing is pinned on either side', async () => {
    const one = machine();
    const { code, out } = await pairByCode(one, 'no');
    assert.equal(code, 3, out);
    assert.match(out, /nothing was pinned/);
    assert.equal(readPin(one.places), undefined);
  });

  it('a pairing that was cut off is continued with the same digits, and cancelled where asked for', async () => {
    const one = machine();
    const digits: string[] = [];
    const leave = (shown: string): undefined => {
      digits.push(/(\d{4} \d{4})/.exec(shown.slice(shown.indexOf('type')))?.[1] ?? '');
      cli.endTerminal();
    };
    const words = one.here('pair', '--origin', server.origin, '--root', one.root, '--no-qr');
    for (let time = 0; time < 2; time += 1) {
      await cli.atTerminal(words, [{ when: /control plane[\s\S]*valid until/, type: leave }]);
    }
    assert.match(digits[0] ?? '', /^\d{4} \d{4}$/);
    assert.equal(digits[1], digits[0]);
    const cancelled = await cli.run(one.here('pair', '--cancel'));
    assert.equal(cancelled.code, 0, cancelled.error);
    assert.equal((await cli.run(one.here('pair', '--cancel'))).code, 3);
  });

  it('an operator enrols with the request and challenge of the page, and pins after comparing keys', async () => {
    const one = machine();
    const wish = { label: 'Rack', scope: 'private', team, project: null };
    const made = await person.post<{ pairing: string; executor: string; requestId: string; challenge: string }>(
      '/api/page/enrolments',
      wish,
    );
    const confirm = async (shown: string): Promise<undefined> => {
      const fingerprint = keyBeside('this machine', shown);
      await person.post(`/api/page/pairings/${made.pairing}/confirm`, { fingerprint });
    };
    const words = one.here(
      'pair',
      '--origin',
      server.origin,
      '--root',
      one.root,
      '--request',
      made.requestId,
      '--challenge',
      made.challenge,
    );
    const { code, out } = await cli.atTerminal(words, [
      { when: /control plane[\s\S]*valid until/, type: confirm },
      { when: /Type "yes"/, type: 'yes' },
    ]);
    assert.equal(code, 0, out);
    assert.equal(readPin(one.places)?.executor, made.executor);
  });

  it('a paired machine rotates its key while it is online, and comes back with the new one', async () => {
    const one = machine();
    assert.equal((await pairByCode(one, 'yes')).code, 0);
    const key = async (state: string): Promise<string> =>
      until(`the machine is ${state}`, PATIENCE_MS, async () => {
        const { out } = await cli.run(one.here('status', '--json'));
        const { executors } = JSON.parse(out) as {
          executors: { daemon: { state: string; fingerprint: string } | null }[];
        };
        const { daemon } = executors[0] ?? {};
        return daemon?.state === state ? daemon.fingerprint : undefined;
      });
    const first = cli.start(one.here('daemon'));
    const old = await key('online');
    const rotated = await cli.run(one.here('rotate-key'));
    assert.equal(rotated.code, 0, rotated.error);
    const now = await key('online');
    assert.notEqual(now, old);
    assert.ok(rotated.out.replaceAll(' ', '').includes(now));
    first.child.kill('SIGTERM');
    assert.equal((await first.ran).code, 0);
    const second = cli.start(one.here('daemon'));
    assert.equal(await key('online'), now);
    second.child.kill('SIGTERM');
    assert.equal((await second.ran).code, 0);
  });
});
