import type { ChannelRefusal } from '../protocol.ts';

/** A question of a machine is refused; the message is for its owner and says nothing that only the control plane knows. */
export class ChannelRefused extends Error {
  override readonly name = 'ChannelRefused';
  readonly code: ChannelRefusal;
  /** The connection ends after the answer. */
  readonly ends: boolean;

  constructor(code: ChannelRefusal, message: string, { ends = false }: { readonly ends?: boolean } = {}) {
    super(message);
    this.code = code;
    this.ends = ends;
  }
}

/** Bytes that no honest machine sends: the connection ends without an answer. */
export class ChannelViolation extends Error {
  override readonly name = 'ChannelViolation';
}
