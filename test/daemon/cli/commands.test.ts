import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

import { encode } from '../../../helpers/protocol/codec.ts';
import { FakeControlPlane } from '../../fakes/fake-control-plane.ts';
import { CommandLine } from '../../fixtures/command-line.ts';
import { until } from '../../fixtures/until.ts';
import { isDaemonUp } from '../../../daemon/cli/owner-client.ts';
import { placesIn } from '../../../daemon/cli/places.ts';
import type { Places } from '../../../daemon/cli/places.ts';
import { skipBecause } from '../../skip.ts';

describe('the command line', function () {
  this.timeout(90_000);
  let cli: CommandLine;

  before(async () => {
    cli = await CommandLine.build();
  });
  after(() => cli.remove());

  it('says version and digest of the installation', async () => {
    const { code, out } = await cli.run(['--version']);
    assert.equal(code, 0);
    assert.match(out, /^\d+\.\d+\.\d+ \(installation [0-9a-f]{64}\)\n$/);
  });

  it('help of every command ends well and shows what the command is for', async () => {
    const { out } = await cli.run(['--help']);
    const commands = [...out.matchAll(/^ {2}([a-z][a-z-]*) /gm)]
      .map(([, name]) => name ?? '')
      .filter((name) => name !== 'help' && name !== 'server');
    assert.ok(commands.length >= 13, out);
    for (const command of commands) {
      const help = await cli.run([command, '--help']);
      assert.equal(help.code, 0, command);
      assert.match(help.out, /^Usage: nessie-executor /);
    }
    assert.match(out, /Exit codes:/);
  });

  const mistakes: Record<string, [string[], number, RegExp]> = {
    'a command that does not exist': [['frob'], 2, /unknown command/],
    'an option that does not exist': [['status', '--frob'], 2, /unknown option/],
    'a missing argument': [['review'], 2, /missing required argument/],
    'a run that is none': [['--in', '/nowhere', 'review', '../../etc'], 2, /that is no run/],
    'a name that is none': [['--name', '../x', 'drafts'], 2, /is no name/],
    'a daemon that does not run': [['--in', '/nowhere', 'drafts'], 4, /does not run/],
    'an executor that was never set up': [['--in', '/nowhere', 'daemon'], 3, /no executor here/],
    'a file that is no export': [
      ['receipts', 'verify', '/etc/hostname', '--machine-key', 'a'.repeat(64), '--control-key', 'b'.repeat(64)],
      1,
      /no export/,
    ],
    'a trace that is none': [['trace', 'replay', '/etc/hostname'], 1, /otherwise than the trace says/],
    'two roots': [
      ['--in', '/nowhere', 'pair', '--origin', 'https://a.example', '--root', '/tmp', '--root', '/var'],
      2,
      /one root/,
    ],
    'no root': [['--in', '/nowhere', 'pair', '--origin', 'https://a.example'], 2, /--root FOLDER/],
    'no origin': [['--in', '/nowhere', 'pair', '--root', '/tmp'], 2, /--origin/],
    'an origin without TLS': [
      ['--in', '/nowhere', 'pair', '--root', '/usr', '--origin', 'http://a.example'],
      3,
      /must be https/,
    ],
    'the whole machine as root': [
      ['--in', '/nowhere', 'pair', '--root', '/', '--origin', 'https://a.example'],
      3,
      /cannot be the root/,
    ],
    'a root that holds the executor itself': [
      ['--in', '/usr/x', 'pair', '--root', '/usr', '--origin', 'https://a.example'],
      3,
      /inside one another/,
    ],
    'half an enrolment': [
      ['--in', '/nowhere', 'pair', '--root', '/tmp', '--origin', 'https://a.example', '--request', 'x'],
      2,
      /--request/,
    ],
  };
  for (const [what, [words, code, sentence]] of Object.entries(mistakes)) {
    it(`${what} ends with one sentence, code ${code}, no stack and nothing written`, async () => {
      const ran = await cli.run(words);
      assert.equal(ran.code, code, ran.error);
      assert.match(ran.error, sentence);
      assert.doesNotMatch(ran.error, /\n {4}at |\.ts:|\.mjs:/);
      assert.ok(!fs.existsSync('/nowhere') && !fs.existsSync('/usr/x'));
    });
  }

  describe('a whole life', () => {
    let folder: string;
    let root: string;
    let places: Places;
    let plane: FakeControlPlane;
    const here = (...words: string[]): string[] => ['--in', path.join(folder, 'executor'), ...words];

    before(async function () {
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
      assert.match(shown.out, /^allow +file\.read/m);
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

    describe('while its daemon runs', () => {
      let ended: Promise<{ code: number | null }>;
      let stop: () => void;

      before(async () => {
        const { child, ran } = cli.start(here('daemon'));
        ended = ran;
        stop = () => void child.kill('SIGTERM');
        await until('the daemon answers', async () => (await isDaemonUp(places.stateDir)) || undefined);
        await until('it is online', async () => {
          const { out } = await cli.run(here('status', '--json'));
          const { executors } = JSON.parse(out) as { executors: { daemon: { state: string } | null }[] };
          return executors[0]?.daemon?.state === 'online' || undefined;
        });
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
        const { findings } = JSON.parse(doctor.out) as { findings: { check: string; result: string; said: string }[] };
        assert.deepEqual(
          findings.filter(({ result }) => result === 'failed'),
          [],
        );
        assert.equal(doctor.code, 0, doctor.error);
        const audit = await cli.run(here('audit', '--json'));
        const found = JSON.parse(audit.out) as { differences: string[]; tries: unknown[]; running: unknown };
        assert.deepEqual(found.differences, []);
        assert.ok(found.tries.length > 50 && found.running !== null);
        assert.equal(audit.code, 0, audit.error);
      });

      it('a draft is listed, reviewed line by line, confirmed at a terminal only, and discarded', async () => {
        const { run } = plane;
        const content = 'one\n2\n\u001b[2Jhidden\u202e\n';
        assert.equal(
          (await plane.call({ operation: 'file.write', arguments: { path: 'a.txt', content, overwrite: true } }))
            .ending,
          'succeeded',
        );
        await plane.call({ operation: 'file.mkdir', arguments: { path: '.github', createParents: true } });
        await plane.call({ operation: 'file.write', arguments: { path: '.github/ci.yml', content: 'on: push\n' } });
        assert.match((await cli.run(here('drafts'))).out, new RegExp(run));
        const shown = await cli.run(here('review', run));
        assert.equal(shown.code, 0, shown.error);
        assert.match(shown.out, /^-two$/m);
        assert.match(shown.out, /^\+2$/m);
        assert.match(shown.out, /\\x1b\[2Jhidden\\u\{202e\}/);
        assert.ok(!shown.out.includes('\u001b') && !shown.out.includes('\u202e'));
        assert.match(shown.out, /CI/);
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
        const typing = { when: /Type [0-9a-f]{8}/, type: (text: string) => /Type ([0-9a-f]{8})/.exec(text)?.[1] ?? '' };
        const approved = await cli.atTerminal(here('review', run, '--approve', '--no-pager'), [typing]);
        assert.equal(approved.code, 0, approved.out);
        const [file = ''] = fs.readdirSync(confirmations);
        const confirmation = JSON.parse(fs.readFileSync(path.join(confirmations, file), 'utf8')) as Record<
          string,
          unknown
        >;
        assert.equal(file, `${String(confirmation['manifestDigest'])}.json`);
        assert.equal(confirmation['run'], run);
        assert.deepEqual(confirmation['guarded'], ['.github', '.github/ci.yml']);
        assert.equal((await cli.run(here('drafts', 'discard', run))).code, 3);
        assert.equal((await cli.run(here('drafts', 'discard', run, '--yes'))).code, 0);
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

  it('bytes that a trace may not hold are refused without being shown', async () => {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'trace-'));
    try {
      const file = path.join(folder, 'hostile');
      fs.writeFileSync(file, Buffer.concat([encode({ a: '\u001b[2J' }), Buffer.from('\n')]));
      const { code, out, error } = await cli.run(['trace', 'show', file]);
      assert.equal(code, 1);
      assert.ok(!`${out}${error}`.includes('\u001b'));
    } finally {
      fs.rmSync(folder, { recursive: true });
    }
  });
});
