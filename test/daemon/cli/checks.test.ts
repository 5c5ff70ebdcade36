import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

import { placesIn } from '../../../daemon/cli/places.ts';
import { writeSetUp } from '../../../daemon/cli/set-up.ts';
import type { ReceiptExport } from '../../../helpers/protocol/receipt-chain.ts';
import { CommandLine } from '../../fixtures/command-line.ts';
import { makeChain, makeSide } from '../../fixtures/receipt-chain.ts';
import { startControlPlane } from '../../server/control-plane.ts';
import { openRunOn } from '../../server/work-run.ts';

type Finding = { readonly check: string; readonly result: string; readonly said: string; readonly remedy: string };

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

describe('what an owner can check', function () {
  this.timeout(180_000);
  let cli: CommandLine;
  let folder: string;

  before(async () => {
    cli = await CommandLine.build();
  });
  after(() => cli.remove());
  beforeEach(() => {
    folder = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), 'checks-')));
    fs.mkdirSync(path.join(folder, 'project'));
  });
  afterEach(() => fs.rmSync(folder, { recursive: true, force: true }));

  async function doctor(dist = cli.dist): Promise<ReadonlyMap<string, Finding>> {
    const { out } = await cli.run(['--in', path.join(folder, 'executor'), 'doctor', '--json'], {}, dist);
    const { findings } = JSON.parse(out) as { findings: Finding[] };
    return new Map(findings.map((finding) => [finding.check, finding]));
  }
  const places = () => placesIn(path.join(folder, 'executor'));

  const setUp = () =>
    writeSetUp({ places: places(), origin: 'https://127.0.0.1:1', root: path.join(folder, 'project') });

  const keyFile = () => path.join(places().stateDir, 'key-store', 'key');
  const makeKey = (mode: number): void => {
    fs.mkdirSync(path.dirname(keyFile()), { mode: 0o700 });
    fs.writeFileSync(keyFile(), 'x', { mode });
    fs.chmodSync(keyFile(), mode);
  };

  describe('receipts', () => {
    it('one command verifies an export without a network, and names the entry that was altered', async () => {
      const sides = { machine: makeSide(), control: makeSide() };
      const file = path.join(folder, 'receipts.json');
      const keys = ['--machine-key', hex(sides.machine.key.bytes), '--control-key', hex(sides.control.key.bytes)];
      const chain = makeChain(sides);
      fs.writeFileSync(file, JSON.stringify(chain));
      const whole = await cli.run(['receipts', 'verify', file, ...keys]);
      assert.equal(whole.code, 0, whole.error);
      assert.match(whole.out, /verified: 6 entries of cmd_[0-9a-f]{32}, ended as succeeded, countersigned/);
      const [first, second, , ...rest] = chain.statements;
      fs.writeFileSync(file, JSON.stringify({ ...chain, statements: [first, second, ...rest] }));
      const removed = await cli.run(['receipts', 'verify', file, ...keys, '--json']);
      assert.equal(removed.code, 1);
      assert.match(removed.error, /entry 3 \(machine\.started\)/);
      assert.equal((JSON.parse(removed.out) as { ok: boolean }).ok, false);
    });

    it('N-513 a command’s chain is signed on both sides, exported from the page, and verified by one command that names what was altered, removed, reordered or invented', async () => {
      const plane = await startControlPlane();
      try {
        const paired = await plane.pair();
        const { run } = await openRunOn(plane, paired);
        assert.equal((await run.call('file.mkdir', { path: 'd' })).end?.outcome, 'succeeded');
        const { id } = await plane.context.store.read.selectFrom('commands').select('id').executeTakeFirstOrThrow();
        const { status, body } = await plane.page('GET', `/api/page/commands/${id}/receipts`);
        assert.equal(status, 200);
        const chain = body as ReceiptExport;
        await plane.halt();
        const file = path.join(folder, 'receipts.json');
        const keys = ['--machine-key', hex(paired.key.publicKey), '--control-key', hex(plane.key.publicKey)];
        const verify = (statements: ReceiptExport['statements']) => {
          fs.writeFileSync(file, JSON.stringify({ ...chain, statements }));
          return cli.run(['receipts', 'verify', file, ...keys]);
        };
        const whole = await verify(chain.statements);
        assert.equal(whole.code, 0, whole.error);
        assert.match(whole.out, /verified: 6 entries .* ended as succeeded, countersigned/);
        const { statements } = chain;
        assert.deepEqual(
          statements.map(({ type }) => type.split('.')[0]),
          ['control', 'control', 'machine', 'machine', 'machine', 'control'],
        );
        const [first, second, third, fourth, ...rest] = statements;
        assert.ok(first && second && third && fourth);
        const payload = Buffer.from(third.payload, 'base64');
        payload.writeUInt8(payload.readUInt8(payload.length - 1) ^ 1, payload.length - 1);
        const stranger = makeChain({ machine: makeSide(), control: makeSide() }).statements[2];
        assert.ok(stranger);
        const lies: Readonly<Record<string, ReceiptExport['statements']>> = {
          altered: statements.with(2, { ...third, payload: payload.toString('base64') }),
          removed: [first, second, fourth, ...rest],
          reordered: [first, second, fourth, third, ...rest],
          invented: [first, second, stranger, third, fourth, ...rest],
        };
        for (const [lie, told] of Object.entries(lies)) {
          const { code, error } = await verify(told);
          assert.equal(code, 1, lie);
          assert.match(error, /entry 3 \(machine\./, lie);
        }
      } finally {
        await plane.stop();
      }
    });

    it('a key that is none is a mistake of the command line', async () => {
      const file = path.join(folder, 'receipts.json');
      fs.writeFileSync(file, JSON.stringify(makeChain({ machine: makeSide(), control: makeSide() })));
      for (const key of ['x', '00'.repeat(32), `01${'00'.repeat(31)}`]) {
        const { code, error } = await cli.run(['receipts', 'verify', file, '--machine-key', key, '--control-key', key]);
        assert.equal(code, 2);
        assert.match(error, /is no public key/);
      }
    });
  });

  describe('doctor', () => {
    it('nothing set up is said with the command that sets up', async () => {
      const findings = await doctor();
      for (const check of ['configuration', 'policy'])
        assert.match(findings.get(check)?.said ?? '', /nessie-executor pair/);
    });

    const causes: Record<string, [check: string, said: RegExp, cause: () => void]> = {
      'a state folder that others can enter': [
        'state folder',
        /others can enter/,
        () => fs.chmodSync(places().stateDir, 0o755),
      ],
      'a key that others can read': ['key storage', /others can read/, () => makeKey(0o644)],
      'a key with a second name': [
        'key storage',
        /second name/,
        () => {
          makeKey(0o600);
          fs.linkSync(keyFile(), path.join(folder, 'copy'));
        },
      ],
      'a root that is gone': ['root', /is gone/, () => fs.rmdirSync(path.join(folder, 'project'))],
      'a root that was replaced by a link': [
        'root',
        /not the folder that it was/,
        () => {
          fs.rmdirSync(path.join(folder, 'project'));
          fs.symlinkSync(os.tmpdir(), path.join(folder, 'project'));
        },
      ],
      'a policy that is no JSON': [
        'policy',
        /not JSON/,
        () => fs.writeFileSync(path.join(places().configDir, 'policy.json'), '{'),
      ],
      'a policy with an unknown key': [
        'policy',
        /operations\.allow/,
        () =>
          fs.writeFileSync(path.join(places().configDir, 'policy.json'), '{"version":1,"operations":{"allow":["x"]}}'),
      ],
      'a configuration that is damaged': [
        'configuration',
        /expected JSON/,
        () => fs.writeFileSync(path.join(places().stateDir, 'supervisor.json'), '{'),
      ],
      'an origin where nobody listens': ['origin', /cannot be connected to \(ECONNREFUSED\)/, () => undefined],
    };
    for (const [what, [check, said, cause]] of Object.entries(causes)) {
      it(`${what} is found, with a remedy and without a path`, async () => {
        setUp();
        cause();
        const finding = (await doctor()).get(check);
        assert.equal(finding?.result, 'failed');
        assert.match(finding.said, said);
        assert.ok(finding.remedy !== '' || /;|run `/.test(finding.said), `a remedy: ${finding.said}`);
        assert.ok(!`${finding.said}${finding.remedy}`.includes(folder));
      });
    }

    it('a program that is not the one that was built is named, by doctor and audit alike', async () => {
      setUp();
      const altered = path.join(folder, 'dist');
      fs.cpSync(cli.dist, altered, { recursive: true });
      fs.appendFileSync(path.join(altered, 'key-store.mjs'), '\n');
      assert.match((await doctor(altered)).get('programs')?.said ?? '', /key-store\.mjs is not the one that was built/);
      const { code, error } = await cli.run(['--in', path.join(folder, 'executor'), 'audit'], {}, altered);
      assert.equal(code, 78);
      assert.match(error, /key-store\.mjs/);
    });
  });
});
