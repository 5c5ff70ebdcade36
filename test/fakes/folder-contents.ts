/* What lies below a folder, for trees that are compared before and after. */
import fs from 'node:fs';
import path from 'node:path';

/** Every file below a folder, by path, with its content. */
export function filesBelow(folder: string): ReadonlyMap<string, string> {
  if (!fs.existsSync(folder)) return new Map();
  const entries = fs.readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return new Map(
    entries.map((entry) => {
      const file = path.join(entry.parentPath, entry.name);
      return [path.relative(folder, file), fs.readFileSync(file, 'utf8')];
    }),
  );
}

/** Everything below a folder, byte for byte, with kinds, modes and times: nothing may be written there. */
export function sealOf(folder: string): string {
  const names = ['', ...fs.readdirSync(folder, { recursive: true, encoding: 'utf8' })].toSorted();
  return names
    .map((name) => {
      const file = path.join(folder, name);
      const { mode, mtimeMs, ctimeMs, ino, nlink } = fs.lstatSync(file);
      const isFile = fs.lstatSync(file).isFile();
      return [name, mode, mtimeMs, ctimeMs, ino, nlink, isFile ? fs.readFileSync(file, 'base64') : ''].join(' ');
    })
    .join('\n');
}
