/*
 * Meets the contracts of machines/command/execution.ts: gate, ledger, helper and delivery of one command. What a command is
 * allowed to do next is decided by the machine; here each step is done once and truthfully.
 */
import { fromPromise } from 'xstate';
import { executionMachine } from '../machines/command/execution.ts';
import type {
  AskOutcome,
  CheckGate,
  DeliverResult,
  ExecutionInput,
  Ended as MachineEnded,
  RecordPhase,
  RecordReplacement,
  RecordResult,
  RunOperation,
  StopOperation,
} from '../machines/command/types.ts';
import type { WorkspaceClient } from '../actors/workspace.ts';
import type { CommandId } from '../helpers/protocol/ids.ts';
import { sha256 } from '../helpers/protocol/signed.ts';
import { isPermittedNow } from './gate.ts';
import type { AdmittedCommand, GateFacts } from './gate.ts';
import type { Ledger } from './ledger/ledger.ts';
import type { CommandFacts } from './ledger/records.ts';
import { failed, runOperation } from './operate.ts';
import type { Finished, Workers } from './operate.ts';
import type { Receipts } from './receipts.ts';
import type { Results } from './results.ts';
import { checkStart, inputOf, isOpen, recalled } from './rules.ts';
import type { Sessions } from './session.ts';

/** After this long a running command's first receipts are sent ahead of its result, in ms. */
const TELL_AFTER_MS = 100;
const CANCEL_MS = 5000;

/** What executions need. */
export interface ExecutionParts {
  readonly ledger: () => Ledger;
  readonly receipts: Receipts;
  readonly results: Results;
  readonly sessions: Sessions;
  readonly workers: Workers;
  readonly gateFacts: () => GateFacts;
}

interface Live {
  readonly facts: CommandFacts;
  /** Absent for a command that an earlier process accepted: it is never run. */
  readonly admitted: AdmittedCommand | undefined;
  /** Its operation, from the moment that this process began it. */
  running: Promise<Finished> | undefined;
  finished: Finished | undefined;
}

/** The commands that this daemon holds. */
export class Executions {
  readonly #parts: ExecutionParts;
  readonly #live = new Map<string, Live>();

  constructor(parts: ExecutionParts) {
    this.#parts = parts;
  }

