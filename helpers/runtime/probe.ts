/*
 * probe: the twin of a row. `audit` starts it by the same launch from the same declaration as the row itself, gives it a list
 * of things to try, and hears what it reached. Started without launch it is the control: there every try must succeed,
 * else the refusal of the twin proves nothing. No serving row has a request that does any of this.
 *
 *   channel 3   in: one JSON line, the list of attempts;   out: JSON lines, ProbeLine of attempts.ts
 */
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import { connect, createServer, Socket } from 'node:net';

import { OWN_PROGRAM_EXIT, type Attempt, type Outcome, type ProbeLine } from './attempts.ts';
import { syscall } from './libc.ts';
import { O_TMPFILE } from './native-files.ts';
import { execPath, lookAtSharedMemory, memfdCreate, queueNoSignal } from './native-process.ts';
import {
  bindDatagrams,
  connectByFirstSend,
  connectByMultipath,
  connectTo,
  sendDatagram,
  socketPair,
  unixSocket,
} from './native-sockets.ts';

/** The smallest program: one segment of code that exits with OWN_PROGRAM_EXIT (elf(5)). */
function tinyProgram(): Buffer {
  const isArm = process.arch === 'arm64';
  const code = isArm
    ? Buffer.from([
        0x40 | ((OWN_PROGRAM_EXIT & 7) << 5),
        OWN_PROGRAM_EXIT >> 3,
        0x80,
        0xd2,
        0xa8,
        0x0b,
        0x80,
        0xd2,
        1,
        0,
        0,
        0xd4,
      ])
    : Buffer.from([0xbf, OWN_PROGRAM_EXIT, 0, 0, 0, 0xb8, 60, 0, 0, 0, 0x0f, 0x05]);
  const head = Buffer.alloc(120);
  head.set([0x7f, 0x45, 0x4c, 0x46, 2, 1, 1]);
  head.writeUInt16LE(2, 16);
  head.writeUInt16LE(isArm ? 183 : 62, 18);
  head.writeUInt32LE(1, 20);
  head.writeBigUInt64LE(0x400078n, 24);
  head.writeBigUInt64LE(64n, 32);
  head.writeUInt16LE(64, 52);
  head.writeUInt16LE(56, 54);
  head.writeUInt16LE(1, 56);
  head.writeUInt32LE(1, 64);
  head.writeUInt32LE(5, 68);
  head.writeBigUInt64LE(0x400000n, 80);
  head.writeBigUInt64LE(0x400000n, 88);
  head.writeBigUInt64LE(BigInt(120 + code.length), 96);
  head.writeBigUInt64LE(BigInt(120 + code.length), 104);
  head.writeBigUInt64LE(0x1000n, 112);
  return Buffer.concat([head, code]);
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'UNKNOWN';
}

function withOpen(path: string, flags: number, use: (descriptor: number) => void): void {
  const descriptor = fs.openSync(path, flags, 0o600);
  use(descriptor);
  fs.closeSync(descriptor);
}

function writeProgram(descriptor: number): void {
  fs.writeSync(descriptor, tinyProgram());
}

/** Writes a program into the row's own folder, never under a name, and runs it by descriptor. */
function runOwnFile(folder: string, number: number): void {
  const writing = fs.openSync(folder, O_TMPFILE | fs.constants.O_RDWR, 0o700);
  writeProgram(writing);
  const reading = fs.openSync(`/proc/self/fd/${writing}`, fs.constants.O_RDONLY);
  fs.closeSync(writing);
  execPath(number, `/proc/self/fd/${reading}`);
}

function onNetwork(start: (done: (outcome: Outcome) => void) => void): Promise<Outcome> {
  return new Promise((resolve) => {
    try {
      start(resolve);
    } catch (error) {
      resolve({ reached: false, code: codeOf(error) });
    }
  });
}

function connectOverTcp(port: number): Promise<Outcome> {
  return onNetwork((done) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => {
      socket.destroy();
      done({ reached: true });
    });
    socket.once('error', (error) => done({ reached: false, code: codeOf(error) }));
  });
}

