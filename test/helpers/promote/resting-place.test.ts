import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout } from 'node:timers/promises';

import { pruneHistory } from '../../../helpers/promote/history.ts';
import { forgetResting, moveResting } from '../../../helpers/promote/resting-place.ts';
import { interpose } from '../../../helpers/runtime/libc.ts';
import type { Argument } from '../../../helpers/runtime/libc.ts';

const ORDERED = new Set<string>(['renameat2', 'unlinkat', 'fsync']);
const DAY_MS = 86_400_000;

describe('a promotion that leaves its resting place', () => {
  let folder: string;
  let own: number;

  beforeEach(() => {
    folder = fs.mkdtempSync(path.join(os.tmpdir(), 'resting-'));
    own = fs.openSync(folder, 'r');
  });
  afterEach(() => {
    fs.closeSync(own);
    fs.rmSync(folder, { recursive: true });
  });

  function resting(place: string, id: string, names: readonly string[]): void {
    fs.mkdirSync(path.join(folder, place), { mode: 0o700, recursive: true });
    fs.mkdirSync(path.join(folder, place, id), { mode: 0o700 });
    for (const name of names) fs.writeFileSync(path.join(folder, place, id, name), 'x', { mode: 0o600 });
  }

  /** Renames, removals and syncs that something does, with the names or the folder. */
  function ordered(work: () => void): string[] {
    const calls: string[] = [];
    const nameOf = (value: Argument | undefined): string =>
      Buffer.isBuffer(value) ? value.subarray(0, -1).toString() : '';
    interpose((name, args, make) => {
      if (ORDERED.has(name)) {
        const on = fs.readlinkSync(`/proc/self/fd/${Number(args[0])}`);
        calls.push(`${name} ${name === 'fsync' ? path.relative(folder, on) : nameOf(args[1])}`);
      }
      return make();
    });
    try {
      work();
    } finally {
      interpose(undefined);
    }
    return calls;
  }

  it('is on the disk in the new one before it is gone from the old one', () => {
    resting('attention', 'one', ['journal']);
    fs.mkdirSync(path.join(folder, 'settled'), { mode: 0o700 });
    const calls = ordered(() => moveResting(own, 'attention', 'settled', 'one'));
    assert.deepEqual(calls, ['renameat2 one', 'fsync settled', 'fsync attention']);
  });

  it('is gone for good once its journal has moved on', () => {
    resting('waiting', 'one', ['kept', 'kept.next']);
    const calls = ordered(() => forgetResting(own, 'waiting', 'one'));
    assert.deepEqual(calls, ['unlinkat kept', 'unlinkat kept.next', 'unlinkat one', 'fsync waiting']);
  });

  it('is forgotten for good when it is too old, and is not the newest', async () => {
    resting('history', 'old', ['journal']);
    // The clock of a file system may be some milliseconds coarse.
    await setTimeout(50);
    resting('history', 'new', ['journal']);
    const limits = { bytes: 1_048_576, ageMs: 30 * DAY_MS };
    assert.deepEqual(
      ordered(() => pruneHistory(own, Date.now() + 31 * DAY_MS, limits)),
      ['unlinkat journal', 'unlinkat old', 'fsync history'],
    );
  });
});
