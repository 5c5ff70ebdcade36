/* Records of the ledger in a simulated world: the shapes that ship, with modelled ids, digests and signatures in them. */
import type { CommandFacts, LedgerRecord, TypedReceipt } from '../../../daemon/ledger/records.ts';
import { bytesOf, unhex } from './digests.ts';
import type { Frame, Receipt } from './messages.ts';

/** What the ledger keeps of an accepted envelope. */
export function factsOf(frame: Frame): CommandFacts {
  const facts = {
    command: frame.command,
    run: frame.run,
    originDigest: bytesOf(`origin of ${frame.run}`),
    agent: frame.byAgent ? 'agent' : null,
    operation: frame.operation,
    binding: frame.binding,
    fence: frame.fence,
    epoch: frame.epoch,
    maximumRuntimeMs: frame.maximumRuntimeMs,
    expiresAt: frame.expiresAt,
    idempotencyKey: frame.idempotencyKey,
    requestDigest: bytesOf(frame.command),
    envelopeDigest: unhex(frame.envelopeDigest),
    leasedDigest: unhex(frame.leasedDigest),
  };
  // Ids are branded so that no text of elsewhere becomes one; those of this world are made by it.
  return facts as CommandFacts;
}

/** Keeps which receipt a modelled signature stands for. */
export class Signatures {
  readonly #receipts = new WeakMap<TypedReceipt['signed'], Receipt>();

  /** A signature over a receipt. */
  sign(receipt: Receipt): TypedReceipt {
    const signed = { payload: bytesOf(receipt.digest), signature: bytesOf(receipt.digest) };
    this.#receipts.set(signed, receipt);
    return { type: receipt.type, signed };
  }

  /** The receipts behind signatures. Throws where one is not of this world. */
  open(receipts: readonly TypedReceipt[]): readonly Receipt[] {
    return receipts.map(({ signed }) => {
      const receipt = this.#receipts.get(signed);
      if (!receipt) throw new Error('a signature that nobody made');
      return receipt;
    });
  }
}

/** A record that the control plane countersigned an ending. */
export function acknowledgedRecord(command: CommandFacts['command'], at: number): LedgerRecord {
  const nothing = bytesOf('acknowledged');
  return { kind: 'acknowledged', at, command, acknowledged: { payload: nothing, signature: nothing } };
}
