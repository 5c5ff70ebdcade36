/*
 * The owner's connection to the daemon: its inherited, owner-only listener in the state folder.
 */
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { HelperClient, HelperGone, HelperRefused, HelperSilent } from '../../actors/helper-client.ts';
import { daemonRequests } from '../protocol.ts';
import type { DaemonRequest } from '../protocol.ts';
import type { ReplyBody, RequestBody } from '../../actors/helper-client.ts';
import { CliFailure } from './failure.ts';

// The daemon hands on codes of its helpers, so the list of daemon/protocol.ts is not the whole.
const contract = { requests: daemonRequests, events: {}, refusals: 'any' } as const;

/** A connection to the daemon. */
export type OwnerClient = HelperClient<typeof contract>;

const ASK_MS = 30_000;

/** Whether anything listens for the owner of this state folder. */
export async function isDaemonUp(stateDir: string): Promise<boolean> {
  try {
    (await connectOwner(stateDir)).close();
    return true;
  } catch (error) {
    if (error instanceof CliFailure && error.ending === 'unreachable') return false;
    throw error;
  }
}

/** Connects to the daemon of a state folder. Rejects with CliFailure: unreachable. */
export async function connectOwner(stateDir: string): Promise<OwnerClient> {
  const run = openFolder(path.join(stateDir, 'run'));
  try {
    // By the open folder, because a socket's path may have 107 bytes only (unix(7)).
    return new HelperClient(await connect(`/proc/self/fd/${run}/cli.sock`), contract);
  } finally {
    fs.closeSync(run);
  }
}

/** Asks one request over a connection of its own; `withinMs` is the longest wait. Rejects with CliFailure. */
export async function askDaemon<Type extends DaemonRequest>(
  stateDir: string,
  type: Type,
  body: RequestBody<typeof contract, Type>,
  withinMs = ASK_MS,
): Promise<ReplyBody<typeof contract, Type>> {
  const client = await connectOwner(stateDir);
  try {
    return await askOver(client, type, body, withinMs);
  } finally {
    client.close();
  }
}

/** Asks one request over an open connection. Rejects with CliFailure. */
export async function askOver<Type extends DaemonRequest>(
  client: OwnerClient,
  type: Type,
  body: RequestBody<typeof contract, Type>,
  withinMs = ASK_MS,
): Promise<ReplyBody<typeof contract, Type>> {
  try {
    return await client.request(type, body, { withinMs });
  } catch (error) {
    throw failureOf(error);
  }
}

function failureOf(error: unknown): unknown {
  if (error instanceof HelperRefused)
    return new CliFailure('refused', `${error.message} (${error.code})`, { cause: error });
  if (error instanceof HelperSilent)
    return new CliFailure('unreachable', 'The daemon does not answer.', { cause: error });
  if (error instanceof HelperGone)
    return new CliFailure('unreachable', 'The daemon ended the connection.', { cause: error });
  return error;
}

function openFolder(folder: string): number {
  try {
    return fs.openSync(folder, fs.constants.O_RDONLY | fs.constants.O_DIRECTORY);
  } catch (cause) {
    throw notRunning(cause);
  }
}

function connect(address: string): Promise<net.Socket> {
  return new Promise((resolve, reject) => {
    const socket = net.connect(address);
    socket.once('error', (cause) => reject(notRunning(cause)));
    socket.once('connect', () => {
      socket.removeAllListeners('error');
      resolve(socket);
    });
  });
}

function notRunning(cause: unknown): CliFailure {
  const denied = cause instanceof Error && 'code' in cause && cause.code === 'EACCES';
  if (denied) return new CliFailure('unreachable', 'The daemon belongs to another user; ask as that user.', { cause });
  return new CliFailure('unreachable', 'The daemon does not run; start it with `nessie-executor daemon`.', { cause });
}
