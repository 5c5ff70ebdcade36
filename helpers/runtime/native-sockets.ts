import { syscall } from './libc.ts';

const AF_UNIX = 1;
const AF_INET = 2;
const SOCK_STREAM = 1;
const SOCK_DGRAM = 2;
const SOCK_CLOEXEC = 0o2000000;
/** Bytes of `sun_path` in `struct sockaddr_un` (unix(7)). */
const PATH_LIMIT = 108;
const IPPROTO_MPTCP = 262;
const MSG_FASTOPEN = 0x20000000;

/** Makes a connected pair of stream sockets, both close-on-exec. */
export function socketPair(): [number, number] {
  const pair = Buffer.alloc(8);
  syscall('socketpair', AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair);
  return [pair.readInt32LE(0), pair.readInt32LE(4)];
}

/** Makes an unbound Unix stream socket, close-on-exec. */
export function unixSocket(): number {
  return syscall('socket', AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

function address(path: string): Buffer {
  const bytes = Buffer.from(path);
  if (bytes.length === 0 || bytes.length >= PATH_LIMIT || bytes.includes(0)) {
    throw new Error(`expected a socket path of 1 to ${PATH_LIMIT - 1} bytes, found ${bytes.length}`);
  }
  const whole = Buffer.alloc(2 + bytes.length + 1);
  whole.writeUInt16LE(AF_UNIX, 0);
  bytes.copy(whole, 2);
  return whole;
}

/** Binds a Unix socket to a path and listens; throws NativeError EADDRINUSE where the name exists. */
export function listenAt(socket: number, path: string, backlog: number): void {
  const name = address(path);
  syscall('bind', socket, name, name.length);
  syscall('listen', socket, backlog);
}

/** Connects a Unix socket to the listener at a path; throws NativeError (ECONNREFUSED, ENOENT, EACCES). */
export function connectTo(socket: number, path: string): void {
  const name = address(path);
  syscall('connect', socket, name, name.length);
}

/** `struct sockaddr_in` of a port on 127.0.0.1 (ip(7)). */
function loopback(port: number): Buffer {
  const bytes = Buffer.alloc(16);
  bytes.writeUInt16LE(AF_INET, 0);
  bytes.writeUInt16BE(port, 2);
  bytes.set([127, 0, 0, 1], 4);
  return bytes;
}

/** Makes a socket of multipath TCP connected to a port on 127.0.0.1; the probe's attempt. */
export function connectByMultipath(port: number): number {
  const socket = syscall('socket', AF_INET, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_MPTCP);
  const name = loopback(port);
  syscall('connect', socket, name, name.length);
  return socket;
}

/** Makes a socket of TCP that its first send connects to a port on 127.0.0.1 (MSG_FASTOPEN); the probe's attempt. */
export function connectByFirstSend(port: number): number {
  const socket = syscall('socket', AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const name = loopback(port);
  syscall('sendto', socket, Buffer.from('\n'), 1, MSG_FASTOPEN, name, name.length);
  return socket;
}

/** Makes a datagram socket with a port of its own on 127.0.0.1, at which it could be reached; the probe's attempt. */
export function bindDatagrams(): number {
  const socket = syscall('socket', AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const name = loopback(0);
  syscall('bind', socket, name, name.length);
  return socket;
}

/** Makes a datagram socket and sends an empty datagram to a port on 127.0.0.1; the probe's attempt. */
export function sendDatagram(port: number): number {
  const socket = syscall('socket', AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const name = loopback(port);
  syscall('sendto', socket, Buffer.alloc(0), 0, 0, name, name.length);
  return socket;
}
