/*
 * supervisor: the root of the process tree. It holds the union of all rights by necessity, so it is small, reads no message
 * of anyone, and takes orders of 32 bytes from `daemon` alone.
 *
 *   supervisor ─┬─ daemon        its end ends everything
 *               ├─ link          started with the daemon, restarted after a failure
 *               ├─ key-store     the same
 *               ├─ workspace     the same
 *               └─ promote SLOT  one at a time for a slot, by order of the daemon, never restarted
 */
import fs from 'node:fs';
import path from 'node:path';

import { readConfiguration, StartRefusal } from '../runtime/configuration.ts';
import { isViolation, meaningOf, type Exit } from '../runtime/exits.ts';
import { forbiddenFolders } from '../runtime/forbidden-folders.ts';
import { copyForOtherUsers, InstallationError, readInstallation, type Installation } from '../runtime/installation.ts';
import { keepCapabilities } from '../runtime/root.ts';
import { NativeError } from '../runtime/libc.ts';
import type { RowName } from '../runtime/privileges.ts';
import { startRow, type Started } from '../runtime/start.ts';
import { clearLeftovers, openFolder } from '../runtime/state-folder.ts';
import { userOf } from '../runtime/users.ts';
import { TABLE } from '../table.ts';
import { checkRootApart, descriptorsFor, makeListeners, openChannels, type Channels } from './channels.ts';
import { decodeOrder, encodeReport, RecordReader, type Order, type OrderRefusal, type Report } from './request.ts';
import { afterEnding, NO_ENDINGS, type Endings } from '../runtime/restart.ts';

const GRACE_MS = 2_000;
const DRAIN_MS = 10_000;
const EXIT = { violation: 64, daemonEnded: 69, launchFailed: 71, alreadyRunning: 75, configuration: 78 } as const;

type Running = { readonly row: RowName; readonly slot: number; readonly started: Started; isWanted: boolean };

const keyOf = (row: RowName, slot: number): string => `${row} ${slot}`;

function log(line: string): void {
  process.stderr.write(`supervisor: ${line}\n`);
}

/** Why a start was not made, without the cause's text, which may name a path. */
function refusalOf(error: unknown): OrderRefusal {
  if (error instanceof InstallationError) return 'installation altered';
  return error instanceof NativeError && error.call === 'openat2' ? 'slot has no folder' : 'could not be started';
}

/** Starts rows, watches them, and tells the daemon how they end. */
class Supervisor {
  readonly #installation: Installation;
  readonly #channels: Channels;
  readonly #forbidden: string;
  /** The executor's own folders, open: none of them and the root may lie inside one another. */
  readonly #own: readonly number[];
  readonly #running = new Map<string, Running>();
  readonly #endings = new Map<RowName, Endings>();
  #isEnding = false;

