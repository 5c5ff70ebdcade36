import fs from 'node:fs';
import path from 'node:path';

import { MANIFEST, readInstallation, verifyFiles, type Installation } from './installation.ts';
import { setClosedOnExec } from './native-locks.ts';
import { dropCapabilityBounds, execDescriptor, setCapabilities } from './native-process.ts';

/** Where root keeps copies of installations that roles of other uids can read. */
const COPIES = '/var/lib/nessie-executor/install';

function capabilityMask(status: string, field: string): bigint {
  const found = new RegExp(`^${field}:\\s*([0-9a-f]+)$`, 'm').exec(status)?.[1];
  if (found === undefined) throw new Error(`the kernel does not tell ${field}`);
  return BigInt(`0x${found}`);
}

/**
 * As root: gives up every capability but the given bits, in every thread. The bounding set is lowered first and the same
 * program is started again, because capabilities are per thread and Node's own threads would keep theirs.
 */
export function keepCapabilities(bits: readonly number[]): void {
  const wanted = bits.reduce((mask, bit) => mask | (1n << BigInt(bit)), 0n);
  const bounds = capabilityMask(fs.readFileSync('/proc/self/status', 'utf8'), 'CapBnd');
  if ((bounds & ~wanted) === 0n) return;
  dropCapabilityBounds(wanted);
  setCapabilities(bounds & wanted);
  const environment = ['NESSIE_ALLOW_LOOPBACK_HTTP', 'LANG'].flatMap((name) => {
    const value = process.env[name];
    return value === undefined ? [] : [`${name}=${value}`];
  });
  // Node marks every inherited descriptor close-on-exec at its start, the log too
  for (const descriptor of [0, 1, 2]) setClosedOnExec(descriptor, false);
  const node = fs.openSync(process.execPath, 'r');
  execDescriptor(node, ['node', ...process.execArgv, ...process.argv.slice(1)], [...environment, 'UV_USE_IO_URING=0']);
}

/** The root-owned copy of an installation, 0755 and 0644, made when it is missing; throws InstallationError where a file is not the built one. */
export function copyForOtherUsers(installation: Installation): Installation {
  const target = path.join(COPIES, installation.digest);
  if (!fs.existsSync(target)) {
    verifyFiles(installation, [...installation.hashes.keys()]);
    const umask = process.umask(0o022);
    const next = `${target}.${process.pid}`;
    fs.mkdirSync(next, { recursive: true });
    for (const name of [...installation.hashes.keys(), MANIFEST]) {
      fs.writeFileSync(path.join(next, name), fs.readFileSync(path.join(installation.folder, name)), { flag: 'wx' });
    }
    fs.renameSync(next, target);
    process.umask(umask);
  }
  // TRUST: the folders down to the copy belong to root; a copy that was altered is told by its hashes at each start
  return readInstallation(target);
}
