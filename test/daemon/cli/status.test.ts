import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { PassThrough } from 'node:stream';

import { CliFailure } from '../../../daemon/cli/failure.ts';
import { placesIn } from '../../../daemon/cli/places.ts';
import { writePin, writeSetUp } from '../../../daemon/cli/set-up.ts';
import type { PairedState } from '../../../daemon/cli/set-up.ts';
import { status } from '../../../daemon/cli/status.ts';
import type { ExecutorFacts } from '../../../daemon/cli/status.ts';
import type { Terminal } from '../../../daemon/cli/terminal.ts';

function recording(): { terminal: Terminal; said: () => string } {
  const out = new PassThrough();
  let text = '';
  out.on('data', (bytes: Buffer) => (text += bytes.toString()));
  // A pipe stands where a terminal would; `status` only writes.
  const terminal = { out, error: out, input: out, isColoured: false } as unknown as Terminal;
  return { terminal, said: () => text };
}

describe('status of several executors', () => {
  let folder: string;
  const ids = ['a', 'b', 'c'].map((digit) => `exr_${digit.repeat(32)}`);

  beforeEach(() => {
    folder = fs.mkdtempSync(path.join(os.tmpdir(), 'status-'));
  });
  afterEach(() => fs.rmSync(folder, { recursive: true }));

  const paired = (count: number) =>
    ids.slice(0, count).map((executor) => {
      const places = { ...placesIn(path.join(folder, executor)), name: executor.slice(4, 8) };
      const root = path.join(folder, `root-${executor}`);
      fs.mkdirSync(root);
      writeSetUp({ places, origin: 'https://no-such-name.invalid', root });
      const pin = { state: 'paired', executor, commandKey: Buffer.alloc(32), rootIdentity: Buffer.alloc(32) };
      // No more of a pairing is needed for a pin.
      writePin({ places, paired: pin as unknown as PairedState, confirm: 'page' });
      return places;
    });

  for (const count of [0, 1, 3]) {
    it(`${count} of them are listed, although the control plane has no address`, async () => {
      const { terminal, said } = recording();
      await status(terminal, paired(count), undefined, true);
      const { executors } = JSON.parse(said()) as { executors: ExecutorFacts[] };
      assert.deepEqual(
        executors.map(({ executor }) => executor),
        ids.slice(0, count),
      );
      for (const one of executors) assert.equal(one.process, 'stopped');
      if (count === 0) {
        await status(terminal, [], undefined, false);
        assert.match(said(), /nessie-executor pair/);
      }
    });
  }

  it('one is shown by its id or its name, and one that is not here is refused', async () => {
    const all = paired(3);
    for (const wanted of [ids[1], 'bbbb']) {
      const { terminal, said } = recording();
      await status(terminal, all, wanted, false);
      assert.match(said(), new RegExp(`stopped  ${ids[1]}`));
      assert.ok(!said().includes(ids[0] ?? ''));
    }
    await assert.rejects(status(recording().terminal, all, 'exr_other', false), CliFailure);
  });
});
