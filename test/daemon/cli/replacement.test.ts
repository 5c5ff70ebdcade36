import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';

import Database from 'libsql';
import { askDaemon } from '../../../daemon/cli/owner-client.ts';
import { readPin, writePin } from '../../../daemon/cli/set-up.ts';
import { until } from '../../../daemon/demo/children.ts';
import type { PairingState } from '../../../daemon/protocol.ts';
import type { Ran } from '../../fixtures/command-line.ts';
import { skipBecause } from '../../skip.ts';
import { PATIENCE_MS, World } from './world.ts';

type Listed = { readonly executor: string; readonly state: string };

describe('a pairing in place of another', function () {
  this.timeout(300_000);
  let world: World;
  let team: string;
  const here = (...words: string[]) => ['--in', path.join(world.folder, 'executor'), ...words];

  before(async () => {
    world = await World.begin('replacement');
    team = (await world.person.get<{ teams: { id: string }[] }>('/api/page/organisation')).teams[0]?.id ?? '';
    await world.pairMachine();
    await online();
  });
  after(() => world.end());

  const online = (): Promise<string> =>
    until('the machine is online', PATIENCE_MS, async () => {
      await world.keepUp();
      const status = await askDaemon(world.places.stateDir, 'daemon.status', {}).catch(() => undefined);
      return status?.state === 'online' && status.executor !== null ? status.executor : undefined;
    });
  const live = async (): Promise<string[]> => {
    const { executors } = await world.person.get<{ executors: Listed[] }>('/api/page/executors');
    return executors
      .filter(({ state }) => !['revoked', 'pending_pairing'].includes(state))
      .map(({ executor }) => executor);
  };
  const standing = (): Promise<PairingState> => askDaemon(world.places.stateDir, 'daemon.pairing', {});

  /** As if ten minutes had passed: one address may have five codes in that time (N-078). */
  function forgetLimits(): void {
    const data = path.join(world.folder, 'server', 'data');
    const file = fs.readdirSync(data).find((name) => /\.(db|sqlite)$/.test(name)) ?? '';
    const store = new Database(path.join(data, file));
    store.exec('pragma busy_timeout = 5000; delete from limits');
    store.close();
  }
  async function claim(code: string | null): Promise<void> {
    const shown = await world.person.post<{ pairing: string; fingerprint: string }>('/api/page/pairings/lookup', {
      code,
    });
    const destination = { label: 'machine', scope: 'private', team, fingerprint: shown.fingerprint };
    await world.person.post(`/api/page/pairings/${shown.pairing}/claim`, destination);
  }
  /** Replaces at a terminal: the code is claimed on the page, then the person at the machine gives the answer. */
  function replaceAtTerminal(answer: 'yes' | 'no'): Promise<Ran> {
    const look = async (shown: string): Promise<undefined> => {
      const code = /(\d{4}) (\d{4})/.exec(shown.slice(shown.indexOf('type')));
      await claim(`${code?.[1]}${code?.[2]}`);
    };
    return world.cli.atTerminal(here('pair', '--replace', '--no-qr'), [
      { when: /control plane[\s\S]*valid until/, type: look },
      { when: /Type "yes"/, type: answer },
    ]);
  }
  const stages = ['sending', 'offered', 'claimed', 'answered'] as const;

  /** Goes through a replacement as both people would, and cuts once at a stage; resolves with the new executor. */
  async function replaceWith(
    stage: (typeof stages)[number],
    afterMs: number,
    cut: () => Promise<void>,
  ): Promise<string> {
    const before = await online();
    let isCut = false;
    const cutOnce = async (now: (typeof stages)[number]): Promise<void> => {
      if (isCut || now !== stage) return;
      isCut = true;
      await wait(afterMs);
      await cut();
    };
    const begin = { flow: 'code', machineName: 'machine', replace: true } as const;
    await askDaemon(world.places.stateDir, 'daemon.pair', begin);
    await cutOnce('sending');
    let claimed = '';
    const replaced = await until(`the pairing is replaced, cut when ${stage}`, PATIENCE_MS, async () => {
      await world.keepUp();
      const now = await standing().catch(() => undefined);
      assert.ok((await live()).length <= 1, 'never two live executors');
      if (now?.state === 'paired' && now.executor !== before) return now;
      // Cut before anything was on disk, it did not begin: the owner asks again.
      if (now?.state === 'paired' && isCut)
        await askDaemon(world.places.stateDir, 'daemon.pair', begin).catch(() => undefined);
      if (now?.state === 'offered') await cutOnce('offered');
      if (now?.state === 'offered' && now.code !== null && claimed !== now.code) {
        await claim(now.code);
        claimed = now.code;
      }
      if (now?.state === 'claimed') await cutOnce('claimed');
      if (now?.state === 'claimed') {
        const { claimDigest } = now;
        await askDaemon(world.places.stateDir, 'daemon.pair-answer', { answer: 'confirm', claimDigest }).catch(
          () => undefined,
        );
        await cutOnce('answered');
      }
      return undefined;
    });
    writePin({ places: world.places, paired: replaced, confirm: 'page' });
    assert.equal(await online(), replaced.executor);
    assert.deepEqual(await live(), [replaced.executor]);
    assert.deepEqual(fs.readdirSync(path.join(world.places.stateDir, 'key-store')).toSorted(), ['guards', 'key']);
    return replaced.executor;
  }

  it('a person at each side says yes: the new executor is the only live one, and its pin is the one on disk', async function () {
    if (!['/usr/bin', '/bin'].some((bin) => fs.existsSync(path.join(bin, 'script'))))
      return skipBecause(this, 'the script program');
    const before = await online();
    const { code, out } = await replaceAtTerminal('yes');
    assert.equal(code, 0, out);
    const now = await online();
    assert.notEqual(now, before);
    assert.deepEqual(await live(), [now]);
    assert.equal(readPin(world.places)?.executor, now);
  });

  it('a no at the machine leaves the pairing before as it was', async function () {
    forgetLimits();
    if (!['/usr/bin', '/bin'].some((bin) => fs.existsSync(path.join(bin, 'script'))))
      return skipBecause(this, 'the script program');
    const before = await online();
    const { code, out } = await replaceAtTerminal('no');
    assert.equal(code, 3, out);
    assert.match(out, /stands as it was/);
    assert.equal(await online(), before);
    assert.deepEqual(await live(), [before]);
    assert.equal(readPin(world.places)?.executor, before);
  });

  it('another origin, another root, and an operator’s enrolment block it', async () => {
    const before = await online();
    const other = path.join(world.folder, 'other');
    fs.mkdirSync(other);
    const enrolment = ['--request', `req_${'a'.repeat(32)}`, '--challenge', Buffer.alloc(32).toString('base64url')];
    for (const [words, code] of [
      [['--origin', 'https://other.example'], 3],
      [['--root', other], 3],
      [enrolment, 2],
    ] as const) {
      const ran = await world.cli.run(here('pair', '--replace', ...words));
      assert.equal(ran.code, code, ran.error);
    }
    assert.equal(await online(), before);
  });

  it('a replacement that is cut at any stage, on either side, ends with one live executor and never has two', async () => {
    const everything = () => world.cutMachine();
    const controlPlane = () => world.cutControlPlane();
    const cases = [
      ['sending', 0, everything],
      ['offered', 0, everything],
      ['claimed', 0, everything],
      ['claimed', 0, controlPlane],
      ['answered', 0, everything],
      ['answered', 0, controlPlane],
      ['answered', 15, controlPlane],
    ] as const;
    for (const [stage, afterMs, cut] of cases) {
      forgetLimits();
      await replaceWith(stage, afterMs, cut);
    }
  });
});
