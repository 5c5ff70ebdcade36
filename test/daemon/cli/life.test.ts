import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

import { isDaemonUp } from '../../../daemon/cli/owner-client.ts';
import { placesIn } from '../../../daemon/cli/places.ts';
import { until } from '../../../daemon/demo/children.ts';
import type { Places } from '../../../daemon/cli/places.ts';
import { FakeControlPlane } from '../../fakes/fake-control-plane.ts';
import { CommandLine } from '../../fixtures/command-line.ts';
import { skipBecause } from '../../skip.ts';
import { assertWell } from './world.ts';

/** Longest wait for a condition; long, because the machine may be busy with other things. */
const PATIENCE_MS = 60_000;

/** Lines of a log that carry a code; the supervisor's sentences about rows that end are timing, not detail. */
function linesOf(log: string): { level: number; code: string }[] {
  const lines = log.split('\n').filter((line) => line.startsWith('{'));
  return lines.map((line) => JSON.parse(line) as { level: number; code: string });
}

async function isOnline(cli: CommandLine, status: readonly string[]): Promise<true | undefined> {
  const { out } = await cli.run(status);
  const { executors } = JSON.parse(out) as { executors: { daemon: { state: string } | null }[] };
  return executors[0]?.daemon?.state === 'online' || undefined;
}