  /** Takes a command that the gate permitted; the input for its machine. */
  admit(admitted: AdmittedCommand): ExecutionInput {
    this.#parts.ledger().memory.reserve(admitted.facts);
    this.#live.set(admitted.facts.command, {
      facts: admitted.facts,
      admitted,
      running: undefined,
      finished: undefined,
    });
    return inputOf(admitted.facts, 'received');
  }

  /** Commands that the ledger holds open, with their phases, for a start after a crash. */
  recall(): ExecutionInput[] {
    const open = [...this.#parts.ledger().memory.commands.values()].filter(isOpen);
    this.#parts.results.keepOnly(new Set(open.map(({ facts }) => facts.command)));
    for (const { facts } of open)
      this.#live.set(facts.command, { facts, admitted: undefined, running: undefined, finished: undefined });
    return open.map(recalled);
  }

  /** Facts of a held command. */
  factsOf(command: string): CommandFacts | undefined {
    return this.#live.get(command)?.facts;
  }

  /** Forgets a command whose machine ended. */
  release(command: string): void {
    const live = this.#live.get(command);
    if (live) this.#parts.ledger().memory.release(live.facts.command);
    this.#live.delete(command);
  }

  /** The execution machine with everything that it asks for. */
  machine(): typeof executionMachine {
    return executionMachine.provide({
      actors: {
        checkGate: fromPromise<CheckGate['output'], CheckGate['input']>(({ input }) =>
          Promise.resolve(this.#checkGate(input)),
        ),
        recordPhase: fromPromise<RecordPhase['output'], RecordPhase['input']>(({ input }) => this.#recordPhase(input)),
        runOperation: fromPromise<RunOperation['output'], RunOperation['input']>(({ input }) => this.#run(input)),
        stopOperation: fromPromise<StopOperation['output'], StopOperation['input']>(({ input }) => this.#stop(input)),
        askOutcome: fromPromise<AskOutcome['output'], AskOutcome['input']>(({ input }) => this.#askOutcome(input)),
        recordResult: fromPromise<RecordResult['output'], RecordResult['input']>(({ input }) =>
          this.#recordResult(input),
        ),
        deliverResult: fromPromise<DeliverResult['output'], DeliverResult['input']>(({ input }) =>
          this.#deliver(input),
        ),
        recordReplacement: fromPromise<RecordReplacement['output'], RecordReplacement['input']>(({ input }) =>
          this.#replace(input),
        ),
      },
    });
  }

  #checkGate({ commandId }: CheckGate['input']): CheckGate['output'] {
    const { facts } = this.#of(commandId);
    const known = this.#parts.gateFacts();
    const code = checkStart(facts, { ...known, permitted: isPermittedNow(facts.operation, known) });
    if (code === undefined) return { permitted: true };
    return { permitted: false, outcome: code === 'COMMAND_EXPIRED' ? 'expired' : 'refused', code };
  }

  async #recordPhase({ commandId, phase }: RecordPhase['input']): Promise<RecordPhase['output']> {
    const { facts } = this.#of(commandId);
    await (phase === 'accepted-pending' ? this.#parts.receipts.accept(facts) : this.#parts.receipts.start(facts));
    return { durable: true };
  }

  async #run({ commandId }: RunOperation['input']): Promise<MachineEnded> {
    const live = this.#of(commandId);
    if (!live.admitted) throw new RangeError('a command of an earlier process is never run');
    const telling = setTimeout(() => this.#tell(live.facts.command), TELL_AFTER_MS);
    try {
      live.running = runOperation(this.#parts.workers, live.admitted);
      live.finished = await live.running;
    } finally {
      clearTimeout(telling);
    }
    return endedAs(live.finished);
  }

  async #stop({ commandId }: StopOperation['input']): Promise<StopOperation['output']> {
    const { facts } = this.#of(commandId);
    if (facts.operation === 'workspace.promote') this.#parts.workers.promotions.cancel(facts.command);
    else await workspaceCancel(this.#parts.workers.workspace(), facts.command);
    return { asked: true };
  }

  /**
   * What still runs here ends as it truly does, within its own limit, however long its helper takes to stop. No helper keeps outcomes
   * by key beyond its own life, so after a restart the honest answer is that nobody knows.
   */
  async #askOutcome({ commandId }: AskOutcome['input']): Promise<MachineEnded> {
    const { running } = this.#of(commandId);
    if (!running) throw new RangeError('the helper kept no outcome of this command');
    return endedAs(await running);
  }

  async #recordResult({ commandId, ended, started }: RecordResult['input']): Promise<RecordResult['output']> {
    const live = this.#of(commandId);
    const { receipts, results } = this.#parts;
    if (ended.outcome === 'unknown') await receipts.endUnknown(live.facts);
    else if (!started)
      await receipts.refuse(live.facts, { outcome: ended.outcome, code: ended.code ?? 'REFUSED', resultDigest: null });
    else {
      const finished = live.finished ?? failed(ended.outcome === 'expired' ? 'EXPIRED' : 'CANCELLED');
      live.finished = finished;
      results.keep(live.facts.command, finished.result);
      await receipts.end(live.facts, {
        outcome: finished.outcome,
        code: finished.code,
        resultDigest: finished.resultDigest,
      });
    }
    return { durable: true };
  }

  async #deliver({ commandId, late }: DeliverResult['input']): Promise<DeliverResult['output']> {
    const live = this.#of(commandId);
    // Countersigned and recorded while the connection broke, so that the machine never heard of it: there is nothing to send any more.
    if (this.#parts.ledger().memory.commands.get(live.facts.command)?.phase === 'acknowledged') {
      this.#parts.results.drop(live.facts.command);
      return { answer: 'acknowledged' };
    }
    const { channel } = this.#parts.sessions;
    if (!channel) throw new RangeError('no connection stands');
    const result = live.finished?.result ?? this.#parts.results.read(live.facts.command);
    if (!this.#isWhole(live.facts.command, result)) return { answer: 'refused', code: 'RESULT_LOST' };
    const verdict = await this.#parts.receipts.deliver(channel, live.facts.command, { result, late });
    if (verdict === 'refused') return { answer: 'refused', code: 'RESULT_REFUSED' };
    this.#parts.results.drop(live.facts.command);
    return { answer: 'acknowledged' };
  }

  async #replace({ commandId, code }: RecordReplacement['input']): Promise<RecordReplacement['output']> {
    await this.#parts.receipts.refuse(this.#of(commandId).facts, { outcome: 'failed', code, resultDigest: null });
    return { durable: true };
  }

  /** Whether the bytes are those whose digest was signed, where a result was signed at all. */
  #isWhole(command: CommandId, result: Uint8Array | undefined): boolean {
    const { receipts, ended } = this.#parts.ledger().memory.commands.get(command) ?? {};
    if (receipts?.at(-1)?.type !== 'machine.result' || !ended?.resultDigest) return true;
    return result !== undefined && sha256(result).equals(ended.resultDigest);
  }

  #tell(command: CommandId): void {
    const { channel } = this.#parts.sessions;
    // Sent ahead so that the page can show it: the whole chain travels again with the result.
    if (channel) void this.#parts.receipts.tell(channel, command).catch(() => undefined);
  }

  #of(commandId: string): Live {
    const live = this.#live.get(commandId);
    if (!live) throw new RangeError('command is not held here');
    return live;
  }
}

function endedAs({ outcome, code, resultDigest }: Finished): MachineEnded {
  return { outcome, code, resultDigest: resultDigest.toString('hex') };
}

async function workspaceCancel(workspace: WorkspaceClient, call: CommandId): Promise<void> {
  await workspace.request('workspace.cancel', { call }, { withinMs: CANCEL_MS });
}