  /** `built` is what the installation was copied from, or the same. Throws StartRefusal for a root that must not be one. */
  constructor(built: Installation, installation: Installation, channels: Channels) {
    this.#installation = installation;
    this.#channels = channels;
    const { configuration, configurationFolder, state, root } = channels;
    this.#forbidden = forbiddenFolders(configuration, installation);
    const programs = [built, installation].map(({ folder }) => openFolder(folder));
    this.#own = [state.top, configurationFolder, ...programs];
    checkRootApart(root, this.#own);
  }

  /** Starts the daemon, then every other long-lived row; resolves with the daemon's end. */
  async run(): Promise<Exit> {
    const listeners = makeListeners(this.#channels.state);
    const daemon = this.#start('daemon', 0, {
      ...this.#channels,
      known: new Map([...this.#channels.known, ...listeners]),
    });
    // no process keeps a spare end: from here on the daemon alone accepts
    for (const listener of listeners.values()) fs.closeSync(listener);
    const reader = new RecordReader();
    daemon.started.channel?.on('data', (bytes: Buffer) => {
      for (const record of reader.push(bytes)) this.#obey(record);
    });
    daemon.started.channel?.on('error', () => undefined);
    for (const { row, lifetime } of Object.values(TABLE)) {
      if (lifetime === 'long-lived' && row !== 'daemon' && row !== 'supervisor') this.#startAgain(row);
    }
    return daemon.started.exited;
  }

  /** Asks the daemon to end, and kills it when it has not after ten seconds. */
  stop(): void {
    const daemon = this.#running.get(keyOf('daemon', 0));
    if (daemon === undefined || !daemon.isWanted) return;
    this.#isEnding = true;
    this.#end(daemon, DRAIN_MS);
  }

  /** Ends every row that still runs; resolves when all have ended. */
  async endAll(): Promise<void> {
    this.#isEnding = true;
    const left = [...this.#running.values()];
    for (const running of left) this.#end(running, GRACE_MS);
    await Promise.all(left.map(({ started }) => started.exited));
  }

  #start(row: RowName, slot: number, channels: Channels = this.#channels): Running {
    const declaration = TABLE[row];
    if (!declaration.confined) throw new Error(`${row} is not a row to start`);
    const { configuration, root, state } = channels;
    // asked again each time: folders move
    if (declaration.descriptors.some(({ source }) => source === 'root folder')) checkRootApart(root, this.#own);
    const { given, opened } = descriptorsFor(declaration, slot, channels);
    try {
      const started = startRow({
        row,
        slot,
        program: 'role',
        installation: this.#installation,
        descriptors: given,
        connect: row === 'daemon' ? undefined : `${row}.sock`,
        user: userOf(declaration, root),
        origin: configuration.origin,
        loopback: process.env['NESSIE_ALLOW_LOOPBACK_HTTP'] === '1',
        forbiddenFolders: this.#forbidden,
        // by the descriptor, which no rename of a folder above it leads elsewhere; launch is a child and lives as long
        records: `/proc/${process.pid}/fd/${state.audit}`,
      });
      const running = { row, slot, started, isWanted: true };
      this.#running.set(keyOf(row, slot), running);
      const startedAt = performance.now();
      void started.exited.then((exit) => this.#ended(running, exit, performance.now() - startedAt));
      return running;
    } finally {
      for (const descriptor of opened) fs.closeSync(descriptor);
    }
  }

  #startAgain(row: RowName): void {
    if (this.#isEnding || this.#running.has(keyOf(row, 0))) return;
    try {
      this.#start(row, 0);
      this.#tell({ report: 'started', row, slot: 0, number: 0 });
    } catch (error) {
      const reason = refusalOf(error);
      log(`${row} is not started: ${reason}`);
      this.#tell({ report: 'refused', row, slot: 0, number: 0, reason });
      // an altered file waits for a person; whatever else is missing may come back
      const { waitMs } = this.#failed(row, 0);
      if (reason !== 'installation altered' && waitMs !== undefined) setTimeout(() => this.#startAgain(row), waitMs);
    }
  }

  #failed(row: RowName, ranMs: number): ReturnType<typeof afterEnding> {
    const after = afterEnding(this.#endings.get(row) ?? NO_ENDINGS, ranMs, performance.now());
    this.#endings.set(row, after.endings);
    return after;
  }

  #ended(running: Running, exit: Exit, ranMs: number): void {
    const { row, slot, started } = running;
    this.#running.delete(keyOf(row, slot));
    fs.rmSync(`/proc/self/fd/${this.#channels.state.audit}/${started.pid}.json`, { force: true });
    if (row === 'daemon') return;
    const seen = meaningOf(exit);
    // THREAT: a taken-over row that breaks the rules while it is being ended: a violation is one whoever asked for the ending
    const meaning = running.isWanted || isViolation(seen) ? seen : 'asked for';
    // the daemon, which takes note of it, may be gone by now: then the exit of this process says it
    if (this.#isEnding && isViolation(meaning)) process.exitCode = EXIT.violation;
    const isFailure = meaning !== 'asked for' && !isViolation(meaning) && TABLE[row].lifetime === 'long-lived';
    const after = isFailure ? this.#failed(row, ranMs) : undefined;
    const waitMs = after?.waitMs;
    const next = after === undefined ? 'ended' : waitMs === undefined ? 'down' : 'restarting';
    const code = exit.by === 'code' ? exit.code : undefined;
    const signal = exit.by === 'signal' ? exit.signal : undefined;
    if (!this.#isEnding || isViolation(meaning)) log(`${row} ended: ${meaning} (${code ?? signal}), ${next}`);
    this.#tell({
      report: 'ended',
      row,
      slot,
      meaning,
      code,
      signal,
      next,
      recent: after?.recent ?? 0,
      waitMs: waitMs ?? 0,
    });
    if (waitMs !== undefined && !this.#isEnding) setTimeout(() => this.#startAgain(row), waitMs);
  }

  #end(running: Running, graceMs: number): void {
    running.isWanted = false;
    running.started.end('SIGTERM');
    const timer = setTimeout(() => running.started.end('SIGKILL'), graceMs);
    void running.started.exited.then(() => clearTimeout(timer));
  }

  #obey(record: Buffer): void {
    let order: Order;
    try {
      order = decodeOrder(record);
    } catch {
      // THREAT: a taken-over daemon tries bytes; there is nothing to recover from, a person must look
      log('the daemon sent what is no order: ending everything');
      process.exitCode = EXIT.violation;
      this.#running.get(keyOf('daemon', 0))?.started.end('SIGKILL');
      return;
    }
    const reason = this.#refusal(order);
    if (reason !== undefined) this.#tell({ ...order, report: 'refused', reason });
  }

  #refusal({ order, row, slot, number }: Order): OrderRefusal | undefined {
    if (row === 'daemon' || !TABLE[row].confined) return 'row may not be ordered';
    if (slot !== 0 && TABLE[row].lifetime === 'long-lived') return 'row may not be ordered';
    const running = this.#running.get(keyOf(row, slot));
    if (order === 'end') {
      if (running === undefined) return 'not running';
      this.#end(running, GRACE_MS);
      return undefined;
    }
    if (running !== undefined) return 'already running';
    try {
      this.#start(row, slot);
    } catch (error) {
      return refusalOf(error);
    }
    this.#tell({ report: 'started', row, slot, number });
    return undefined;
  }

  #tell(report: Report): void {
    const channel = this.#running.get(keyOf('daemon', 0))?.started.channel;
    if (channel?.writable === true) channel.write(encodeReport(report));
  }
}

async function main(): Promise<number> {
  const ring = process.env['UV_USE_IO_URING'];
  if (ring !== undefined && ring !== '0')
    throw new StartRefusal('ENVIRONMENT_UNSAFE', 'UV_USE_IO_URING is set: unset it');
  const declaration = TABLE.supervisor;
  if (process.getuid?.() === 0 && !declaration.confined)
    keepCapabilities(declaration.capabilities.map(({ bit }) => bit));
  const channels = openChannels(readConfiguration(path.resolve(process.argv[2] ?? '.')));
  clearLeftovers(channels.state);
  const built = readInstallation(import.meta.dirname);
  const installation = process.getuid?.() === 0 ? copyForOtherUsers(built) : built;
  const supervisor = new Supervisor(built, installation, channels);
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => supervisor.stop());
  const exit = await supervisor.run();
  await supervisor.endAll();
  const meaning = meaningOf(exit);
  if (typeof process.exitCode === 'number' || isViolation(meaning)) return EXIT.violation;
  if (meaning === 'asked for') return 0;
  log(`the daemon ended: ${meaning} (${exit.by === 'code' ? exit.code : exit.signal})`);
  return meaning === 'launch failed' ? EXIT.launchFailed : EXIT.daemonEnded;
}

try {
  process.exit(await main());
} catch (error) {
  if (!(error instanceof StartRefusal) && !(error instanceof InstallationError)) throw error;
  log(`${error.code}: ${error.message}`);
  process.exit(error.code === 'DAEMON_ALREADY_RUNNING' ? EXIT.alreadyRunning : EXIT.configuration);
}
