import { readFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { dirname, resolve } from 'node:path';
import * as z from 'zod';

/** The control plane's own sentence about a configuration that it refuses. */
export class ConfigRefused extends Error {
  override readonly name = 'ConfigRefused';
}

const settingsSchema = z.strictObject({
  /** Where the server listens. */
  listen: z.strictObject({
    host: z.string().min(1).default('127.0.0.1'),
    port: z.int().min(0).max(65_535).default(7420),
  }),
  /** What people and machines call it: scheme, host and port, nothing after it. */
  publicOrigin: z.string().min(1),
  /** Certificate chain and key as PEM files; left out behind a proxy on this machine. */
  tls: z.strictObject({ certificate: z.string().min(1), key: z.string().min(1) }).optional(),
  /** Folder of database, secrets and the command key's process, mode 0700. */
  dataFolder: z.string().min(1),
  /** True where a proxy on this machine ends TLS and names the client in X-Forwarded-For. */
  behindProxy: z.boolean().default(false),
  /** How long sealed arguments and results are kept, in hours. */
  payloadHours: z.int().min(1).max(720).default(24),
});

/** What the owner of a control plane decided, checked. */
export type Settings = z.infer<typeof settingsSchema>;

/** Reads a configuration file of JSON; paths in it are relative to it. Throws ConfigRefused with what was expected and what came. */
export async function readSettings(file: string): Promise<Settings> {
  let value: unknown;
  try {
    value = JSON.parse(await readFile(file, 'utf8'));
  } catch (cause) {
    throw new ConfigRefused('the configuration file cannot be read as JSON: give --config the path of one', { cause });
  }
  const settings = checkSettings(value);
  const below = (path: string): string => resolve(dirname(file), path);
  return {
    ...settings,
    dataFolder: below(settings.dataFolder),
    ...(settings.tls === undefined
      ? {}
      : { tls: { certificate: below(settings.tls.certificate), key: below(settings.tls.key) } }),
  };
}

/** Checks settings as a whole. Throws ConfigRefused naming the key. */
export function checkSettings(value: unknown): Settings {
  const parsed = settingsSchema.safeParse(value);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    throw new ConfigRefused(
      `configuration key ${issue?.path.join('.') || '(the file)'}: ${issue?.message ?? 'invalid'}`,
    );
  }
  const settings = parsed.data;
  const origin = parseOrigin(settings.publicOrigin);
  if (settings.tls === undefined && !isLoopback(settings.listen.host)) {
    throw new ConfigRefused(
      'configuration key listen.host: without `tls` the server listens on a loopback address only; give tls.certificate and tls.key, or 127.0.0.1 and a proxy on this machine',
    );
  }
  if (origin.protocol === 'http:' && !isLoopback(origin.hostname)) {
    throw new ConfigRefused('configuration key publicOrigin: plain http is for loopback addresses; use https');
  }
  // THREAT: behind a proxy that nobody declared every client has the proxy's address, so one of them uses up everybody's
  // limits (test/server/app.test.ts).
  if (origin.protocol === 'https:' && settings.tls === undefined && !settings.behindProxy) {
    throw new ConfigRefused(
      'configuration key behindProxy: https without `tls` is ended by a proxy on this machine; say "behindProxy": true and have it name the client in X-Forwarded-For, or give tls.certificate and tls.key',
    );
  }
  return settings;
}

function parseOrigin(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !['http:', 'https:'].includes(url.protocol) || url.origin !== text) {
    throw new ConfigRefused(
      'configuration key publicOrigin: expected scheme, host and port alone, as in https://nessie.example.org',
    );
  }
  return url;
}

/** Whether a host is a literal loopback address: a name may resolve to anything. */
export function isLoopback(host: string): boolean {
  const bare = host.replace(/^\[|\]$/g, '');
  if (isIP(bare) === 4) return bare.startsWith('127.');
  return bare === '::1';
}
