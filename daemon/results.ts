/*
 * Results that the control plane has not countersigned yet: bytes by command id, so that a lost answer is sent again as the
 * same bytes after a restart of the process. They are the content that a person granted, kept no longer than that.
 *
 * They are not synced: what is durable is the signed digest in the ledger. Where a power cut took the bytes, the ending is
 * replaced by a refusal that says so (RESULT_LOST), and the result is not invented.
 */
import fs from 'node:fs';
import type { CommandId } from '../helpers/protocol/ids.ts';

/** The results below one folder of the daemon's own. */
export class Results {
  readonly #folder: string;

  /** `folder` is made with mode 0700 when it is not there. */
  constructor(folder: string) {
    this.#folder = folder;
    fs.mkdirSync(folder, { recursive: true, mode: 0o700 });
  }

  /** Keeps a result. Throws with the errno of a disk that cannot take it. */
  keep(command: CommandId, bytes: Uint8Array): void {
    fs.writeFileSync(`${this.#folder}/${command}`, bytes, { mode: 0o600, flag: 'wx' });
  }

  /** Bytes of a kept result; undefined when there are none. */
  read(command: CommandId): Uint8Array | undefined {
    try {
      return fs.readFileSync(`${this.#folder}/${command}`);
    } catch (error) {
      // Absence is an answer: the crash came before the result was kept.
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
      throw error;
    }
  }

  /** Lets a result go. */
  drop(command: CommandId): void {
    fs.rmSync(`${this.#folder}/${command}`, { force: true });
  }

  /** Lets go whatever belongs to none of these commands. */
  keepOnly(commands: ReadonlySet<string>): void {
    for (const name of fs.readdirSync(this.#folder))
      if (!commands.has(name)) fs.rmSync(`${this.#folder}/${name}`, { force: true });
  }
}
