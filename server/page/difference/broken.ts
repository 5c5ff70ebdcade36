/** Largest side that is opened, in bytes. */
export const SIDE_LIMIT_BYTES = 4 * 1024 * 1024;
/** What can be wrong with sealed bytes. */
export type SealFault = 'not-for-this-key' | 'wrong-length' | 'too-large' | 'wrong-digest';

/** Bytes that are not what the review states: nothing of them is shown. */
export class SealBroken extends Error {
  override readonly name = 'SealBroken';
  readonly fault: SealFault;

  constructor(fault: SealFault) {
    super(fault);
    this.fault = fault;
  }
}
