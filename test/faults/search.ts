/*
 * Looks for secrets where they must not be: raw bytes of files and of what the kernel shows of processes, each secret in every
 * form in which a program would write it by accident.
 */
import fs from 'node:fs';
import path from 'node:path';

/** Where a secret was found. */
export interface Finding {
  readonly marker: string;
  readonly form: string;
  readonly place: string;
}

/** Forms in which bytes are found: as they are, and as programs print them. */
function formsOf(secret: Buffer): readonly (readonly [string, Buffer])[] {
  const hex = secret.toString('hex');
  const text = secret.toString('utf8');
  return [
    ['raw', secret],
    ['hex', Buffer.from(hex)],
    ['HEX', Buffer.from(hex.toUpperCase())],
    // Three offsets, because base64 of a longer text depends on where the secret begins in it.
    ...[0, 1, 2].map((skip) => ['base64', innerBase64(secret, skip)] as const),
    ['utf16', Buffer.from(text, 'utf16le')],
    ['percent', Buffer.from(encodeURIComponent(text))],
    ['bytes', Buffer.from([...secret.subarray(0, 16)].join(','))],
  ];
}

/** Base64 of the whole groups of a secret that begins `skip` bytes into a group: the same in any surroundings. */
function innerBase64(secret: Buffer, skip: number): Buffer {
  const from = (3 - skip) % 3;
  const whole = secret.subarray(from, from + Math.floor((secret.length - from) / 3) * 3);
  return Buffer.from(whole.toString('base64').replaceAll('=', ''));
}

/** Every occurrence of a marker in these named bytes. */
export function findIn(places: Iterable<readonly [string, Buffer]>, markers: ReadonlyMap<string, Buffer>): Finding[] {
  const needles = [...markers].flatMap(([marker, secret]) =>
    formsOf(secret).map(([form, bytes]) => ({ marker, form, bytes })),
  );
  const found: Finding[] = [];
  for (const [place, bytes] of places) {
    for (const needle of needles) {
      if (bytes.includes(needle.bytes)) found.push({ marker: needle.marker, form: needle.form, place });
    }
  }
  return found;
}

/** Every file below a folder with its bytes, named by its path in it; sockets and links are passed over. */
export function* filesBelow(folder: string): Generator<readonly [string, Buffer]> {
  for (const entry of fs.readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const file = path.join(entry.parentPath, entry.name);
    yield [path.relative(folder, file), fs.readFileSync(file)];
  }
}

/** Arguments and environment of processes, as the kernel keeps them. */
export function* processFacts(pids: readonly number[]): Generator<readonly [string, Buffer]> {
  for (const pid of pids) {
    const name = fs.readFileSync(`/proc/${pid}/cmdline`, 'latin1').split('\0')[1]?.split('/').at(-1) ?? 'process';
    const program = /([a-z-]+)\.mjs/.exec(fs.readFileSync(`/proc/${pid}/cmdline`, 'latin1'))?.[1] ?? name;
    yield [`${program}: arguments`, fs.readFileSync(`/proc/${pid}/cmdline`)];
    yield [`${program}: environment`, fs.readFileSync(`/proc/${pid}/environ`)];
  }
}
