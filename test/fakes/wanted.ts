import type { CommandId, RunId } from '../../helpers/protocol/ids.ts';
import type { CommandEnvelope } from '../../helpers/protocol/statements.ts';
import type { ReceiptFrame } from '../../server/protocol.ts';

/** How one command went, as the fake saw it. */
export interface Told {
  readonly command: CommandId;
  readonly frame: ReceiptFrame;
  /** Outcome of the newest receipt, or its refusal's code. */
  readonly ending: string | undefined;
  readonly result: unknown;
}

/** A command before it is signed: what a test wants to be different. */
export interface Wanted {
  readonly operation: string;
  readonly arguments?: unknown;
  readonly content?: Uint8Array;
  readonly run?: RunId;
  readonly envelope?: Partial<CommandEnvelope>;
  readonly byPerson?: boolean;
}
