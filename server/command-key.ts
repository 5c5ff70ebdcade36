/*
 * The command key of the control plane: the private half lives in a key-store process of its own, the same program that machines
 * run, started confined through launch. This process sends it typed fields and gets signatures back.
 */
import { constants } from 'node:fs';
import { chmod, chown, lchown, mkdir, open, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { connectKeyStore, signStatements } from '../actors/key-store.ts';
import type { KeyStoreClient } from '../actors/key-store.ts';
import { EXIT_PROTOCOL_VIOLATION } from '../helpers/protocol/errors.ts';
import { copyForOtherUsers, InstallationError, readInstallation } from '../helpers/runtime/installation.ts';
import type { Installation } from '../helpers/runtime/installation.ts';
import { startRow } from '../helpers/runtime/start.ts';
import type { Started } from '../helpers/runtime/start.ts';
import { userOf } from '../helpers/runtime/users.ts';
import { TABLE } from '../helpers/table.ts';
import type { CommandKey } from './context.ts';

/** Longest wait for one answer of the key-store, in ms. */
const ANSWER_MS = 10_000;
/** First and longest wait before a key-store that ended is started again, in ms. */
const RESTART_MS = { first: 100, longest: 30_000 } as const;

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
    sign: (statements) => signStatements(keeper.client, statements, { withinMs: ANSWER_MS }),
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

  get client(): KeyStoreClient {
    if (this.#client === undefined) throw new Error('the key-store is not running');
    return this.#client;
  }

  get publicKey(): Uint8Array {
    if (this.#publicKey === undefined) throw new Error('the key-store is not running');
    return this.#publicKey;
  }

  async stop(): Promise<void> {
    this.#isStopping = true;
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
    const publicKey = await keyOf(client);
    if (this.#publicKey !== undefined && Buffer.compare(publicKey, this.#publicKey) !== 0) {
      this.#break('the key-store holds another key than before');
      return;
    }
    this.#started = started;
    this.#client = client;
    this.#publicKey = publicKey;
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
        // It ended again before it answered; signing is refused meanwhile and the next try waits longer.
      }
    }
  }
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
