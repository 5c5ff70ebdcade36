import fs from 'node:fs';

/** Text of a file that the owner keeps, or undefined where it is not an ordinary, readable file of at most `limitBytes`. */
export function readOwnersText(file: string, limitBytes: number): string | undefined {
  let descriptor: number;
  try {
    descriptor = fs.openSync(file, fs.constants.O_RDONLY | fs.constants.O_NOFOLLOW | fs.constants.O_NONBLOCK);
  } catch {
    // Absent, unreadable or a link: the answer is that the owner said nothing there, and that permits nothing.
    return undefined;
  }
  try {
    const status = fs.fstatSync(descriptor);
    return status.isFile() && status.size <= limitBytes ? fs.readFileSync(descriptor, 'utf8') : undefined;
  } finally {
    fs.closeSync(descriptor);
  }
}
