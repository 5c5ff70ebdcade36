import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { aboutError } from './about-error.ts';
import { setupAddress } from './accounts/setup.ts';
import { createApp } from './app.ts';
import { startCommandKey } from './command-key.ts';
import { startWork } from './commands/start-work.ts';
import type { Settings } from './config.ts';
import type { Context } from './context.ts';
import { openContext } from './open-context.ts';
import { expirePairings } from './pairing/show.ts';

/** How often pairings whose time passed are ended, in ms. */
const PAIRING_SWEEP_MS = 10_000;
/** Longest orderly stop, in ms; then the process ends as it is (R93). */
const STOP_MS = 10_000;

/**
 * Serves until a termination signal: key-store first, then store and work, then the port; in reverse order at the end, and also when a
 * later one cannot start. Prints one line of JSON once it listens: `{"listening": origin, "setup": one-time address or null}`.
 */
export async function serve(settings: Settings, installationFolder: string): Promise<void> {
  const endings: (() => Promise<unknown>)[] = [];
  try {
    const key = await startCommandKey(installationFolder, settings.dataFolder);
    endings.unshift(() => key.stop());
    const context = await openContext(settings, key);
    endings.unshift(() => context.store.close());
    const work = await startWork(context, { keptMs: settings.payloadHours * 3_600_000 });
    endings.unshift(() => work.stop());
    const page = join(installationFolder, 'page');
    const app = await createApp(context, work, existsSync(join(page, 'index.html')) ? page : undefined);
    // After the work: its connections are told to come again before the sockets close under them.
    endings.splice(1, 0, () => app.close());
    await app.listen(settings.listen);
    const sweep = setInterval(() => void sweepPairings(context), PAIRING_SWEEP_MS);
    endings.unshift(() => Promise.resolve(clearInterval(sweep)));
    const setup = (await setupAddress(context)) ?? null;
    process.stdout.write(`${JSON.stringify({ listening: settings.publicOrigin, setup })}\n`);
    const cause = await Promise.race([termination(), key.broken]);
    context.log.info({ cause }, 'stopping');
    if (cause !== 'SIGTERM' && cause !== 'SIGINT') process.exitCode = 1;
  } finally {
    const forced = setTimeout(() => process.exit(1), STOP_MS);
    for (const end of endings) await end();
    clearTimeout(forced);
  }
}

async function sweepPairings(context: Context): Promise<void> {
  try {
    await expirePairings(context);
  } catch (error) {
    // Each call looks at the time itself; the next sweep tries again.
    context.log.error(aboutError(error), 'pairings not swept');
  }
}

function termination(): Promise<string> {
  return new Promise((resolve) => {
    process.once('SIGTERM', () => resolve('SIGTERM'));
    process.once('SIGINT', () => resolve('SIGINT'));
  });
}
