import assert from 'node:assert/strict';

import { readReceiptExport, verifyReceiptChain } from '../../../helpers/protocol/receipt-chain.ts';
import type { ReceiptExport } from '../../../helpers/protocol/receipt-chain.ts';
import { makeChain, makeSide } from '../../fixtures/receipt-chain.ts';

const sides = { machine: makeSide(), control: makeSide() };
const keys = { machine: sides.machine.key, control: sides.control.key };
const verify = (exported: ReceiptExport) => verifyReceiptChain(exported, keys);
type Entries = ReceiptExport['statements'];

function flipped(base64: string, at: number): string {
  const bytes = Buffer.from(base64, 'base64');
  const index = at % bytes.length;
  bytes[index] = (bytes[index] ?? 0) ^ 1;
  return bytes.toString('base64');
}

describe('an exported chain of receipts', () => {
  const chain = makeChain(sides);
  const last = chain.statements.length;
  const changed = (change: (entries: Entries) => Entries): ReceiptExport => ({
    ...chain,
    statements: change([...chain.statements]),
  });

  it('verifies whole, with its outcome', () => {
    assert.deepEqual(verify(chain), { ok: true, complete: true, outcome: 'succeeded', entries: 6 });
    assert.deepEqual(readReceiptExport(JSON.stringify(chain)), chain);
  });

  it('a chain that is cut at its end verifies as not complete, without an outcome', () => {
    for (let length = 1; length < last; length += 1) {
      assert.deepEqual(verify(changed((entries) => entries.slice(0, length))), {
        ok: true,
        complete: false,
        outcome: undefined,
        entries: length,
      });
    }
  });

  it('a removed entry is named', () => {
    for (let at = 0; at < last - 1; at += 1) {
      const verdict = verify(changed((entries) => entries.toSpliced(at, 1)));
      assert.ok(!verdict.ok && verdict.entry === at + 1, `entry ${at + 1}`);
    }
  });

  it('two entries in each other’s place are named', () => {
    for (let at = 0; at < last - 1; at += 1) {
      const verdict = verify(
        changed((entries) => {
          const [one, other] = [entries[at], entries[at + 1]];
          return one && other ? entries.toSpliced(at, 2, other, one) : entries;
        }),
      );
      assert.ok(!verdict.ok && verdict.entry <= at + 2, `entries ${at + 1} and ${at + 2}`);
    }
  });

  it('one flipped bit in any payload or signature is named at its entry', () => {
    chain.statements.forEach((entry, at) => {
      for (let bit = 0; bit < 40; bit += 7) {
        for (const other of [
          { ...entry, payload: flipped(entry.payload, bit) },
          { ...entry, signature: flipped(entry.signature, bit) },
        ]) {
          const verdict = verify(changed((entries) => entries.with(at, other)));
          assert.ok(!verdict.ok && verdict.entry === at + 1);
        }
      }
    });
  });

  it('an entry twice, one of another chain, and one under another type are named', () => {
    const other = makeChain(sides);
    for (let at = 0; at < last; at += 1) {
      const entry = chain.statements[at];
      const foreign = other.statements[at];
      assert.ok(entry && foreign);
      assert.equal(verify(changed((entries) => entries.toSpliced(at, 0, entry))).ok, false);
      assert.equal(verify(changed((entries) => entries.with(at, foreign))).ok, false);
      for (const { type } of chain.statements) {
        if (type !== entry.type)
          assert.equal(verify(changed((entries) => entries.with(at, { ...entry, type }))).ok, false);
      }
    }
  });

  it('a chain that somebody else signed whole is refused at its first entry', () => {
    const invented = makeChain({ machine: makeSide(), control: makeSide() });
    assert.deepEqual(verify(invented), {
      ok: false,
      entry: 1,
      type: 'control.command',
      fault: 'signature is not of the expected key',
    });
    const half = makeChain({ machine: makeSide(), control: sides.control });
    const verdict = verify(half);
    assert.ok(!verdict.ok && verdict.entry === 3);
  });

  it('what the machine signed as the control plane’s, or the other way round, is refused', () => {
    assert.equal(verifyReceiptChain(chain, { machine: keys.control, control: keys.machine }).ok, false);
  });

  it('another command or executor on the cover is named', () => {
    const cover = makeChain(sides);
    assert.equal(verify({ ...chain, command: cover.command }).ok, false);
    assert.equal(verify({ ...chain, executor: cover.executor }).ok, false);
  });

  it('what is no export is refused before anything is verified', () => {
    for (const text of [
      '',
      '{}',
      '[]',
      'null',
      JSON.stringify({ ...chain, more: 1 }),
      JSON.stringify({ ...chain, statements: [] }),
    ]) {
      assert.throws(() => readReceiptExport(text));
    }
  });
});
