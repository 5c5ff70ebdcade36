import { randomBytes } from 'node:crypto';
import { chmod, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { pino } from 'pino';
import type { Settings } from './config.ts';
import type { CommandKey, Context } from './context.ts';
import { openSecrets } from './secrets.ts';
import { openSqliteStore } from './store/sqlite.ts';
import { createWake } from './wake.ts';

/** Name of the database in the data folder. */
export const DATABASE = 'store.db';

/** Opens store and secrets of a data folder, which is made 0700 where it is missing. Close the store when done. */
export async function openContext(settings: Settings, signer: CommandKey): Promise<Context> {
  const { dataFolder } = settings;
  await mkdir(dataFolder, { recursive: true, mode: 0o700 });
  await chmod(dataFolder, 0o700);
  return {
    store: await openSqliteStore(join(dataFolder, DATABASE)),
    clock: { now: () => Date.now() },
    signer,
    random: randomBytes,
    log: pino({ base: null, timestamp: pino.stdTimeFunctions.isoTime }, pino.destination({ dest: 2, sync: true })),
    settings,
    dataFolder,
    secrets: await openSecrets(dataFolder),
    wake: createWake(),
  };
}

/** Stands in where nothing is signed: the commands of the owner beside a running server. */
export const NO_COMMAND_KEY: CommandKey = {
  publicKey: new Uint8Array(32),
  sign: () => Promise.reject(new Error('this command signs nothing')),
};