describe('the life of an executor at the command line', function () {
  this.timeout(180_000);
  let cli: CommandLine;
  let folder: string;
  let root: string;
  let places: Places;
  let plane: FakeControlPlane;
  const here = (...words: string[]): string[] => ['--in', path.join(folder, 'executor'), ...words];

  before(async function () {
    cli = await CommandLine.build();
    folder = fs.mkdtempSync(path.join(os.tmpdir(), 'life-'));
    fs.chmodSync(folder, 0o755);
    root = path.join(folder, 'project');
    fs.mkdirSync(root);
    fs.symlinkSync(root, path.join(folder, 'link'));
    fs.writeFileSync(path.join(root, 'a.txt'), 'one\ntwo\n');
    places = placesIn(path.join(folder, 'executor'));
    plane = new FakeControlPlane();
    const origin = await plane.listen();
    const asked = [{ when: /Type "yes"/, type: 'yes' }];
    const paired = await cli.atTerminal(
      here('pair', '--origin', origin, '--root', path.join(folder, 'link'), '--no-qr'),
      asked,
    );
    if (/script: not found|ENOENT/.test(paired.error)) return skipBecause(this, 'the script program');
    assert.equal(paired.code, 0, paired.out + paired.error);
    assert.match(paired.out, /control plane +(?:[0-9a-f]{4} ){15}[0-9a-f]{4}/);
    assert.match(paired.out, /Paired.* as exr_/s);
  });
  after(async () => {
    await plane.close();
    await cli.remove();
    fs.rmSync(folder, { recursive: true, force: true });
  });

  it('a path through a link is stored resolved, and the pin names what the person confirmed', () => {
    const configuration = JSON.parse(fs.readFileSync(path.join(places.stateDir, 'supervisor.json'), 'utf8')) as {
      root: string;
    };
    assert.equal(configuration.root, fs.realpathSync(root));
    const pin = JSON.parse(fs.readFileSync(path.join(places.ownerDir, 'pin.json'), 'utf8')) as Record<string, string>;
    assert.equal(pin['executor'], plane.executor);
    assert.match(pin['commandKey'] ?? '', /^[0-9a-f]{64}$/);
    assert.equal(pin['promotion'], 'page');
  });

  it('pairing a paired machine is refused', async () => {
    const { code, error } = await cli.run(here('pair', '--root', root, '--origin', 'https://a.example'));
    assert.equal(code, 3, error);
    assert.match(error, /paired already/);
  });

  it('status tells an executor that does not run, with the control plane gone, as text and as JSON', async () => {
    const text = await cli.run(here('status'));
    assert.equal(text.code, 0);
    assert.match(text.out, new RegExp(`stopped +${plane.executor}`));
    const { out } = await cli.run(here('status', '--json'));
    const { executors } = JSON.parse(out) as { executors: { executor: string; daemon: unknown; origin: string }[] };
    assert.equal(executors[0]?.executor, plane.executor);
    assert.equal(executors[0]?.daemon, null);
    const none = await cli.run(here('status', 'exr_other'));
    assert.equal(none.code, 3);
  });

  it('policy is shown, checked and changed; a key that does not exist is refused and nothing is written', async () => {
    const shown = await cli.run(here('policy', 'show'));
    assert.match(shown.out, /^allow +file\.read[^]*^history +up to 1024 MiB of the last 30 days can be undone/m);
    const wrong = await cli.run(here('policy', 'deny', 'file.frob'));
    assert.equal(wrong.code, 2);
    assert.match(wrong.error, /file\.frob is no operation/);
    assert.equal((await cli.run(here('policy', 'deny', 'file.delete'))).code, 0);
    assert.match((await cli.run(here('policy', 'show'))).out, /^deny +file\.delete/m);
    const wider = await cli.run(here('policy', 'allow', 'file.delete'));
    assert.match(wider.out, /waits until a person confirms/);
    assert.match((await cli.run(here('policy', 'show'))).out, /^allow +file\.delete/m);
    const file = path.join(places.configDir, 'policy.json');
    const whole = fs.readFileSync(file);
    fs.writeFileSync(file, '{"version":1,"operations":{"allow":["file.frob"]}}');
    const checked = await cli.run(here('policy', 'check'));
    assert.equal(checked.code, 1);
    assert.match(checked.error, /operations\.allow\.0/);
    fs.writeFileSync(file, whole);
    assert.equal((await cli.run(here('policy', 'check'))).code, 0);
  });

  it('who confirms a promotion is set in policy and pin alike', async () => {
    assert.equal((await cli.run(here('policy', 'promotion', 'machine'))).code, 0);
    const pin = JSON.parse(fs.readFileSync(path.join(places.ownerDir, 'pin.json'), 'utf8')) as Record<string, string>;
    assert.equal(pin['promotion'], 'machine');
    assert.equal((await cli.run(here('policy', 'promotion', 'page'))).code, 0);
  });

  describe('who confirms a promotion, where pin and policy do not say one thing', () => {
    const inPin = (): string =>
      (JSON.parse(fs.readFileSync(path.join(places.ownerDir, 'pin.json'), 'utf8')) as { promotion: string }).promotion;
    const policyFile = (): string => path.join(places.configDir, 'policy.json');
    const byHand = (confirm: 'page' | 'machine'): void => {
      const policy = JSON.parse(fs.readFileSync(policyFile(), 'utf8')) as object;
      fs.writeFileSync(policyFile(), JSON.stringify({ ...policy, promotion: { confirm } }));
    };
    const inForce = async (): Promise<string> => {
      const { out } = await cli.run(here('status', '--json'));
      const { executors } = JSON.parse(out) as {
        executors: { promotion: string; promotionDifference: string | null }[];
      };
      return `${executors[0]?.promotion}, ${executors[0]?.promotionDifference === null ? 'agreed' : 'named'}`;
    };
    const finding = async (): Promise<{ result: string; said: string; remedy: string } | undefined> => {
      const { out } = await cli.run(here('doctor', '--json'));
      const { findings } = JSON.parse(out) as {
        findings: { check: string; result: string; said: string; remedy: string }[];
      };
      return findings.find(({ check }) => check === 'promotion');
    };
    afterEach(async () => {
      assert.equal((await cli.run(here('policy', 'promotion', 'page'))).code, 0);
      assert.equal(await inForce(), 'page, agreed');
    });

    it('status, doctor and policy show the stricter, name the difference and say what writes both', async () => {
      assert.equal((await finding())?.result, 'ok');
      byHand('machine');
      assert.equal(inPin(), 'page');
      assert.equal(await inForce(), 'machine, named');
      const found = await finding();
      assert.equal(found?.result, 'failed');
      assert.match(found.said, /policy\.json says machine, the pin says page/);
      assert.match(found.remedy, /policy promotion machine/);
      assert.match((await cli.run(here('policy', 'show'))).out, /^promotion +confirmed by the machine$/m);
      assert.match((await cli.run(here('status'))).out, /confirmed by the machine\n.*the stricter holds; say/);
      assert.equal((await cli.run(here('policy', 'promotion', 'machine'))).code, 0);
      assert.equal(await inForce(), 'machine, agreed');
      byHand('page');
      assert.equal(await inForce(), 'machine, named');
    });

    it('a policy that others may write lets nobody promote, and doctor says how to mend it', async () => {
      fs.chmodSync(policyFile(), 0o666);
      assert.equal(await inForce(), 'nobody, named');
      assert.match((await finding())?.remedy ?? '', /make it 0600/);
    });

    it('what narrows is in the pin before the policy is touched, what widens after it', async () => {
      const whole = fs.readFileSync(policyFile());
      fs.writeFileSync(policyFile(), '{');
      assert.equal((await cli.run(here('policy', 'promotion', 'machine'))).code, 1);
      assert.equal(inPin(), 'machine');
      assert.equal((await cli.run(here('policy', 'promotion', 'page'))).code, 1);
      assert.equal(inPin(), 'machine');
      fs.writeFileSync(policyFile(), whole);
      assert.equal(await inForce(), 'machine, named');
    });
  });

  describe('while its daemon runs', () => {
    let ended: Promise<{ code: number | null }>;
    let stop: () => void;

    before(async () => {
      const { child, ran } = cli.start(here('daemon'));
      ended = ran;
      stop = () => void child.kill('SIGTERM');
      await until('the daemon answers', PATIENCE_MS, async () => (await isDaemonUp(places.stateDir)) || undefined);
      await until('it is online', PATIENCE_MS, () => isOnline(cli, here('status', '--json')));
      plane.confirmDescriptor();
    });
    after(async () => {
      stop();
      const { code } = await ended;
      assert.equal(code, 0);
    });

    it('a second daemon of the same folder is refused', async () => {
      const { code, error } = await cli.run(here('daemon'));
      assert.equal(code, 75, error);
    });

    it('doctor finds nothing wrong, and audit finds every row as the table says', async () => {
      const doctor = await cli.run(here('doctor', '--json'));
      assertWell(doctor.out);
      assert.equal(doctor.code, 0, doctor.error);
      const audit = await cli.run(here('audit', '--json'));
      const found = JSON.parse(audit.out) as { differences: string[]; tries: unknown[]; running: unknown };
      assert.deepEqual(found.differences, []);
      assert.ok(found.tries.length > 50 && found.running !== null);
      assert.equal(audit.code, 0, audit.error);
    });

    it('a draft is listed, reviewed line by line, confirmed at a terminal only, taken back, and discarded with its confirmation', async () => {
      const { run } = plane;
      const isFlagged = spawnSync('chattr', ['+d', path.join(root, 'a.txt')]).status === 0;
      const content = 'one\n2\n\u001b[2Jhidden\u202e\n';
      assert.equal(
        (await plane.call({ operation: 'file.write', arguments: { path: 'a.txt', content, overwrite: true } })).ending,
        'succeeded',
      );
      await plane.call({ operation: 'file.mkdir', arguments: { path: '.github', createParents: true } });
      await plane.call({ operation: 'file.write', arguments: { path: '.github/ci.yml', content: 'on: push\n' } });
      assert.match((await cli.run(here('drafts'))).out, new RegExp(run));
      const shown = await cli.run(here('review', run));
      assert.equal(shown.code, 0, shown.error);
      assert.match(shown.out, /^-two$[^]*^\+2$/m);
      assert.match(shown.out, /\\x1b\[2Jhidden\\u\{202e\}/);
      assert.ok(!shown.out.includes('\u001b') && !shown.out.includes('\u202e'));
      assert.match(shown.out, /CI/);
      assert.equal(shown.out.includes('the new file will not have: flag no dump'), isFlagged);
      const piped = await cli.run(here('review', run, '--approve'));
      assert.equal(piped.code, 3);
      assert.match(piped.error, /at a terminal/);
      const confirmations = path.join(places.ownerDir, 'confirmations');
      assert.deepEqual(fs.readdirSync(confirmations), []);
      const wrong = await cli.atTerminal(here('review', run, '--approve', '--no-pager'), [
        { when: /Type [0-9a-f]{8}/, type: 'yes' },
      ]);
      assert.equal(wrong.code, 3);
      assert.deepEqual(fs.readdirSync(confirmations), []);
      const long = Array.from({ length: 60 }, (_, line) => `line ${line}\n`).join('');
      await plane.call({ operation: 'file.write', arguments: { path: 'long.txt', content: long } });
      const cut = await cli.atTerminal(here('review', run, '--approve'), [{ when: /Enter for more/, type: 'q' }]);
      assert.equal(cut.code, 3, cut.out);
      assert.match(cut.out, /not read to its end/);
      assert.ok(!cut.out.includes('line 59'));
      assert.deepEqual(fs.readdirSync(confirmations), []);
      const typing = { when: /Type [0-9a-f]{8}/, type: (text: string) => /Type ([0-9a-f]{8})/.exec(text)?.[1] ?? '' };
      const approved = await cli.atTerminal(here('review', run, '--approve', '--no-pager'), [typing]);
      assert.equal(approved.code, 0, approved.out);
      assert.match(approved.out, /its time is that of the promotion[^]*Type [0-9a-f]{8}/);
      const [file = ''] = fs.readdirSync(confirmations);
      const text = fs.readFileSync(path.join(confirmations, file), 'utf8');
      const confirmation = JSON.parse(text) as Record<string, unknown>;
      assert.equal(file, `${String(confirmation['manifestDigest'])}.json`);
      assert.equal(confirmation['run'], run);
      assert.deepEqual(confirmation['guarded'], ['.github', '.github/ci.yml']);
      assert.equal((await cli.run(here('review', run, '--approve', '--withdraw'))).code, 2);
      assert.deepEqual(fs.readdirSync(confirmations), [file]);
      const withdrawn = await cli.run(here('review', run, '--withdraw'));
      assert.equal(withdrawn.code, 0, withdrawn.error);
      assert.deepEqual(fs.readdirSync(confirmations), []);
      assert.equal((await cli.run(here('review', run, '--withdraw'))).code, 3);
      fs.writeFileSync(path.join(confirmations, `${'a'.repeat(64)}.json`), JSON.stringify({ run: 'another', at: 1 }));
      const again = await cli.atTerminal(here('review', run, '--approve', '--no-pager'), [typing]);
      assert.equal(again.code, 0, again.out);
      assert.deepEqual(fs.readdirSync(confirmations), [file], 'one that counts no more is gone');
      assert.equal((await cli.run(here('drafts', 'discard', run))).code, 3);
      assert.deepEqual(fs.readdirSync(confirmations), [file]);
      assert.equal((await cli.run(here('drafts', 'discard', run, '--yes'))).code, 0);
      assert.deepEqual(fs.readdirSync(confirmations), [], 'a discarded draft leaves no confirmation');
      assert.match((await cli.run(here('drafts'))).out, /No draft/);
    });

    it('a trace is recorded, shown, replayed, and compared', async () => {
      const file = path.join(folder, 'day.jsonl');
      assert.equal((await cli.run(here('trace', 'record', file))).code, 0);
      assert.equal((await cli.run(here('trace', 'record', file))).code, 3, 'a file that is there is kept');
      const shown = await cli.run(here('trace', 'show', file));
      assert.match(shown.out, /online/);
      const replayed = await cli.run(here('trace', 'replay', file));
      assert.equal(replayed.code, 0, replayed.out + replayed.error);
      assert.equal((await cli.run(here('trace', 'diff', file, file))).code, 0);
      const lines = fs.readFileSync(file, 'utf8').split('\n');
      fs.writeFileSync(`${file}.less`, lines.filter((_, at) => at !== 1).join('\n'));
      assert.equal((await cli.run(here('trace', 'diff', file, `${file}.less`))).code, 1);
    });

    it('the root is not changed while the daemon runs, and repair says that nothing is broken', async () => {
      const other = path.join(folder, 'other');
      fs.mkdirSync(other, { recursive: true });
      const changed = await cli.run(here('policy', 'root', other));
      assert.equal(changed.code, 3);
      assert.match(changed.error, /stop it/);
      const repaired = await cli.run(here('repair'));
      assert.equal(repaired.code, 3);
      assert.match(repaired.error, /NOT_IN_ERROR/);
    });
  });

  describe('after its daemon ended', () => {
    it('N-232 one daemon serves a state folder; a change made while none runs raises the revision and waits at the control plane from the next connection on', async () => {
      const before = plane.descriptor;
      assert.ok(before && before.operations.includes('file.delete'));
      assert.equal((await cli.run(here('policy', 'deny', 'file.delete'))).code, 0);
      const { child, ran } = cli.start(here('daemon'));
      try {
        await until(
          'the new revision arrived',
          PATIENCE_MS,
          () => (plane.descriptor?.revision ?? 0) > before.revision || undefined,
        );
        assert.ok(!plane.descriptor?.operations.includes('file.delete'));
        const { out } = await cli.run(here('status', '--json'));
        const { executors } = JSON.parse(out) as {
          executors: { daemon: { revision: { stated: number; confirmed: number } } }[];
        };
        const revision = executors[0]?.daemon.revision;
        assert.ok(revision && revision.stated > revision.confirmed);
        const second = await cli.run(here('daemon'));
        assert.equal(second.code, 75);
        assert.match(second.error, /DAEMON_ALREADY_RUNNING/);
      } finally {
        child.kill('SIGTERM');
      }
      assert.equal((await ran).code, 0);
    });

    it('N-217 the log has one level: no variable makes it say more, and no option exists that would', async () => {
      const names = ['DEBUG', 'LOG_LEVEL', 'PINO_LEVEL', 'LEVEL', 'VERBOSE', 'NESSIE_DEBUG', 'NESSIE_LOG_LEVEL'];
      const louder = {
        ...Object.fromEntries(names.map((name) => [name, 'trace'])),
        NODE_DEBUG: 'net,tls,http',
        NODE_OPTIONS: '--trace-warnings',
      };
      const logs = [];
      for (const environment of [{}, louder]) {
        const { child, ran } = cli.start(here('daemon'), environment);
        await until('it is online', PATIENCE_MS, () => isOnline(cli, here('status', '--json')));
        child.kill('SIGTERM');
        logs.push(linesOf((await ran).error));
      }
      const [quiet = [], loud = []] = logs;
      assert.ok(quiet.length > 0 && loud.every(({ level }) => level >= 30));
      const known = new Set(quiet.map(({ code }) => code));
      assert.deepEqual(
        loud.filter(({ code }) => !known.has(code)),
        [],
      );
      for (const command of ['daemon', 'status', 'pair']) {
        assert.doesNotMatch((await cli.run([command, '--help'])).out, /--(verbose|debug|log|trace|level|quiet)/);
      }
    });

    it('the root is changed when nothing runs and no draft is left, and the pin follows', async () => {
      const other = path.join(folder, 'other');
      const before = JSON.parse(fs.readFileSync(path.join(places.ownerDir, 'pin.json'), 'utf8')) as Record<
        string,
        string
      >;
      const slot = path.join(places.stateDir, 'drafts', '00000007');
      fs.mkdirSync(slot);
      const refused = await cli.run(here('policy', 'root', other));
      assert.equal(refused.code, 3);
      assert.match(refused.error, /drafts are left/);
      fs.rmdirSync(slot);
      const changed = await cli.run(here('policy', 'root', other));
      assert.equal(changed.code, 0, changed.error);
      const after = JSON.parse(fs.readFileSync(path.join(places.ownerDir, 'pin.json'), 'utf8')) as Record<
        string,
        string
      >;
      assert.notEqual(after['rootIdentity'], before['rootIdentity']);
      assert.equal(after['commandKey'], before['commandKey']);
    });

    it('nothing is forgotten before a person answers, and then everything is', async () => {
      const piped = await cli.run(here('forget'));
      assert.equal(piped.code, 3);
      assert.ok(fs.existsSync(path.join(places.stateDir, 'key-store', 'key')));
      const wrong = await cli.atTerminal(here('forget'), [{ when: /Type default/, type: 'no' }]);
      assert.equal(wrong.code, 3);
      assert.ok(fs.existsSync(path.join(places.stateDir, 'key-store', 'key')));
      const forgotten = await cli.atTerminal(here('forget'), [{ when: /Type default/, type: 'default' }]);
      assert.equal(forgotten.code, 0, forgotten.out);
      assert.ok(!fs.existsSync(places.stateDir) && !fs.existsSync(places.configDir));
      assert.ok(fs.existsSync(root));
    });
  });
});
