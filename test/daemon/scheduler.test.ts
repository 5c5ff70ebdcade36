import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { Scheduler } from '../../daemon/scheduler.ts';
import { commandIdSchema, runIdSchema } from '../../helpers/protocol/ids.ts';

const command = () => commandIdSchema.parse(`cmd_${randomBytes(16).toString('hex')}`);
const run = () => runIdSchema.parse(`run_${randomBytes(16).toString('hex')}`);

describe('scheduler', () => {
  it('lets commands of one run wait for each other and those of other runs go on', () => {
    const turns: string[] = [];
    const scheduler = new Scheduler(
      () => 8,
      (id) => turns.push(id),
    );
    const [slowRun, otherRun] = [run(), run()];
    const [slow, queued, other] = [command(), command(), command()];
    scheduler.enqueue(slowRun, slow);
    scheduler.enqueue(slowRun, queued);
    scheduler.enqueue(otherRun, other);
    assert.deepEqual(turns, [slow, other]);
    scheduler.release(slowRun, slow);
    assert.deepEqual(turns, [slow, other, queued]);
  });

  it('drops a command that ended before its turn came', () => {
    const turns: string[] = [];
    const scheduler = new Scheduler(
      () => 8,
      (id) => turns.push(id),
    );
    const one = run();
    const [first, cancelled, last] = [command(), command(), command()];
    for (const id of [first, cancelled, last]) scheduler.enqueue(one, id);
    scheduler.release(one, cancelled);
    scheduler.release(one, first);
    assert.deepEqual(turns, [first, last]);
    scheduler.release(one, last);
    assert.equal(scheduler.held, 0);
  });

  it('keeps order within a run, the limit over all, and forgets nobody', () => {
    const runs = [run(), run(), run(), run()] as const;
    fc.assert(
      fc.property(
        fc.array(fc.nat(3), { minLength: 1, maxLength: 60 }),
        fc.integer({ min: 1, max: 5 }),
        (owners, limit) => {
          const active: { id: string; owner: number }[] = [];
          const served: number[][] = [[], [], [], []];
          const known = new Map<string, { owner: number; place: number }>();
          const scheduler = new Scheduler(
            () => limit,
            (id) => {
              const { owner, place } = known.get(id) ?? { owner: -1, place: -1 };
              assert.ok(!active.some((other) => other.owner === owner), 'one of the run is still active');
              active.push({ id, owner });
              served[owner]?.push(place);
              assert.ok(active.length <= limit);
            },
          );
          owners.forEach((owner, place) => {
            const id = command();
            known.set(id, { owner, place });
            scheduler.enqueue(runs[owner as 0], id);
          });
          while (active.length > 0) {
            const next = active.shift();
            if (next) scheduler.release(runs[next.owner as 0], commandIdSchema.parse(next.id));
          }
          assert.equal(scheduler.held, 0);
          assert.equal(served.flat().length, owners.length);
          for (const order of served)
            assert.deepEqual(
              order,
              order.toSorted((a, b) => a - b),
            );
        },
      ),
    );
  });
});
