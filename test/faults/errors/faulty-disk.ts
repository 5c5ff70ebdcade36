/* Stands at the seam of libc.ts as a disk that refuses calls, cuts writes or ends the process, each at a given call. */
import fs from 'node:fs';
import { constants } from 'node:os';

import { NativeError } from '../../../helpers/runtime/libc.ts';
import type { Argument } from '../../../helpers/runtime/libc.ts';
import type { SyscallName } from '../../../helpers/runtime/syscall-numbers.ts';
import { troublesOf } from './errnos.ts';
import type { Trouble } from './errnos.ts';

/** What happens at a call, counted from 1: it is refused once, or it and all later ones that may be refused so; the process ends; a write or a read moves less. */
export type Fault =
  | { readonly kind: 'refused'; readonly at: number; readonly errno: Trouble; readonly lasts: boolean }
  | { readonly kind: 'ended'; readonly at: number }
  | { readonly kind: 'takes-none'; readonly at: number }
  | { readonly kind: 'takes-one'; readonly call: 'pwrite64' | 'pread64' };

/** The process that made this call is gone: no code of promote takes it for an answer of the disk. */
export class Ended extends Error {
  override readonly name = 'Ended';
}

/** A disk on which one thing goes wrong, or none. */
export class FaultyDisk {
  /** Every call that was made, in order. */
  readonly calls: SyscallName[] = [];
  /** Those of them that were refused. */
  readonly refused: SyscallName[] = [];
  readonly #fault: Fault | undefined;

  constructor(fault?: Fault) {
    this.#fault = fault;
  }

  /** For `interpose`. */
  readonly interposer = (name: SyscallName, args: readonly Argument[], make: () => number): number => {
    const nth = this.calls.push(name);
    const fault = this.#fault;
    if (fault?.kind === 'ended' && nth >= fault.at) throw new Ended('the process is gone');
    if (fault?.kind === 'refused' && this.#isRefused(fault, nth, name)) {
      this.refused.push(name);
      throw new NativeError(name, constants.errno[fault.errno]);
    }
    if (fault?.kind === 'takes-none' && nth === fault.at) return 0;
    if (fault?.kind === 'takes-one' && name === fault.call) return moveOne(name, args);
    // No power is lost here: a sync that is not refused has nothing to do.
    return name === 'fsync' || name === 'fdatasync' || name === 'syncfs' ? 0 : make();
  };

  #isRefused({ at, errno, lasts }: Fault & { kind: 'refused' }, nth: number, name: SyscallName): boolean {
    return nth === at || (lasts && nth > at && troublesOf(name).includes(errno));
  }
}

/** Writes or reads the first byte alone, as a disk may. */
function moveOne(name: 'pwrite64' | 'pread64', [descriptor, memory, , offset]: readonly Argument[]): number {
  if (!Buffer.isBuffer(memory)) throw new TypeError('a write or read without memory');
  const [file, at] = [Number(descriptor), Number(offset)];
  return name === 'pwrite64' ? fs.writeSync(file, memory, 0, 1, at) : fs.readSync(file, memory, 0, 1, at);
}
