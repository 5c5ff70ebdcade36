import fs from 'node:fs';
import path from 'node:path';

/** What this node is made of on this machine: its program file, its loader and the folders of its shared libraries, absolute. */
export type Program = {
  readonly node: string;
  readonly loader: string | undefined;
  readonly libraries: readonly string[];
};

const LOADER = /^ld-[^/]*\.so/;
const LIBRARY = /\.so(\.[0-9]+)*$/;

/**
 * Reads from the kernel which files this process is mapped from (proc_pid_maps(5)). Libraries are told by their folders, because
 * the C library loads name service modules beside itself later.
 */
export function thisProgram(): Program {
  const files = new Set<string>();
  for (const line of fs.readFileSync('/proc/self/maps', 'utf8').split('\n')) {
    const start = line.indexOf('/');
    if (start > 0) files.add(line.slice(start));
  }
  const loader = [...files].find((file) => LOADER.test(path.basename(file)));
  const folders = [...files].filter((file) => LIBRARY.test(file)).map((file) => path.dirname(file));
  return { node: fs.realpathSync(process.execPath), loader, libraries: [...new Set(folders)].toSorted() };
}
