import { hkdfSync, createHmac, randomBytes } from 'node:crypto';
import { mkdir, open, readFile } from 'node:fs/promises';
import { join } from 'node:path';

/** What a derived key is for; a digest made for one purpose fits no other. */
export type SecretPurpose = 'pairing-code' | 'pairing-verifier' | 'csrf' | 'limits' | 'audit';

/** Keyed digests of the control plane, under keys that are in no database. */
export interface Secrets {
  /** HMAC-SHA256 under the purpose's own key, 32 bytes. Parts are length-prefixed, so no two lists of parts collide. */
  keyed(purpose: SecretPurpose, ...parts: readonly (string | Uint8Array)[]): Buffer;
}

/** Reads the secret of a data folder, or makes it where none is. Throws where the file is not 32 bytes of the owner's alone. */
export async function openSecrets(dataFolder: string): Promise<Secrets> {
  const file = join(dataFolder, 'secret');
  await mkdir(dataFolder, { recursive: true, mode: 0o700 });
  try {
    const handle = await open(file, 'wx', 0o600);
    await handle.write(randomBytes(32));
    await handle.sync();
    await handle.close();
  } catch (error) {
    // The file exists, which is the usual case; anything else is met by reading it.
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
  }
  const secret = await readFile(file);
  if (secret.length !== 32) throw new Error('the secret of the data folder is damaged: expected 32 bytes');
  return secretsFrom(secret);
}

/** Keyed digests from 32 secret bytes. */
export function secretsFrom(secret: Uint8Array): Secrets {
  const keys = new Map<SecretPurpose, Buffer>();
  const keyOf = (purpose: SecretPurpose): Buffer => {
    const known = keys.get(purpose);
    if (known !== undefined) return known;
    const made = Buffer.from(hkdfSync('sha256', secret, '', `nessie-executor server ${purpose}`, 32));
    keys.set(purpose, made);
    return made;
  };
  return {
    keyed: (purpose, ...parts) => {
      const mac = createHmac('sha256', keyOf(purpose));
      for (const part of parts) {
        const bytes = typeof part === 'string' ? Buffer.from(part, 'utf8') : part;
        const length = Buffer.alloc(4);
        length.writeUInt32BE(bytes.length);
        mac.update(length).update(bytes);
      }
      return mac.digest();
    },
  };
}