function listenOnNetwork(): Promise<Outcome> {
  return onNetwork((done) => {
    const server = createServer();
    server.once('error', (error) => done({ reached: false, code: codeOf(error) }));
    server.listen(0, '127.0.0.1', () => server.close(() => done({ reached: true })));
  });
}

function startChild(): void {
  const { error } = spawnSync('/bin/true', { stdio: 'ignore' });
  if (error !== undefined) throw error;
}

function reachFile(attempt: Extract<Attempt, { path: string }>): void {
  const { what, path } = attempt;
  if (what === 'read a file') return void fs.readFileSync(path);
  if (what === 'list a folder') return void fs.readdirSync(path);
  if (what === 'watch a folder') return fs.watch(path).close();
  if (what === 'open a file for writing') return withOpen(path, fs.constants.O_WRONLY, () => undefined);
  if (what === 'make an unnamed file') return withOpen(path, O_TMPFILE | fs.constants.O_RDWR, () => undefined);
  if (what === 'connect to a Unix socket') return connectTo(unixSocket(), path);
  if (what === 'execve a program') return execPath(undefined, path);
  if (what === 'execveat an absolute path') return execPath(attempt.number, path);
  const status = fs.statSync(path);
  if (what === 'set the mode it has') return fs.chmodSync(path, status.mode & 0o7777);
  if (what === 'set the times it has') return fs.utimesSync(path, status.atime, status.mtime);
  return withOpen(path, fs.constants.O_RDONLY, (descriptor) => fs.fchmodSync(descriptor, status.mode & 0o7777));
}

function reachProcess({ what, pid }: Extract<Attempt, { pid: number }>): void {
  if (what === 'queue a signal') return queueNoSignal(pid);
  if (what === 'signal a thread') return void syscall('tgkill', pid, pid, 0);
  syscall('kill', pid, 0);
}

function reach(attempt: Attempt): void {
  if ('path' in attempt) return reachFile(attempt);
  if ('pid' in attempt) return reachProcess(attempt);
  if (attempt.what === 'start a child') return startChild();
  if (attempt.what === 'make a socket pair') return void socketPair();
  if (attempt.what === 'connect by multipath TCP') return fs.closeSync(connectByMultipath(attempt.port));
  if (attempt.what === 'connect by a first send') return fs.closeSync(connectByFirstSend(attempt.port));
  if (attempt.what === 'bind a UDP port') return fs.closeSync(bindDatagrams());
  if (attempt.what === 'send a datagram') return fs.closeSync(sendDatagram(attempt.port));
  if (attempt.what === 'look at shared memory') return lookAtSharedMemory();
  if (attempt.what === 'execveat an own file') return runOwnFile(attempt.folder, attempt.number);
  if (attempt.what !== 'execveat a memory file') throw new Error(`${attempt.what} is tried elsewhere`);
  const memory = memfdCreate('probe');
  writeProgram(memory);
  execPath(attempt.number, `/proc/self/fd/${memory}`);
}

async function outcomeOf(attempt: Attempt): Promise<Outcome> {
  if (attempt.what === 'connect over TCP') return connectOverTcp(attempt.port);
  if (attempt.what === 'listen on a network') return listenOnNetwork();
  try {
    reach(attempt);
    return { reached: true };
  } catch (error) {
    return { reached: false, code: codeOf(error) };
  }
}

/** Writes without the event loop: an attempt that replaces the process leaves no later turn. */
function tell(line: ProbeLine): void {
  fs.writeSync(3, `${JSON.stringify(line)}\n`);
}

async function probe(attempts: readonly Attempt[]): Promise<void> {
  for (const [index, attempt] of attempts.entries()) {
    tell({ trying: index });
    tell({ tried: index, outcome: await outcomeOf(attempt) });
  }
  tell({ finished: true });
  process.exit(0);
}

const channel = new Socket({ fd: 3, readable: true, writable: true });
let held = '';
channel.on('data', (bytes: Buffer) => {
  held += bytes.toString('utf8');
  if (!held.endsWith('\n')) return;
  channel.removeAllListeners('data');
  // TRUST: the list comes from the owner's own command, which started this process for it
  void probe(JSON.parse(held) as Attempt[]);
});
channel.on('end', () => process.exit(0));
