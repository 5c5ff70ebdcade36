import fs from 'node:fs';
import path from 'node:path';

import type { LaunchRecord } from './launch-plan.ts';

/** What launch recorded of a process, or undefined where nothing can be read: that is then the finding. */
export function recordOf(folder: string, pid: number): LaunchRecord | undefined {
  try {
    // TRUST: launch wrote it into a folder that no role can write; a reader compares pid and start time with the kernel
    return JSON.parse(fs.readFileSync(path.join(folder, `${pid}.json`), 'utf8')) as LaunchRecord;
  } catch {
    return undefined;
  }
}
