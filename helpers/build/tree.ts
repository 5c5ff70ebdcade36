import { execFile } from 'node:child_process';
import { access, readdir } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}

/**
 * Files of the project at `root`, relative and sorted: what git tracks or would track, or everything where the folder is no
 * clone (a planted copy). Files that git knows and the disk has lost are left out.
 */
export async function trackedFiles(root: string): Promise<string[]> {
  if (!(await exists(join(root, '.git')))) {
    const entries = await readdir(root, { recursive: true, withFileTypes: true });
    return entries
      .filter((entry) => entry.isFile())
      .map((entry) => relative(root, join(entry.parentPath, entry.name)))
      .filter((file) => !file.startsWith('node_modules/') && !file.startsWith('dist/'))
      .toSorted();
  }
  const listing = ['ls-files', '-z', '--cached', '--others', '--exclude-standard'];
  const { stdout } = await run('git', listing, { cwd: root, maxBuffer: 64 * 1024 * 1024 });
  const names = [...new Set(stdout.split('\0').filter((name) => name !== ''))].toSorted();
  const present = await Promise.all(names.map((name) => exists(join(root, name))));
  return names.filter((_, index) => present[index]);
}
