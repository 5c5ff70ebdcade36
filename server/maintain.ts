/*
 * Commands of who runs the control plane, beside a running server or without one. Each prints JSON lines on standard output.
 */
import { createHash } from 'node:crypto';
import { cp, mkdir, readFile, readdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { forgetPassword, signInAddress } from './accounts/sign-in.ts';
import { setUp } from './accounts/setup.ts';
import type { FirstRun } from './accounts/setup.ts';
import { verifyAudit } from './audit/record.ts';
import { ConfigRefused } from './config.ts';
import type { Settings } from './config.ts';
import type { Context } from './context.ts';
import { DATABASE, NO_COMMAND_KEY, openContext } from './open-context.ts';
import { KeyRing } from './payloads/key-ring.ts';

function print(line: object): void {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

async function withContext(settings: Settings, work: (context: Context) => Promise<void>): Promise<void> {
  const context = await openContext(settings, NO_COMMAND_KEY);
  try {
    await work(context);
  } finally {
    await context.store.close();
  }
}

/** Files of the data folder that a backup holds beside the database. */
const BESIDE = ['secret', 'payload-keys.json', 'command-key'] as const;

/**
 * Copies database, secret, payload keys and the command key's folder into a new folder, 0700, with SHA-256 sums. What it holds can open
 * and sign everything: it belongs where the data folder itself could lie. Throws ConfigRefused for a folder that is not new.
 */
export async function backUp(settings: Settings, folder: string): Promise<void> {
  try {
    await mkdir(folder, { mode: 0o700 });
  } catch (cause) {
    throw new ConfigRefused('the backup folder must not exist yet, and its parent must: name a new one', { cause });
  }
  await withContext(settings, async ({ store }) => store.backup(join(folder, DATABASE)));
  for (const name of BESIDE) {
    const source = join(settings.dataFolder, name);
    const exists = await stat(source).then(
      () => true,
      () => false,
    );
    if (exists) await cp(source, join(folder, name), { recursive: true, errorOnExist: true, force: false });
  }
  const files = (await readdir(folder, { recursive: true, withFileTypes: true })).filter((entry) => entry.isFile());
  const sums: Record<string, string> = {};
  for (const file of files) {
    const path = join(file.parentPath, file.name);
    sums[path.slice(folder.length + 1)] = createHash('sha256')
      .update(await readFile(path))
      .digest('hex');
  }
  await writeFile(join(folder, 'sums.json'), `${JSON.stringify(sums, null, 2)}\n`, { mode: 0o600, flag: 'wx' });
  print({ backup: 'written', files: Object.keys(sums).length });
}

/** Looks at everything that a server needs, one line each; true where all of it is in order. */
export async function check(settings: Settings): Promise<boolean> {
  const lines: { check: string; ok: boolean; says: string }[] = [];
  const look = async (name: string, examine: () => Promise<string>): Promise<void> => {
    try {
      lines.push({ check: name, ok: true, says: await examine() });
    } catch (error) {
      lines.push({ check: name, ok: false, says: error instanceof Error ? error.message : 'unknown' });
    }
  };
  await look('data-folder', async () => {
    const { mode } = await stat(settings.dataFolder);
    if ((mode & 0o077) !== 0) throw new Error('the data folder is open to others: set its mode to 0700');
    return 'owner only';
  });
  const { tls } = settings;
  if (tls !== undefined) {
    await look('tls', async () => {
      for (const file of [tls.certificate, tls.key]) {
        if (!(await readFile(file, 'utf8')).includes('-----BEGIN '))
          throw new Error('tls.certificate and tls.key must be PEM files');
      }
      return 'certificate and key are readable';
    });
  }
  await withContext(settings, async ({ store, secrets }) => {
    await look('database', async () => {
      const faults = await store.faults();
      if (faults.length > 0) throw new Error(faults.slice(0, 5).join('; '));
      return 'pages and references are whole';
    });
    await look('audit', async () => {
      const { rows, faults } = await verifyAudit(store.read, secrets);
      if (faults.length > 0)
        throw new Error(`${faults.length} of ${rows} rows are not as written: run \`server audit verify\``);
      return `${rows} rows are as written`;
    });
  });
  for (const line of lines) print(line);
  return lines.every((line) => line.ok);
}

/** Walks the audit chain and names every place where it is not what was written; true where there is none. */
export async function auditVerify(settings: Settings): Promise<boolean> {
  let isWhole = false;
  await withContext(settings, async ({ store, secrets }) => {
    const { rows, faults } = await verifyAudit(store.read, secrets);
    for (const fault of faults) print(fault);
    print({ rows, faults: faults.length });
    isWhole = faults.length === 0;
  });
  return isWhole;
}

/** Makes a new key for payloads; older ones stay as long as something is sealed with them. */
export async function rotateKeys(settings: Settings): Promise<void> {
  const ring = await KeyRing.open(settings.dataFolder, Date.now());
  print({ key: await ring.rotate(Date.now()) });
}

/** A one-time address to sign in with, for somebody who has an account. */
export async function makeSignInAddress(settings: Settings, login: string): Promise<void> {
  await withContext(settings, async (context) => print({ address: await signInAddress(context, login) }));
}

/** Takes a lost password away and prints a one-time address, in whose session a new one is set. */
export async function resetPassword(settings: Settings, login: string): Promise<void> {
  await withContext(settings, async (context) => {
    await forgetPassword(context, login);
    print({ address: await signInAddress(context, login) });
  });
}

/** Makes the owner from the machine that runs the control plane, without password: the one-time address signs in and sets one. */
export async function setUpHere(settings: Settings, first: Omit<FirstRun, 'password'>): Promise<void> {
  await withContext(settings, async (context) => {
    const { person, team, project } = await setUp(context, { ...first, password: undefined }, () => Promise.resolve());
    print({ person, team, project, address: await signInAddress(context, first.login) });
  });
}
