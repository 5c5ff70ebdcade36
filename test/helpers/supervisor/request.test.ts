import assert from 'node:assert/strict';

import * as fc from 'fast-check';

import { EXIT_MEANINGS } from '../../../helpers/runtime/exits.ts';
import { ROW_NAMES } from '../../../helpers/runtime/privileges.ts';
import {
  decodeOrder,
  decodeReport,
  encodeOrder,
  encodeReport,
  NEXT,
  ORDER_REFUSALS,
  RECORD_BYTES,
  RecordError,
  RecordReader,
  type Report,
} from '../../../helpers/supervisor/request.ts';

const row = fc.constantFrom(...ROW_NAMES);
const number = fc.nat({ max: 0xffff_ffff });
const order = fc.record({ order: fc.constantFrom('start', 'end'), row, slot: number, number });
const byCode = fc.record({ code: fc.integer({ min: 0, max: 255 }), signal: fc.constant(undefined) });
const bySignal = fc.record({
  code: fc.constant(undefined),
  signal: fc.constantFrom('SIGSYS', 'SIGKILL', 'SIGSEGV', 'SIGABRT'),
});
const report: fc.Arbitrary<Report> = fc.oneof(
  fc.record({ report: fc.constant('started'), row, slot: number, number }),
  fc.record({ report: fc.constant('refused'), row, slot: number, number, reason: fc.constantFrom(...ORDER_REFUSALS) }),
  fc
    .tuple(
      fc.record({
        report: fc.constant('ended'),
        row,
        slot: number,
        meaning: fc.constantFrom(...EXIT_MEANINGS),
        next: fc.constantFrom(...NEXT),
        recent: fc.nat({ max: 0xffff }),
        waitMs: number,
      }),
      fc.oneof(byCode, bySignal),
    )
    .map(([fact, how]) => ({ ...fact, ...how })),
) as fc.Arbitrary<Report>;

describe('records between daemon and supervisor', () => {
  it('every order and report survives its 32 bytes', () => {
    fc.assert(
      fc.property(order, report, (wishMade, factMade) => {
        // fast-check makes objects without a prototype
        const [wish, fact] = [{ ...wishMade }, { ...factMade }];
        assert.equal(encodeOrder(wish).length, RECORD_BYTES);
        assert.equal(encodeReport(fact).length, RECORD_BYTES);
        assert.deepEqual(decodeOrder(encodeOrder(wish)), wish);
        assert.deepEqual(decodeReport(encodeReport(fact)), fact);
      }),
    );
  });

  it('bytes that are no order are refused, and what is accepted is written back as the same bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 0, maxLength: 40 }), (bytes) => {
        const given = Buffer.from(bytes);
        try {
          assert.deepEqual(encodeOrder(decodeOrder(given)), given);
        } catch (error) {
          assert.ok(error instanceof RecordError);
        }
      }),
    );
    const wish = encodeOrder({ order: 'start', row: 'promote', slot: 1, number: 1 });
    for (let index = 0; index < RECORD_BYTES; index += 1) {
      const changed = Buffer.from(wish);
      changed.writeUInt8(0xff, index);
      const isValue = index >= 4 && index < 12;
      if (isValue) assert.doesNotThrow(() => decodeOrder(changed));
      else assert.throws(() => decodeOrder(changed), RecordError);
    }
  });

  it('a stream cut anywhere gives the same records', () => {
    const stream = Buffer.concat(
      [1, 2, 3].map((slot) => encodeOrder({ order: 'end', row: 'link', slot, number: slot })),
    );
    for (let cut = 0; cut <= stream.length; cut += 1) {
      const reader = new RecordReader();
      const records = [...reader.push(stream.subarray(0, cut)), ...reader.push(stream.subarray(cut))];
      assert.deepEqual(Buffer.concat(records), stream);
      assert.equal(records.length, 3);
    }
  });
});
