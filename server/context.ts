import type { Logger } from 'pino';
import type { ToSign } from '../actors/key-store.ts';
import type { ControlStatementType } from '../helpers/protocol/statements.ts';
import type { Signed } from '../helpers/protocol/signed.ts';
import type { Secrets } from './secrets.ts';
import type { Settings } from './config.ts';
import type { Store } from './store/store.ts';
import type { Wake } from './wake.ts';

/** One statement for the command key to sign. */
export type StatementToSign = ToSign<ControlStatementType>;

/** The control plane's command key: its private half lives in another process. */
export interface CommandKey {
  /** 32 bytes, which machines pin at pairing. */
  readonly publicKey: Uint8Array;
  /** Signs in order, with rising guards; one to sixteen at a time. Throws Refusal UNAVAILABLE where the key process does not answer. */
  sign(statements: readonly StatementToSign[]): Promise<readonly Signed[]>;
}

/** What every subject of the control plane works with. */
export interface Context {
  readonly store: Store;
  readonly clock: { now(): number };
  readonly signer: CommandKey;
  /** Unpredictable bytes. */
  readonly random: (bytes: number) => Buffer;
  readonly log: Logger;
  readonly settings: Settings;
  /** Absolute path of the control plane's own folder, mode 0700. */
  readonly dataFolder: string;
  readonly secrets: Secrets;
  readonly wake: Wake;
}
