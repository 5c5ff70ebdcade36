import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setupAddress } from './accounts/setup.ts';
import { createApp } from './app.ts';
import { startCommandKey } from './command-key.ts';
import { startWork } from './commands/start-work.ts';
import type { Settings } from './config.ts';
import { openContext } from './open-context.ts';
import { expirePairings } from './pairing/show.ts';

/** How often pairings whose time passed are ended, in ms. */
const PAIRING_SWEEP_MS = 10_000;
/** Longest orderly stop, in ms; then the process ends as it is (R93). */
const STOP_MS = 10_000;

/**
 * Serves until a termination signal: key-store first, then store and work, then the port; in reverse order at the end. Prints one line
 * of JSON once it listens: `{"listening": origin, "setup": one-time address or null}`.
 */
export async function serve(settings: Settings, installationFolder: string): Promise<void> {
  const key = await startCommandKey(installationFolder, settings.dataFolder);
  const context = await openContext(settings, key);
  const work = await startWork(context, { keptMs: settings.payloadHours * 3_600_000 });
  const page = join(installationFolder, 'page');
  const app = await createApp(context, work, existsSync(join(page, 'index.html')) ? page : undefined);
  await app.listen(settings.listen);
  const sweep = setInterval(() => {
    expirePairings(context).catch((error: unknown) => {
      context.log.error({ error: error instanceof Error ? error.name : 'unknown' }, 'pairings not swept');
    });
  }, PAIRING_SWEEP_MS);
  process.stdout.write(
    `${JSON.stringify({ listening: settings.publicOrigin, setup: (await setupAddress(context)) ?? null })}\n`,
  );
  const cause = await Promise.race([termination(), key.broken]);
  context.log.info({ cause }, 'stopping');
  const forced = setTimeout(() => process.exit(1), STOP_MS);
  clearInterval(sweep);
  await work.stop();
  await app.close();
  await context.store.close();
  await key.stop();
  clearTimeout(forced);
  if (cause !== 'SIGTERM' && cause !== 'SIGINT') process.exitCode = 1;
}

function termination(): Promise<string> {
  return new Promise((resolve) => {
    process.once('SIGTERM', () => resolve('SIGTERM'));
    process.once('SIGINT', () => resolve('SIGINT'));
  });
}
