/*
 * The comparison with `ssh`: the client over a kept connection (ControlMaster) running `cat` of the same file, against a real
 * openssh-server on loopback.
 */
import { execFileSync, spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { freePort, stopChild, until } from '../../daemon/demo/children.ts';

const SSHD = '/usr/sbin/sshd';

/** ms of each of `count` runs of `ssh host cat FILE`; undefined where there is no openssh-server. */
export async function sshCats(folder: string, file: string, count: number): Promise<number[] | undefined> {
  if (!fs.existsSync(SSHD)) return undefined;
  const at = (name: string): string => path.join(folder, name);
  fs.mkdirSync(folder, { recursive: true, mode: 0o700 });
  for (const key of ['host', 'client']) execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', at(key)]);
  fs.copyFileSync(at('client.pub'), at('authorized'));
  const port = await freePort();
  // sshd as root wants its privilege separation folder.
  if (process.getuid?.() === 0) fs.mkdirSync('/run/sshd', { recursive: true });
  const options = [
    `Port=${port}`,
    'ListenAddress=127.0.0.1',
    `HostKey=${at('host')}`,
    `AuthorizedKeysFile=${at('authorized')}`,
    'StrictModes=no',
    'PasswordAuthentication=no',
    'UsePAM=no',
    'PidFile=none',
  ];
  const server = spawn(SSHD, ['-D', '-e', '-f', '/dev/null', ...options.flatMap((option) => ['-o', option])], {
    stdio: 'ignore',
  });
  const client = [
    '-F',
    '/dev/null',
    '-p',
    String(port),
    '-i',
    at('client'),
    '-o',
    'StrictHostKeyChecking=no',
    '-o',
    'UserKnownHostsFile=/dev/null',
    '-o',
    'LogLevel=ERROR',
    '-o',
    'ControlMaster=auto',
    '-o',
    `ControlPath=${at('control')}`,
    '-o',
    'ControlPersist=60',
    '127.0.0.1',
    'cat',
    file,
  ];
  const cat = (): void => void execFileSync('ssh', client, { stdio: 'ignore' });
  try {
    await until('sshd to answer', 10_000, () => answers(cat));
    return Array.from({ length: count }, () => {
      const started = performance.now();
      cat();
      return performance.now() - started;
    });
  } finally {
    execFileSync('ssh', ['-F', '/dev/null', '-O', 'exit', '-o', `ControlPath=${at('control')}`, '127.0.0.1'], {
      stdio: 'ignore',
    });
    await stopChild(server);
  }
}

function answers(cat: () => void): boolean {
  try {
    cat();
    return true;
  } catch {
    // The server is still starting.
    return false;
  }
}
