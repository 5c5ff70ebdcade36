import fs from 'node:fs';
import { constants } from 'node:os';

import { NativeError } from '../../helpers/runtime/libc.ts';
import type { Argument, Interposer } from '../../helpers/runtime/libc.ts';
import { FICLONE } from '../../helpers/runtime/mutating-calls.ts';

/** Whether a call asks for the blocks of another file. */
export function asksToShare(name: string, args: readonly Argument[]): boolean {
  return name === 'ioctl' && args[1] === FICLONE;
}

/** What FICLONE does, as far as anybody can read: the file holds what the other one held in that moment. */
function giveContent([to, , from]: readonly Argument[]): number {
  const content = fs.readFileSync(`/proc/self/fd/${String(from)}`);
  const descriptor = fs.openSync(`/proc/self/fd/${String(to)}`, 'r+');
  fs.ftruncateSync(descriptor, 0);
  fs.writeSync(descriptor, content);
  fs.closeSync(descriptor);
  return 0;
}

/** A disk on which files can share blocks, whatever the one below can. `act` is told of each share of a file, before it is made, and may answer it by throwing; it returns what happens right after it. */
export function sharingDisk(
  act: (from: number, to: number) => (() => void) | undefined = () => undefined,
  then?: Interposer,
): Interposer {
  return (name, args, make, number) => {
    if (!asksToShare(name, args)) return then === undefined ? make() : then(name, args, make, number);
    const isProbe = fs.fstatSync(Number(args[2])).size <= 65_536;
    const after = isProbe ? undefined : act(Number(args[2]), Number(args[0]));
    const result = giveContent(args);
    after?.();
    return result;
  };
}

/** Answers a call as the kernel does that refuses it. */
export function refused(name: string, errno: keyof typeof constants.errno): never {
  throw new NativeError(name, constants.errno[errno]);
}
