import assert from 'node:assert/strict';

import * as fc from 'fast-check';
import { encodeFrame, FRAME_LIMIT_BYTES, FrameError, FrameReader } from '../../../helpers/protocol/frame.ts';

const payload = fc.uint8Array({ minLength: 1, maxLength: 300 });

function cut(bytes: Buffer, sizes: readonly number[]): Buffer[] {
  const pieces: Buffer[] = [];
  let at = 0;
  for (const size of [...sizes, bytes.length]) {
    if (at >= bytes.length) break;
    pieces.push(bytes.subarray(at, at + size));
    at += size;
  }
  return pieces;
}

const timeOf = (length: number): bigint => {
  const frame = encodeFrame(Buffer.alloc(length, 1));
  const reader = new FrameReader();
  const start = process.hrtime.bigint();
  for (let at = 0; at < frame.length; at += 1) reader.push(frame.subarray(at, at + 1));
  return process.hrtime.bigint() - start;
};

describe('frames', () => {
  it('payloads come out as they went in, in order, however the stream is cut', () => {
    fc.assert(
      fc.property(
        fc.array(payload, { maxLength: 20 }),
        fc.array(fc.integer({ min: 1, max: 40 })),
        (payloads, sizes) => {
          const reader = new FrameReader();
          const stream = Buffer.concat(payloads.map((one) => encodeFrame(one)));
          const read = cut(stream, sizes).flatMap((piece) => reader.push(piece));
          assert.deepEqual(
            read.map((one) => one.toString('hex')),
            payloads.map((one) => Buffer.from(one).toString('hex')),
          );
          assert.equal(reader.heldBytes, 0);
        },
      ),
    );
  });

  it('a cut stream holds back exactly what is unfinished', () => {
    fc.assert(
      fc.property(payload, fc.nat(), (one, where) => {
        const frame = encodeFrame(one);
        const part = frame.subarray(0, where % frame.length);
        const reader = new FrameReader();
        assert.deepEqual(reader.push(part), []);
        assert.equal(reader.heldBytes, part.length);
        assert.equal(reader.push(frame.subarray(part.length)).length, 1);
      }),
    );
  });

  for (const length of [0, FRAME_LIMIT_BYTES + 1, 0x7fff_ffff, 0xffff_ffff]) {
    it(`an announced length of ${length} is refused from its header alone, whole or byte by byte`, () => {
      const header = Buffer.alloc(4);
      header.writeUInt32BE(length);
      assert.throws(() => new FrameReader().push(header), FrameError);
      const reader = new FrameReader();
      assert.throws(() => {
        for (const byte of header) reader.push(Buffer.from([byte]));
      }, FrameError);
      assert.ok(reader.heldBytes <= 4);
    });
  }

  it('S-006 a header of one GiB is refused before memory is taken for it, a thousand times over', () => {
    const header = Buffer.from([0x40, 0, 0, 0]);
    const held = (): number => process.memoryUsage().arrayBuffers + process.memoryUsage().heapTotal;
    const before = held();
    const readers = Array.from({ length: 1000 }, () => {
      const reader = new FrameReader();
      assert.throws(() => reader.push(header), FrameError);
      return reader;
    });
    assert.ok(readers.every(({ heldBytes }) => heldBytes <= header.length));
    assert.ok(held() - before < FRAME_LIMIT_BYTES * 16, `${held() - before} bytes for ${readers.length} readers`);
  });

  it('a frame at the limit passes and one beyond is never written', () => {
    const [largest] = new FrameReader().push(encodeFrame(Buffer.alloc(FRAME_LIMIT_BYTES, 1)));
    assert.equal(largest?.length, FRAME_LIMIT_BYTES);
    assert.throws(() => encodeFrame(Buffer.alloc(FRAME_LIMIT_BYTES + 1)), FrameError);
    assert.throws(() => encodeFrame(Buffer.alloc(0)), FrameError);
    assert.throws(() => encodeFrame(Buffer.alloc(11), 10), FrameError);
  });

  it('a reader keeps its own limit', () => {
    const reader = new FrameReader(10);
    assert.equal(reader.push(encodeFrame(Buffer.alloc(10))).length, 1);
    assert.throws(() => reader.push(encodeFrame(Buffer.alloc(11))), FrameError);
  });

  it('a frame that drips in byte by byte costs time that grows with its length and no more', () => {
    timeOf(20_000);
    const [one, sixteen] = [timeOf(20_000), timeOf(320_000)];
    assert.ok(sixteen < one * 100n, `16 times the bytes took ${Number(sixteen) / Number(one)} times as long`);
  });
});
