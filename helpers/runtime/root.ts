import fs from 'node:fs';

import { setClosedOnExec } from './native-locks.ts';
import { dropCapabilityBounds, execDescriptor, setCapabilities } from './native-process.ts';

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
