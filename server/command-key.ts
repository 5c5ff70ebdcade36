/*
 * The command key of the control plane: the private half lives in a key-store process of its own, the same program that machines
 * run, started confined through launch. This process sends it typed fields and gets signatures back.
 */
import { constants } from 'node:fs';
import { chmod, chown, lchown, mkdir, open, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { HelperGone, HelperRefused, HelperSilent } from '../actors/helper-client.ts';
import { connectKeyStore, signStatements } from '../actors/key-store.ts';
import type { KeyStoreClient } from '../actors/key-store.ts';
import { EXIT_PROTOCOL_VIOLATION } from '../helpers/protocol/errors.ts';
import { copyForOtherUsers, InstallationError, readInstallation } from '../helpers/runtime/installation.ts';
import type { Installation } from '../helpers/runtime/installation.ts';
import { startRow } from '../helpers/runtime/start.ts';
import type { Started } from '../helpers/runtime/start.ts';
import { userOf } from '../helpers/runtime/users.ts';
import { TABLE } from '../helpers/table.ts';
import type { CommandKey, StatementToSign } from './context.ts';
import type { Signed } from '../helpers/protocol/signed.ts';
import { Refusal } from './refusal.ts';

/** Longest wait for one answer of the key-store, in ms. */
const ANSWER_MS = 10_000;
/** First and longest wait before a key-store that ended is started again, in ms. */
const RESTART_MS = { first: 100, longest: 30_000 } as const;
/** Longest wait of a signature for a key-store that is being started again, in ms: a connection outlives a restart, and a machine that hears nothing for three seconds starts nothing meanwhile. */
const ABSENT_MS = 5000;

/** A command key whose process is kept running. */
export interface KeptCommandKey extends CommandKey {
  /** Resolves with a sentence when the key can be trusted no longer, and the server must end. */
  readonly broken: Promise<string>;
  stop(): Promise<void>;
}

/** Starts the key-store over `dataFolder/command-key`, making the key at the first start. Throws where it cannot be started or is another purpose's. */
export async function startCommandKey(installationFolder: string, dataFolder: string): Promise<KeptCommandKey> {
  const keeper = await Keeper.start(preparedInstallation(installationFolder), join(dataFolder, 'command-key'));
  return {
    publicKey: keeper.publicKey,
    broken: keeper.broken,
    sign: (statements) => keeper.sign(statements),
    stop: () => keeper.stop(),
  };
}

/** The key-store cannot be started; the sentence names what to do. */
export class CommandKeyRefused extends Error {
  override readonly name = 'CommandKeyRefused';
}

function preparedInstallation(folder: string): Installation {
  try {
    const installation = readInstallation(folder);
    return process.getuid?.() === 0 ? copyForOtherUsers(installation) : installation;
  } catch (cause) {
    if (cause instanceof InstallationError) throw new CommandKeyRefused(cause.message, { cause });
    throw cause;
  }
}

class Keeper {
  readonly #installation: Installation;
  readonly #folder: string;
  readonly broken: Promise<string>;
  #break: (sentence: string) => void = () => undefined;
  #isStopping = false;
  #started: Started | undefined;
  #client: KeyStoreClient | undefined;
  #publicKey: Uint8Array | undefined;
  readonly #waiting = new Set<() => void>();

  private constructor(installation: Installation, folder: string) {
    this.#installation = installation;
    this.#folder = folder;
    this.broken = new Promise((resolve) => {
      this.#break = resolve;
    });
  }

  static async start(installation: Installation, folder: string): Promise<Keeper> {
    const keeper = new Keeper(installation, folder);
    await keeper.#begin();
    return keeper;
  }

  get publicKey(): Uint8Array {
    if (this.#publicKey === undefined) throw new Error('the key-store is not running');
    return this.#publicKey;
  }

  /**
   * Signs with the key-store of the moment, or with the next one where it is being started again: a signature that was lost with its
   * process was used by nobody. Throws Refusal UNAVAILABLE where none answers in time.
   */
  async sign(statements: readonly StatementToSign[]): Promise<readonly Signed[]> {
    const giveUpAt = performance.now() + ABSENT_MS;
    for (;;) {
      const client = await this.#connected(giveUpAt - performance.now());
      if (client === undefined) throw unavailable('the process of its command key is being started again');
      try {
        return await signStatements(client, statements, { withinMs: ANSWER_MS });
      } catch (error) {
        // The next turn waits for the next process.
        if (!(error instanceof HelperGone)) throw refusalOf(error);
      }
    }
  }

  /** The client of the moment, or of a key-store that comes within this time. */
  async #connected(withinMs: number): Promise<KeyStoreClient | undefined> {
    if (this.#live === undefined && !this.#isStopping && withinMs > 0) {
      await new Promise<void>((resolve) => {
        const come = (): void => {
          clearTimeout(timer);
          this.#waiting.delete(come);
          resolve();
        };
        const timer = setTimeout(come, withinMs);
        this.#waiting.add(come);
      });
    }
    return this.#live;
  }

  get #live(): KeyStoreClient | undefined {
    return this.#client?.isEnded === false ? this.#client : undefined;
  }

  async stop(): Promise<void> {
    this.#isStopping = true;
    for (const come of this.#waiting) come();
    this.#client?.close();
    this.#started?.end('SIGTERM');
    await this.#started?.exited;
  }

  async #begin(): Promise<void> {
    const row = TABLE['key-store'];
    if (!row.confined) throw new Error('the key-store is declared confined');
    // The key-store's user does not depend on a root folder.
    const user = userOf(row, -1);
    const folder = await openKeyFolder(this.#folder, user);
    const started = startRow({
      row: 'key-store',
      program: 'role',
      installation: this.#installation,
      descriptors: new Map<number, number | 'channel' | 'log'>([
        [3, 'channel'],
        [4, folder.fd],
      ]),
      connect: undefined,
      user,
      slot: 0,
      origin: undefined,
      loopback: false,
      forbiddenFolders: '',
      records: undefined,
    });
    await folder.close();
    if (started.channel === undefined) throw new Error('the key-store has no channel');
    const client = connectKeyStore(started.channel);
    const publicKey = await keyOf(client).catch((error: unknown) => {
      // One that does not answer must not stay beside the next one over the same folder.
      started.end('SIGKILL');
      throw error;
    });
    if (this.#publicKey !== undefined && Buffer.compare(publicKey, this.#publicKey) !== 0) {
      this.#break('the key-store holds another key than before');
      return;
    }
    this.#started = started;
    this.#client = client;
    this.#publicKey = publicKey;
    for (const come of this.#waiting) come();
    void started.exited.then((exit) => this.#ended(exit.by === 'code' ? exit.code : exit.signal));
  }

  async #ended(how: number | string): Promise<void> {
    if (this.#isStopping) return;
    if (how === EXIT_PROTOCOL_VIOLATION || how === 'SIGSYS') {
      this.#break('the key-store ended over a violation of its protocol or confinement');
      return;
    }
    for (let waitMs: number = RESTART_MS.first; !this.#isStopping; waitMs = Math.min(waitMs * 2, RESTART_MS.longest)) {
      await wait(waitMs);
      try {
        await this.#begin();
        return;
      } catch {
        // It ended again before it answered; what cannot wait is refused meanwhile, and the next try waits longer.
      }
    }
  }
}

/** What a signature that did not come is to whoever wanted it. A key-store that refuses for another cause was asked wrongly, which is a bug. */
function refusalOf(error: unknown): unknown {
  if (error instanceof HelperSilent) return unavailable('the process of its command key does not answer');
  const isDisk =
    error instanceof HelperRefused && (error.code === 'GUARD_UNWRITABLE' || error.code === 'STORE_UNWRITABLE');
  return isDisk
    ? unavailable('its command key cannot count signatures on the disk, whose operator must make room')
    : error;
}

function unavailable(why: string): Refusal {
  const message = `The control plane cannot sign now: ${why}.`;
  return new Refusal('UNAVAILABLE', message, { status: 503, remedy: 'Try again in a moment.' });
}

async function openKeyFolder(folder: string, user: { readonly uid: number; readonly gid: number } | undefined) {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await chmod(folder, 0o700);
  if (user !== undefined) {
    // A folder that came out of a backup belongs to whoever copied it.
    for (const name of await readdir(folder)) await lchown(join(folder, name), user.uid, user.gid);
    await chown(folder, user.uid, user.gid);
  }
  return open(folder, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW);
}

async function keyOf(client: KeyStoreClient): Promise<Uint8Array> {
  const status = await client.request('keystore.status', {}, { withinMs: ANSWER_MS });
  if (status.state === 'empty') {
    const made = await client.request(
      'keystore.generate',
      { purpose: 'control-plane' },
      { withinMs: ANSWER_MS, key: 'generate' },
    );
    return made.publicKey;
  }
  if (status.purpose !== 'control-plane')
    throw new CommandKeyRefused(
      'the key in command-key of the data folder belongs to a machine: name another data folder',
    );
  return status.publicKey;
}
