import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { coverageOf, keyOf, simulated, SIMULATED } from '../../../helpers/build/coverage.ts';
import { render } from '../../../helpers/build/machine-page.ts';
import { traced } from '../../../machines/registry.ts';
import { below, metaOf, nameOf, transitionsOf } from '../../../machines/shape.ts';

async function withCounts<Value>(counts: unknown, look: (top: string) => Value): Promise<Value> {
  const top = await mkdtemp(join(tmpdir(), 'simulated-'));
  try {
    await mkdir(join(top, 'docs'));
    if (counts !== undefined) await writeFile(join(top, SIMULATED), JSON.stringify(counts));
    return look(top);
  } finally {
    await rm(top, { recursive: true });
  }
}

describe('what traces reach', () => {
  it('names the shortest golden trace of a state first, and every one of a transition', () => {
    const { states, transitions } = coverageOf(traced['command']!.machine);
    assert.equal(states.get('command.queued')?.length, 45);
    assert.deepEqual(transitions.get('command.queued on command.cancel #0'), ['queued-cancelled']);
    assert.equal(states.get('command.cancelled')?.[0], 'queued-cancelled');
  });

  it('takes the counts of a simulation for states, events in them, and events that every state takes', async () => {
    const counts = {
      daemon: { 'online.heard': 3, 'online.heard control.answered': 2, 'any daemon.stop': 1 },
      pairing: { 'requested always': 4 },
    };
    assert.deepEqual(await withCounts(counts, simulated), counts);
    assert.equal(await withCounts(undefined, simulated), undefined);
    assert.equal(keyOf('daemon', 'daemon on daemon.stop #0'), 'any daemon.stop');
  });

  const wrong: { readonly [what: string]: unknown } = {
    'a machine that is not there': { other: { queued: 1 } },
    'a state that is not there': { command: { waiting: 1 } },
    'an event that a state does not take': { command: { 'queued receipt.late': 1 } },
    'a count that is none': { command: { queued: -1 } },
  };
  for (const [what, counts] of Object.entries(wrong)) {
    it(`refuses the counts of a simulation with ${what}`, async () => {
      await assert.rejects(withCounts(counts, simulated), /is not there|>=0/);
    });
  }
});

describe('the page of a machine', () => {
  it('says of each state what holds, who may be asked for what and which traces reach it, and shows every transition', () => {
    const { machine } = traced['daemon']!;
    const page = render('daemon');
    for (const node of below(machine.root)) {
      const [, section = ''] = page.split(`\n### ${nameOf(node)}\n`);
      const text = section.split('\n### ')[0] ?? '';
      assert.ok(text.includes(metaOf(node).holds), node.id);
      for (const permit of metaOf(node).permits) assert.ok(text.includes(`\`${permit}\``), permit);
      assert.match(text, /^- Reached by: \[/m);
      assert.equal(
        text.split('\n').filter((line) => line.startsWith('| `')).length,
        transitionsOf(node).length,
        node.id,
      );
    }
    assert.match(page, /^7\. A restart is a new actor that recovers from the ledger/m);
    assert.match(page, /- May be asked for: `link`: `link\.open`, `link\.send`; `key-store`: `keystore\.sign`\n/);
  });
});
