/*
 * What went over a wire, as bytes that a search can look through: a plain HTTP call as it is, a WebSocket's frames without their
 * masks (RFC 6455, section 5.2), since whoever masks hides even what stands there in clear.
 */

/** Everything that one connection carried, each way. */
export interface Carried {
  readonly up: readonly Buffer[];
  readonly down: readonly Buffer[];
}

const HEAD_END = Buffer.from('\r\n\r\n');

/** The bytes of these connections, named by number and way; masked frames come unmasked. */
export function* searchable(connections: readonly Carried[]): Generator<readonly [string, Buffer]> {
  for (const [index, { up, down }] of connections.entries()) {
    for (const [way, chunks] of Object.entries({ up, down })) {
      const bytes = Buffer.concat(chunks);
      yield [`connection ${index} ${way}`, isUpgrade(bytes) ? unmasked(bytes) : bytes];
    }
  }
}

function isUpgrade(bytes: Buffer): boolean {
  const head = bytes.subarray(0, Math.max(0, bytes.indexOf(HEAD_END))).toString('latin1');
  return /^upgrade: websocket$/im.test(head);
}

/** Head and payloads of an upgraded connection, one after the other; what was cut off at the end is left out. */
function unmasked(bytes: Buffer): Buffer {
  let at = bytes.indexOf(HEAD_END) + HEAD_END.length;
  const parts = [bytes.subarray(0, at)];
  while (at + 2 <= bytes.length) {
    const second = bytes.readUInt8(at + 1);
    const short = second & 0x7f;
    const extra = short === 126 ? 2 : short === 127 ? 8 : 0;
    const masked = second >= 0x80;
    const start = at + 2 + extra + (masked ? 4 : 0);
    if (start > bytes.length) break;
    const length =
      extra === 2 ? bytes.readUInt16BE(at + 2) : extra === 8 ? Number(bytes.readBigUInt64BE(at + 2)) : short;
    if (start + length > bytes.length) break;
    const payload = Buffer.from(bytes.subarray(start, start + length));
    if (masked)
      for (const [index, byte] of payload.entries()) payload[index] = byte ^ (bytes[start - 4 + (index % 4)] ?? 0);
    parts.push(payload);
    at = start + length;
  }
  return Buffer.concat(parts);
}
