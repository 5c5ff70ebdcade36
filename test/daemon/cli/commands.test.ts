import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

import { defaultPolicy } from '../../../daemon/config.ts';
import { encode } from '../../../helpers/protocol/codec.ts';
import { CommandLine } from '../../fixtures/command-line.ts';

describe('the command line', function () {
  this.timeout(180_000);
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
    'a promotion that is none': [['--in', '/nowhere', 'undo', 'prm_1'], 2, /that is no promotion/],
    'an undo as JSON that would have to ask': [
      ['--in', '/nowhere', 'undo', `prm_${'1'.repeat(32)}`, '--json'],
      2,
      /say --yes/,
    ],
    'an undo without a daemon': [['--in', '/nowhere', 'undo', `prm_${'1'.repeat(32)}`], 4, /does not run/],
    'a history without a daemon': [['--in', '/nowhere', 'history'], 4, /does not run; start it with/],
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

  it('N-057 no flag, no variable and no key of the policy turns an origin into plain text', async () => {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'plain-'));
    try {
      const flags = [
        [],
        ['--ca', '/etc/hostname'],
        ['--whole-home'],
        ['--machine-name', 'box'],
        ['--no-qr'],
        ['--replace'],
        ['--request', `req_${'a'.repeat(32)}`, '--challenge', Buffer.alloc(32).toString('base64url')],
      ];
      const { out: help } = await cli.run(['pair', '--help']);
      const known = [...help.matchAll(/^ {2}(--[a-z-]+)/gm)].map(([, flag]) => flag ?? '').toSorted();
      const tried = [
        '--cancel',
        '--origin',
        '--root',
        ...flags.flat().filter((flag) => flag.startsWith('--')),
      ].toSorted();
      assert.deepEqual(known, tried, 'every flag is tried');
      for (const variable of ['0', '1', 'true']) {
        for (const flag of flags) {
          const words = [
            '--in',
            path.join(folder, 'x'),
            'pair',
            '--root',
            '/usr',
            '--origin',
            'http://control.example',
            ...flag,
          ];
          const { code, error } = await cli.run(words, {
            NESSIE_ALLOW_LOOPBACK_HTTP: variable,
            NODE_TLS_REJECT_UNAUTHORIZED: '0',
          });
          assert.equal(code, 3, error);
          assert.match(error, /must be https, and no flag or variable changes that/);
        }
      }
      assert.deepEqual(fs.readdirSync(folder), []);
      const keys = Object.keys(defaultPolicy()).toSorted();
      assert.deepEqual(keys, ['difference', 'history', 'ignore', 'limits', 'operations', 'promotion', 'version']);
    } finally {
      fs.rmSync(folder, { recursive: true });
    }
  });

  it('a trace becomes a page in a new file, or on standard output, and an empty one becomes none', async () => {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'trace-'));
    try {
      const [golden, page] = ['test/traces/command/started-succeeded.jsonl', path.join(folder, 'trace.html')];
      const first = await cli.run(['trace', 'view', golden, '--output', page]);
      assert.deepEqual([first.code, first.out], [0, '7 lines written as a page; open it in a browser\n'], first.error);
      assert.equal(fs.statSync(page).mode & 0o777, 0o600);
      assert.equal(
        (await cli.run(['trace', 'view', golden, '--output', page])).code,
        3,
        'a file that is there is kept',
      );
      const piped = await cli.run(['trace', 'view', golden, '--output', '-']);
      assert.equal(piped.out, fs.readFileSync(page, 'utf8'));
      fs.writeFileSync(path.join(folder, 'empty.jsonl'), '');
      const empty = await cli.run(['trace', 'view', path.join(folder, 'empty.jsonl'), '--output', '-']);
      assert.deepEqual([empty.code, empty.out], [2, '']);
    } finally {
      fs.rmSync(folder, { recursive: true });
    }
  });

  it('a trace is exported to standard output or to a new file, in a form that it must name', async () => {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'trace-'));
    try {
      const [golden, file] = ['test/traces/command/started-succeeded.jsonl', path.join(folder, 'spans.json')];
      const drawn = await cli.run(['trace', 'export', golden, '--to', 'mermaid']);
      assert.deepEqual([drawn.code, drawn.out.split('\n')[0]], [0, 'stateDiagram-v2']);
      const written = await cli.run(['trace', 'export', golden, '--to', 'otel', '--output', file, '--json']);
      assert.deepEqual(JSON.parse(written.out), { to: 'otel', lines: 7, actors: 1 });
      assert.ok('resourceSpans' in JSON.parse(fs.readFileSync(file, 'utf8')));
      assert.equal((await cli.run(['trace', 'export', golden, '--to', 'otel', '--output', file])).code, 3);
      assert.equal((await cli.run(['trace', 'export', golden, '--to', 'otel', '--json'])).code, 2);
      assert.equal((await cli.run(['trace', 'export', golden])).code, 2);
    } finally {
      fs.rmSync(folder, { recursive: true });
    }
  });

  it('a machine is walked at a terminal by numbers, taken back, saved as a trace that replays', async () => {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'walk-'));
    try {
      const file = path.join(folder, 'walk.jsonl');
      const ran = await cli.atTerminal(
        ['trace', 'walk', 'command'],
        [
          { when: /can begin with:.*J> /s, type: '1' },
          { when: /queued.*J> /s, type: '9' },
          { when: /Say a number .*J> /s, type: '3' },
          { when: /cancelled is the end\..*J> /s, type: 'u' },
          { when: /queued.*J> /s, type: '1' },
          { when: /leased.*J> /s, type: `s ${file}` },
          { when: /2 lines saved.*J> /s, type: 'q' },
        ],
      );
      assert.equal(ran.code, 0, ran.out);
      assert.equal(
        (await cli.run(['trace', 'replay', file])).out,
        'replayed: 2 lines of 1 actor, every state reproduced\n',
      );
    } finally {
      fs.rmSync(folder, { recursive: true });
    }
  });

  it('a walk is given its events as a file and tells as JSON where they lead; an event out of place ends it', async () => {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'walk-'));
    try {
      const [events, file] = [path.join(folder, 'events.jsonl'), path.join(folder, 'walk.jsonl')];
      const input = { type: 'xstate.init', input: { commandId: 'cmd-1', executorId: 'exec-1' } };
      fs.writeFileSync(events, `${JSON.stringify(input)}\n{"type":"command.cancel","by":"person"}\n`);
      const { code, out } = await cli.run(['trace', 'walk', 'command', '--events', events, '--save', file, '--json']);
      const { value, status, states, choices, lines } = JSON.parse(out) as Record<string, unknown[]>;
      assert.deepEqual([code, value, status, choices, lines?.length], [0, 'cancelled', 'done', [], 2]);
      assert.match(JSON.stringify(states), /ended because somebody asked/);
      assert.equal((await cli.run(['trace', 'replay', file])).code, 0);
      fs.appendFileSync(events, '{"type":"command.lease"}\n');
      const late = await cli.run(['trace', 'walk', 'command', '--events', events, '--json']);
      assert.equal(late.code, 1);
      assert.match(late.error, /event 3: cancelled is the end/);
      fs.writeFileSync(events, '[]\n');
      assert.equal((await cli.run(['trace', 'walk', 'command', '--events', events, '--json'])).code, 2);
      assert.equal((await cli.run(['trace', 'walk', 'other'])).code, 2);
    } finally {
      fs.rmSync(folder, { recursive: true });
    }
  });

  it('every command for traces on the integrators’ page ends well', async () => {
    const page = fs.readFileSync('docs/integrators.md', 'utf8');
    const block = (name: string): string =>
      new RegExp(`^\`\`\`${name}\\n([\\s\\S]*?)^\`\`\`$`, 'm').exec(page)?.[1] ?? '';
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'page-'));
    try {
      fs.cpSync('test/traces/command/started-succeeded.jsonl', path.join(folder, 'trace.jsonl'));
      fs.writeFileSync(path.join(folder, 'events.jsonl'), block('json events'));
      const lines = block('sh traces').trim().split('\n');
      assert.equal(lines.length, 7);
      for (const line of lines) {
        const [program, ...words] = line.split(' ');
        assert.equal(program, 'nessie-executor');
        const here = words.map((word) => (/\.(jsonl?|html)$/.test(word) ? path.join(folder, word) : word));
        const ran = await cli.run(here);
        assert.equal(ran.code, 0, `${line}: ${ran.error}`);
      }
      const names = ['events.jsonl', 'spans.json', 'trace.html', 'trace.jsonl', 'walk.jsonl'];
      assert.deepEqual(fs.readdirSync(folder).toSorted(), names);
    } finally {
      fs.rmSync(folder, { recursive: true });
    }
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
