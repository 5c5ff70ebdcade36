import { spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { CliFailure } from './failure.ts';
import { followInForeground, installationFolder } from './supervised.ts';

/** Runs the control plane in the foreground with these arguments; resolves with the exit code for the shell. */
export function runServer(rest: readonly string[]): Promise<number> {
  const program = path.join(installationFolder(), 'server.mjs');
  if (!fs.existsSync(program))
    throw new CliFailure('configuration', 'the control plane is not built; run `npm run build`');
  return followInForeground(spawn(process.execPath, [program, ...rest], { stdio: 'inherit' }));
}
