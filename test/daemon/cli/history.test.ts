import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';

import { writeUndoConfirmation } from '../../../daemon/cli/confirmations.ts';
import { askDaemon } from '../../../daemon/cli/owner-client.ts';
import { promotionIdSchema } from '../../../helpers/protocol/ids.ts';
import type { PromotionId } from '../../../helpers/protocol/ids.ts';
import type { FakeControlPlane } from '../../fakes/fake-control-plane.ts';
import { attach, hasStrace } from '../../fakes/killer.ts';
import { signal } from '../../faults/processes.ts';
import { CommandLine } from '../../fixtures/command-line.ts';
import { pairedExecutor } from '../../fixtures/executor.ts';
import type { RealExecutor } from '../../fixtures/executor.ts';
import { idOf, newRun, Promotions } from '../../fixtures/promotions.ts';
import { until } from '../../fixtures/until.ts';
import { skipBecause } from '../../skip.ts';

describe('history and undo at the command line of a real executor', function () {
  this.timeout(180_000);
  let cli: CommandLine;
  let plane: FakeControlPlane;
  let executor: RealExecutor;
  let promotions: Promotions;
  let end: () => Promise<void>;

  before(async () => {
    cli = await CommandLine.build();
    ({ plane, executor, end } = await pairedExecutor());
    promotions = new Promotions(plane, executor);
  });
  after(async () => {
    await end();
    await cli.remove();
  });

  const here = (...words: string[]): string[] => ['--in', path.join(executor.base, 'executor'), ...words];
  const inRoot = (name: string): string => path.join(executor.root, name);

  /** Promotes a new file in place of an old one; the id of the promotion and the two names. */
  async function promoted(): Promise<{ id: string; made: string; gone: string }> {
    const run = newRun();
    const [made, gone] = [`${run}.made`, `${run}.gone`];
    fs.writeFileSync(inRoot(gone), 'old\n', { mode: 0o640 });
    const { uid, gid } = fs.statSync(executor.root);
    fs.chownSync(inRoot(gone), uid, gid);
    await promotions.draft(run, made, 'new\n');
    const deleted = await plane.call({ operation: 'file.delete', arguments: { path: gone }, run });
    assert.equal(deleted.ending, 'succeeded', JSON.stringify(deleted.result));
    const frame = await promotions.approved(run);
    plane.deliver(frame);
    const { ending, result } = await promotions.told(idOf(frame));
    assert.equal(ending, 'succeeded', JSON.stringify(result));
    // The result that operations.ts gives for workspace.promote.
    return { id: (result as { promotionId: string }).promotionId, made, gone };
  }

  it('a promotion is listed, shown, and taken back with --yes; then it is undone already, and its undo can be undone', async () => {
    const { id, made, gone } = await promoted();
    const listed = await cli.run(here('history'));
    assert.equal(listed.code, 0, listed.error);
    assert.match(
      listed.out,
      new RegExp(`${id}  \\d{4}-\\d\\d-\\d\\d .*run_[0-9a-f]{32}  2 .*1 file, 4 bytes  can be undone`),
    );
    assert.match(listed.out, /By "history" in policy\.json up to 1024 MiB of the last 30 days can be undone\./);
    const unasked = await cli.run(here('undo', id));
    assert.deepEqual([unasked.code, /say --yes/.test(unasked.error)], [3, true], unasked.error);
    assert.ok(fs.existsSync(inRoot(made)));
    const { code, out, error } = await cli.run(here('undo', id, '--yes'));
    assert.equal(code, 0, error);
    assert.match(out, new RegExp(`^\\+ ${gone}  comes back\n- ${made}  goes away\n`));
    assert.deepEqual([fs.existsSync(inRoot(made)), fs.readFileSync(inRoot(gone), 'utf8')], [false, 'old\n']);
    assert.equal(fs.statSync(inRoot(gone)).mode & 0o7777, 0o640);
    assert.deepEqual(fs.readdirSync(path.join(executor.places.ownerDir, 'confirmations')), []);
    const again = await cli.run(here('undo', id, '--yes'));
    assert.deepEqual([again.code, /undone already/.test(again.error)], [3, true], again.error);
    const json = JSON.parse((await cli.run(here('history', '--json'))).out) as {
      limits: { megabytes: number };
      promotions: { promotion: string; facts: { undoes: string | null } }[];
    };
    assert.equal(json.limits.megabytes, 1024);
    const undo = json.promotions.find(({ facts }) => facts.undoes === id);
    const redone = await cli.run(here('undo', undo?.promotion ?? '', '--yes', '--json'));
    assert.equal(redone.code, 0, redone.error);
    assert.equal((JSON.parse(redone.out) as { outcome: string }).outcome, 'undone');
    assert.deepEqual([fs.existsSync(inRoot(made)), fs.existsSync(inRoot(gone))], [true, false]);
    assert.match(executor.log, new RegExp(`PROMOTION_UNDONE.*${id}`));
  });

  it('a person at a terminal types the last eight digits, and anything else undoes nothing', async function () {
    const { id, made } = await promoted();
    const typing = (type: string) => [{ when: /Type [0-9a-f]{8}/, type }];
    const wrong = await cli.atTerminal(here('undo', id), typing('yes'));
    if (/script: not found|ENOENT/.test(wrong.error)) return skipBecause(this, 'the script program');
    assert.equal(wrong.code, 3, wrong.out);
    assert.ok(fs.existsSync(inRoot(made)));
    const right = await cli.atTerminal(here('undo', id), typing(id.slice(-8)));
    assert.equal(right.code, 0, right.out);
    assert.ok(!fs.existsSync(inRoot(made)));
  });

  it('a promotion whose files were changed since is refused, with path and remedy, before and after it was confirmed', async () => {
    const { id, made, gone } = await promoted();
    fs.appendFileSync(inRoot(made), 'mine\n');
    const { code, out, error } = await cli.run(here('undo', id, '--yes'));
    assert.equal(code, 3);
    assert.equal(out, `changed since: ${made}\n`);
    assert.match(error, /it cannot be undone \(changed since\); make it again what the promotion left/);
    assert.match((await cli.run(here('history'))).out, new RegExp(`${id} .*no, changed since: ${made}`));
    const promotion = promotionIdSchema.parse(id);
    assert.deepEqual(await askDaemon(executor.places.stateDir, 'daemon.undo', { promotion }), {
      outcome: 'refused',
      code: 'PROMOTION_CONFIRMATION_REQUIRED',
    });
    assert.deepEqual([fs.readFileSync(inRoot(made), 'utf8'), fs.existsSync(inRoot(gone))], ['new\nmine\n', false]);
  });

  for (const [sentence, inject, outcome] of [
    [
      'while it places files is told as rolled back, and can be asked for again',
      'renameat2:signal=KILL:when=7',
      'rolled-back',
    ],
    ['after its commit is told as undone', 'unlinkat:signal=KILL:when=5', 'undone'],
  ] as const) {
    it(`an undo whose promote dies ${sentence}`, async function () {
      if (!hasStrace()) skipBecause(this, 'strace');
      const { id, made, gone } = await promoted();
      const promotion = promotionIdSchema.parse(id);
      await confirmed(promotion);
      await until('the promote that was looked with has ended', () => promotions.pid() === undefined || undefined);
      const asked = askDaemon(executor.places.stateDir, 'daemon.undo', { promotion });
      const promote = await promotions.freeze();
      const tracer = await attach(promote, [inject]);
      signal(promote, 'SIGCONT');
      assert.equal((await asked).outcome, outcome);
      await tracer.detach();
      const isUndone = outcome === 'undone';
      assert.deepEqual([fs.existsSync(inRoot(made)), fs.existsSync(inRoot(gone))], [!isUndone, isUndone]);
      if (isUndone) return;
      await confirmed(promotion);
      const again = await askDaemon(executor.places.stateDir, 'daemon.undo', { promotion });
      assert.deepEqual(again, { outcome: 'undone', kept: [] });
    });
  }

  /** Writes what the command line writes once the owner confirmed an undo. */
  async function confirmed(promotion: PromotionId): Promise<void> {
    const plan = await askDaemon(executor.places.stateDir, 'daemon.undo-plan', { promotion, from: 0 });
    assert.ok(plan.outcome === 'possible', JSON.stringify(plan));
    const { journalDigest, rootIdentity } = plan;
    writeUndoConfirmation(executor.places, {
      version: 1,
      undo: promotion,
      journalDigest,
      rootIdentity,
      at: Date.now(),
    });
  }

  it('an undo and promotions that are asked for together come one after the other', async () => {
    const { id, made } = await promoted();
    const run = newRun();
    await promotions.draft(run, `${run}.beside`, 'beside');
    const frame = await promotions.approved(run);
    plane.deliver(frame);
    const [undone, { ending }] = await Promise.all([cli.run(here('undo', id, '--yes')), promotions.told(idOf(frame))]);
    assert.deepEqual([undone.code, ending], [0, 'succeeded'], undone.error);
    assert.deepEqual([fs.existsSync(inRoot(made)), fs.existsSync(inRoot(`${run}.beside`))], [false, true]);
  });
});
