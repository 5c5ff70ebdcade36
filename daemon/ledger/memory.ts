/*
 * What the ledger's records amount to: derived, bounded, never a second authority. Everything here can be rebuilt by reading
 * the segments again.
 */
import type { AgentId, BindingId, CommandId, RunId } from '../../helpers/protocol/ids.ts';
import type { CommandFacts, Ended, LedgerRecord, MarkRecord, TypedReceipt } from './records.ts';

/** `reserved` has no record yet: it was permitted in this process and nothing may be permitted beside it. */
type Phase = MarkRecord['commands'][number]['phase'] | 'reserved';

/** One command as the records tell it. */
export interface CommandMemory {
  readonly facts: CommandFacts;
  phase: Phase;
  /** False for one that was refused on arrival: what it claimed of its run, binding and fence is nobody's word. */
  readonly isTied: boolean;
  /** In chain order; empty once countersigned. */
  readonly receipts: TypedReceipt[];
  ended: Ended | null;
}

/** What is known of a run whose commands are not all forgotten. */
export interface RunMemory {
  readonly originDigest: Uint8Array;
  /** The one agent of the run, once a command named it. */
  agent: AgentId | null;
  /** One binding an operation, with the fence that it got. */
  readonly bindings: Map<string, { readonly binding: BindingId; readonly fence: number }>;
  /** Commands of this run that are still remembered. */
  commands: number;
}

/** How many heads are kept for the comparison with the control plane. */
export const HEADS_KEPT = 4096;

/** Folds records into what later checks ask for. */
export class LedgerMemory {
  readonly commands = new Map<CommandId, CommandMemory>();
  readonly runs = new Map<RunId, RunMemory>();
  readonly #byIdempotencyKey = new Map<string, CommandId>();
  readonly #ties = new Map<BindingId, { readonly run: RunId; readonly operation: string }>();
  readonly #heads = new Map<number, Uint8Array>();
  highAt = 0;
  highFence = 0;

  /** Command that used this idempotency key, if it is remembered. */
  byIdempotencyKey(key: string): CommandMemory | undefined {
    const command = this.#byIdempotencyKey.get(key);
    return command === undefined ? undefined : this.commands.get(command);
  }

  /** The one run and operation that a binding ties to this machine, while a command of that run is remembered. */
  tieOf(binding: BindingId): { readonly run: RunId; readonly operation: string } | undefined {
    return this.#ties.get(binding);
  }

  /** Head of the chain after `count` records, 32 bytes; undefined when that is too long ago. */
  headAt(count: number): Uint8Array | undefined {
    return count === 0 ? new Uint8Array(32) : this.#heads.get(count);
  }

