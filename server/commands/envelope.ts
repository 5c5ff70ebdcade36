import { PROTOCOL_VERSION } from '../../helpers/protocol/descriptor.ts';
import type { PersonId, ProjectId } from '../../helpers/protocol/ids.ts';
import { findOperation } from '../../helpers/protocol/operations.ts';
import { statementDigest } from '../../helpers/protocol/signed.ts';
import type { Signed } from '../../helpers/protocol/signed.ts';
import type { Statement } from '../../helpers/protocol/statements.ts';
import type { CommandKey, StatementToSign } from '../context.ts';
import { commandTimes, EARLY_MS } from './rules.ts';
import type { LeaseFacts } from './rules.ts';
import type { CommandRow } from './store.ts';

/** Statements that the key process signs in one request; even, since an envelope and its lease are signed together. */
const SIGN_LIMIT = 16;

/** A command with what its envelope says beside the facts of the moment. */
export interface Addressed {
  readonly row: CommandRow;
  readonly fence: number;
  readonly person: PersonId;
  readonly project: ProjectId;
  readonly conversation: string;
}

/** A signed envelope and the control plane's own receipt over it, not stored yet. */
export interface SignedLease {
  readonly facts: LeaseFacts;
  readonly at: number;
  readonly deadline: number;
  readonly envelope: Signed;
  readonly envelopeDigest: Buffer;
  readonly leased: Signed;
  readonly leasedDigest: Buffer;
}

/** Signs statements in order, however many. */
async function signAll(key: CommandKey, statements: readonly StatementToSign[]): Promise<Signed[]> {
  const signed: Signed[] = [];
  for (let at = 0; at < statements.length; at += SIGN_LIMIT) {
    signed.push(...(await key.sign(statements.slice(at, at + SIGN_LIMIT))));
  }
  return signed;
}

/**
 * Builds and signs envelopes and leases for commands of one executor, before any transaction. Whoever stores them compares
 * `facts` with the store in the same transaction; an envelope that no longer holds is thrown away and never leaves.
 */
export async function signLeases(
  key: CommandKey,
  commands: readonly Addressed[],
  facts: LeaseFacts,
  at: number,
): Promise<SignedLease[]> {
  const signed = await signAll(
    key,
    commands.flatMap((command): StatementToSign[] => [
      { type: 'control.command', fields: envelopeFields(command, facts, at) },
      {
        type: 'control.leased',
        fields: { at, executor: command.row.executor, command: command.row.id, epoch: facts.epoch },
        linked: true,
      },
    ]),
  );
  return commands.map(({ row }, index) => {
    const envelope = itemOf(signed, index * 2);
    const leased = itemOf(signed, index * 2 + 1);
    return {
      facts,
      at,
      deadline: at + operationOf(row.operation).lifetimeMs,
      envelope,
      envelopeDigest: statementDigest('control.command', envelope.payload),
      leased,
      leasedDigest: statementDigest('control.leased', leased.payload),
    };
  });
}

function envelopeFields(
  { row, fence, person, project, conversation }: Addressed,
  facts: LeaseFacts,
  at: number,
): Omit<Statement<'control.command'>, 'guard'> {
  const { lifetimeMs, runtimeMs } = commandTimes(operationOf(row.operation), facts.runtimeMs);
  return {
    protocolVersion: PROTOCOL_VERSION,
    executor: row.executor,
    command: row.id,
    run: row.run,
    origin: { person, conversation, project, ...(row.agent === null ? {} : { agent: row.agent }) },
    binding: row.binding,
    fence,
    epoch: facts.epoch,
    capabilityRevision: facts.confirmedRevision,
    catalogueDigest: Buffer.from(facts.catalogueDigest, 'hex'),
    policyDigest: Buffer.from(facts.confirmedPolicyDigest, 'hex'),
    operation: row.operation,
    mode: 'foreground',
    maximumRuntimeMs: runtimeMs,
    notBefore: at - EARLY_MS,
    expiresAt: at + lifetimeMs,
    idempotencyKey: row.idempotencyKey,
    argumentsDigest: row.argumentsDigest,
    contentDigest: row.contentDigest,
  };
}

function operationOf(key: string): { readonly lifetimeMs: number } {
  const operation = findOperation(key);
  if (!operation) throw new Error('a command names an operation that does not exist');
  return operation;
}

function itemOf<Item>(items: readonly Item[], index: number): Item {
  const item = items[index];
  if (item === undefined) throw new Error('the key process signed fewer statements than it was asked to');
  return item;
}
