/*
 * The page as people meet it: the built page served by the real control plane in a process of its own, real machines or machines
 * at the level of the protocol behind it, and Chromium in front.
 */
import type { ChildProcess } from 'node:child_process';
import fs from 'node:fs';
import net from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';

import { bundle, ENTRIES } from '../../../helpers/build/bundle.ts';
import { startServer, stopChild } from '../../../daemon/demo/children.ts';
import type { RunningServer } from '../../../daemon/demo/children.ts';
import { Person } from '../../../daemon/demo/person.ts';

const TOP = path.resolve(import.meta.dirname, '..', '..', '..');

/** The owner of each world. */
export const OWNER = {
  organisation: 'Loch Works',
  team: 'Shore',
  project: 'Survey',
  login: 'ness',
  name: 'Ness Macleod',
  password: 'four unrelated words',
} as const;

let installed: string | undefined;

/** Builds everything that ships once a test process, into a folder that every uid can read. */
export async function installation(): Promise<string> {
  if (installed !== undefined) return installed;
  const parent = fs.mkdtempSync(path.join(tmpdir(), 'page-world-'));
  fs.chmodSync(parent, 0o755);
  const dist = path.join(parent, 'dist');
  await bundle(TOP, dist, ENTRIES);
  // The server's dependencies are not bundled: they are found where the tree has them.
  fs.symlinkSync(path.join(TOP, 'node_modules'), path.join(parent, 'node_modules'));
  process.once('exit', () => fs.rmSync(parent, { recursive: true, force: true }));
  installed = dist;
  return dist;
}

const children = new Set<ChildProcess>();
process.once('exit', () => {
  for (const child of children) child.kill();
});

/** A test process that ends early leaves no child behind. */
export function endWithTests(child: ChildProcess): void {
  children.add(child);
  child.once('exit', () => children.delete(child));
}

async function freePort(): Promise<number> {
  const server = net.createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  // A listening TCP server has an address and a port.
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

/** One control plane with a folder for whatever belongs to it. */
export class World {
  readonly dist: string;
  readonly folder: string;
  readonly server: RunningServer;

  private constructor(dist: string, folder: string, server: RunningServer) {
    this.dist = dist;
    this.folder = folder;
    this.server = server;
  }

  static async start(): Promise<World> {
    const dist = await installation();
    const folder = fs.mkdtempSync(path.join(tmpdir(), 'page-'));
    fs.chmodSync(folder, 0o755);
    const server = await startServer(dist, path.join(folder, 'server'), await freePort());
    endWithTests(server.process);
    return new World(dist, folder, server);
  }

  get origin(): string {
    return this.server.origin;
  }

  /** The first-run address of the server. */
  get setUpAddress(): string {
    if (this.server.setup === null) throw new Error('this server has an owner already');
    return this.server.setup;
  }

  /** Makes the owner without a browser, by the calls that the page makes. */
  async setUp(): Promise<Person> {
    const person = new Person(this.origin);
    await person.setUp(this.setUpAddress, OWNER);
    return person;
  }

  /** Whether any file of the server holds a text: database, its log, whatever else. */
  holds(text: string): boolean {
    const folder = path.join(this.folder, 'server');
    const files = fs.readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
    return files.some((entry) => fs.readFileSync(path.join(entry.parentPath, entry.name)).includes(text));
  }

  async stop(): Promise<void> {
    await stopChild(this.server.process);
    fs.rmSync(this.folder, { recursive: true, force: true });
  }
}