  /** Heads of the newest records, oldest first. */
  newestHeads(limit: number): [number, Uint8Array][] {
    return [...this.#heads].slice(-limit);
  }

  /** Keeps id, idempotency key and binding of a permitted command from the moment of its verdict, before any record. */
  reserve(facts: CommandFacts): void {
    if (!this.commands.has(facts.command)) this.#remember(facts, 'reserved');
  }

  /** Gives up a reservation that no record followed. */
  release(id: CommandId): void {
    const command = this.commands.get(id);
    if (command?.phase === 'reserved') this.#forget(id, command);
  }

  /** Commands that a record named, as a mark carries them on. */
  recorded(): MarkRecord['commands'] {
    return [...this.commands.values()].flatMap(({ facts, phase, receipts, ended }) =>
      phase === 'reserved' ? [] : [{ facts, phase, receipts: [...receipts], ended }],
    );
  }

  /** Takes one record that is durable. */
  apply(record: LedgerRecord, count: number, head: Uint8Array): void {
    if (record.kind === 'mark') {
      for (const [past, pastHead] of record.heads) this.#keepHead(past, pastHead);
      for (const { facts, phase, receipts, ended } of record.commands) {
        if (this.commands.has(facts.command)) continue;
        // An ended command has an ending; one that was refused on arrival never had.
        const isTied = phase !== 'refused' && (phase !== 'acknowledged' || ended !== null);
        const command = this.#remember(facts, phase, isTied);
        command.receipts.push(...receipts);
        command.ended = ended;
      }
      this.highAt = Math.max(this.highAt, record.highAt);
      this.highFence = Math.max(this.highFence, record.highFence);
    } else {
      this.highAt = Math.max(this.highAt, record.at);
      this.#applyStep(record);
    }
    this.#keepHead(count, head);
  }

  /** Forgets commands that ended and can never be accepted again: their expiry lies before `highAt` by `marginMs`. */
  forgetExpired(marginMs: number): void {
    for (const [id, command] of this.commands) {
      const closed = command.phase === 'acknowledged';
      if (closed && command.facts.expiresAt + marginMs < this.highAt) this.#forget(id, command);
    }
  }

  #applyStep(record: Exclude<LedgerRecord, MarkRecord>): void {
    switch (record.kind) {
      case 'session':
        return;
      case 'accepted':
        this.#remember(record.facts, 'accepted').receipts.push({ type: 'machine.accepted', signed: record.receipt });
        return;
      case 'refused':
        this.#remember(record.facts, 'refused', false).receipts.push({
          type: 'machine.refused',
          signed: record.receipt,
        });
        return;
      case 'started':
        this.#advance(record.command, 'started').receipts.push({ type: 'machine.started', signed: record.receipt });
        return;
      case 'ended': {
        const command = this.#advance(record.command, 'ended');
        command.ended = record.ended;
        if (record.receipt) command.receipts.push(record.receipt);
        return;
      }
      case 'acknowledged':
        this.#advance(record.command, 'acknowledged').receipts.length = 0;
    }
  }

  #remember(facts: CommandFacts, phase: CommandMemory['phase'], isTied = true): CommandMemory {
    const reserved = this.commands.get(facts.command);
    if (reserved?.phase === 'reserved') {
      reserved.phase = phase;
      return reserved;
    }
    const command: CommandMemory = { facts, phase, isTied, receipts: [], ended: null };
    this.commands.set(facts.command, command);
    this.#byIdempotencyKey.set(facts.idempotencyKey, facts.command);
    if (isTied) this.#tie(facts);
    return command;
  }

  #tie(facts: CommandFacts): void {
    const run = this.runs.get(facts.run) ?? {
      originDigest: facts.originDigest,
      agent: null,
      bindings: new Map<string, { binding: BindingId; fence: number }>(),
      commands: 0,
    };
    run.commands += 1;
    run.agent ??= facts.agent;
    run.bindings.set(facts.operation, { binding: facts.binding, fence: facts.fence });
    this.runs.set(facts.run, run);
    this.#ties.set(facts.binding, { run: facts.run, operation: facts.operation });
    this.highFence = Math.max(this.highFence, facts.fence);
  }

  #advance(id: CommandId, phase: CommandMemory['phase']): CommandMemory {
    const command = this.commands.get(id);
    if (!command) throw new RangeError(`record ${phase} for a command that no record accepted`);
    command.phase = phase;
    return command;
  }

  #forget(id: CommandId, command: CommandMemory): void {
    this.commands.delete(id);
    if (this.#byIdempotencyKey.get(command.facts.idempotencyKey) === id)
      this.#byIdempotencyKey.delete(command.facts.idempotencyKey);
    const run = this.runs.get(command.facts.run);
    if (!run || !command.isTied) return;
    run.commands -= 1;
    if (run.commands > 0) return;
    this.runs.delete(command.facts.run);
    for (const { binding } of run.bindings.values()) this.#ties.delete(binding);
  }

  #keepHead(count: number, head: Uint8Array): void {
    this.#heads.set(count, head);
    if (this.#heads.size > HEADS_KEPT) this.#heads.delete(count - HEADS_KEPT);
  }
}
