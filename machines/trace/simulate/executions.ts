/*
 * The commands of one simulated daemon: what daemon/executions.ts does for machines/command/execution.ts, over a modelled ledger, a
 * modelled helper and a modelled connection. What may happen next is decided by the machine.
 */
import type { CommandFacts } from '../../../daemon/ledger/records.ts';
import type { CommandId, RunId } from '../../../helpers/protocol/ids.ts';
import type {
  AskOutcome,
  CheckGate,
  DeliverResult,
  Ended,
  ExecutionInput,
  RecordPhase,
  RecordReplacement,
  RecordResult,
  RunOperation,
  StopOperation,
} from '../../command/types.ts';
import { asked } from './asked.ts';
import type { Ask } from './asked.ts';
import type { Daemon } from './daemon.ts';
import { bytesOf } from './digests.ts';
import { CATALOGUE, PROMOTE, PROTOCOL_VERSION } from './facts.ts';
import { factsOf } from './ledger-facts.ts';
import { MachineReceipts } from './machine-receipts.ts';
import type { Chain } from './machine-receipts.ts';
import type { Frame } from './messages.ts';
import { Operation, without } from './operation.ts';
import type { Finished } from './operation.ts';
import type { Random } from './random.ts';
import type { Rules } from './rules.ts';

/** Frames and chains that are remembered for whoever repeats them. */
const REMEMBERED = 20;

interface Live {
  readonly facts: CommandFacts;
  /** Absent for a command that an earlier process accepted: it is never run. */
  readonly frame: Frame | undefined;
  operation: Operation | undefined;
  finished: Finished | undefined;
}

type Of<Contract extends { readonly input: unknown; readonly output: unknown }> = Ask<
  Contract['output'],
  Contract['input']
>;

/** The commands that one process holds. */
export class Executions {
  readonly #daemon: Daemon;
  readonly #live = new Map<string, Live>();
  readonly #receipts: MachineReceipts;
  /** The newest frames that were delivered, for whoever delivers them again. */
  #delivered: readonly Frame[] = [];

  constructor(daemon: Daemon) {
    this.#daemon = daemon;
    this.#receipts = new MachineReceipts(daemon);
  }

  /** Run of a command that is held. */
  runOf(command: string): RunId | undefined {
    return this.#live.get(command)?.facts.run;
  }

  /** Operations that this process began and that have not ended. */
  get running(): readonly Operation[] {
    return [...this.#live.values()].flatMap(({ operation, finished }) =>
      operation === undefined || finished ? [] : [operation],
    );
  }

  /** The process is gone: its helpers end with it. */
  die(): void {
    for (const operation of this.running) operation.breakOff();
    this.#live.clear();
  }

  /** Commands that the ledger holds open, after a start or a repair. */
  recall(): ExecutionInput[] {
    const { rules } = this.#daemon.setting;
    const open = [...this.#daemon.ledger.memory.commands.values()].filter((command) => rules.isOpen(command));
    for (const { facts } of open)
      if (!this.#live.has(facts.command))
        this.#live.set(facts.command, { facts, frame: undefined, operation: undefined, finished: undefined });
    return open.map((command) => rules.recalled(command));
  }

  /** Forgets a command whose machine ended. */
  release(command: CommandId): void {
    this.#daemon.ledger.memory.release(command);
    this.#live.delete(command);
  }

  /** Newest chains that this process sent. */
  get said(): readonly Chain[] {
    return this.#receipts.said;
  }

  /** Somebody who took this machine over says something that is not the next link of a chain. */
  sayAgain(chains: readonly Chain[] | undefined, random: Random): void {
    const chain = random.pick(chains ?? []);
    const { channel } = this.#daemon;
    if (!chain || !channel) return;
    const lies: readonly Chain[] = [
      chain,
      { ...chain, late: !chain.late },
      { ...chain, receipts: chain.receipts.map((receipt) => ({ ...receipt, epoch: channel.epoch })) },
      { ...chain, receipts: chain.receipts.slice(1) },
      { ...chain, receipts: chain.receipts.toReversed() },
    ];
    const lie = random.pick(lies) ?? chain;
    if (lie.receipts.length > 0) channel.ask({ ask: 'receipts', ...lie }, () => undefined);
  }

  /** Somebody on the way delivers again what was delivered before. */
  deliverAgain(): void {
    const frame = this.#daemon.setting.random.pick(this.#delivered);
    if (frame) this.deliver(frame);
  }

  /** Takes what came on the work lane: into the machine, or answered by its own refusal. */
  deliver(frame: Frame): void {
    this.#delivered = [...this.#delivered.slice(-REMEMBERED), frame];
    const facts = factsOf(frame);
    const code = this.#check(frame, facts);
    if (code === 'repeat') return this.tell(frame.command);
    if (code !== undefined) return this.#refuse(facts, code);
    this.#daemon.ledger.memory.reserve(facts);
    this.#live.set(frame.command, { facts, frame, operation: undefined, finished: undefined });
    const execution = this.#daemon.setting.rules.inputOf(facts, 'received');
    this.#daemon.actor.send({ type: 'work.received', execution });
  }

  /** The machine drains: what it was given is answered by its refusal. */
  refuseHeld(command: string, code: string): void {
    const live = this.#live.get(command);
    if (!live) return;
    this.release(live.facts.command);
    this.#refuse(live.facts, code);
  }

  /** Tells of progress again; nothing waits for it. */
  tell(command: string): void {
    const known = this.#daemon.ledger.memory.commands.get(command as CommandId);
    if (known && known.phase !== 'acknowledged') this.#receipts.tell(known.facts.command);
  }

  /** The execution machine with everything that it asks for. */
  machine(): Rules['executionMachine'] {
    return this.#daemon.setting.rules.executionMachine.provide({
      actors: {
        checkGate: asked((ask: Of<CheckGate>) => this.#soon(ask, (live) => ask.resolve(this.#gate(live)))),
        recordPhase: asked((ask: Of<RecordPhase>) => this.#soon(ask, (live) => this.#record(live, ask))),
        runOperation: asked((ask: Of<RunOperation>) => this.#run(ask)),
        stopOperation: asked((ask: Of<StopOperation>) => this.#soon(ask, (live) => this.#stop(live, ask))),
        askOutcome: asked((ask: Of<AskOutcome>) => this.#soon(ask, (live) => this.#askOutcome(live, ask))),
        recordResult: asked((ask: Of<RecordResult>) => this.#soon(ask, (live) => this.#end(live, ask))),
        deliverResult: asked((ask: Of<DeliverResult>) => this.#soon(ask, (live) => this.#deliver(live, ask))),
        recordReplacement: asked((ask: Of<RecordReplacement>) => this.#soon(ask, (live) => this.#replace(live, ask))),
      },
    });
  }

  /** Each request takes a moment; what is no longer waited for is not done. */
  #soon<Output>(ask: Ask<Output, { readonly commandId: string }>, then: (live: Live) => void): void {
    this.#daemon.later(this.#daemon.setting.random.below(3), () => {
      if (!ask.isOpen()) return;
      const live = this.#live.get(ask.input.commandId);
      if (live) then(live);
      else ask.reject();
    });
  }

  #check(frame: Frame, facts: CommandFacts): string | undefined {
    const { setting, computer, ledger } = this.#daemon;
    const { disk } = computer;
    const stated = disk.stated.find(({ revision }) => revision === disk.confirmedRevision);
    const envelope = {
      ...frame,
      protocolVersion: PROTOCOL_VERSION,
      mode: 'foreground',
      catalogueDigest: bytesOf(CATALOGUE),
      policyDigest: bytesOf(frame.policyDigest),
    };
    const bound = setting.rules.checkBounds(
      // Ids of this world are its own; the rest is what the rule compares.
      envelope as unknown as Parameters<typeof setting.rules.checkBounds>[0],
      {
        protocolVersion: PROTOCOL_VERSION,
        executor: computer.executor,
        epoch: this.#daemon.channel?.epoch ?? 0,
        confirmed: stated && { revision: stated.revision, policyDigest: bytesOf(stated.policyDigest) },
        catalogueDigest: bytesOf(CATALOGUE),
        runtimeMs: (disk.policy ?? stated)?.runtimeMs ?? 0,
        highFence: ledger.memory.highFence,
        now: computer.clockNow(),
      },
    );
    const refused = bound ?? setting.rules.checkReplay(facts, ledger.memory);
    if (refused) return refused;
    if (frame.byAgent !== (frame.operation !== PROMOTE)) return 'OPERATION_CALLER_INVALID';
    return this.#daemon.permits(frame.operation) ? undefined : 'LOCAL_POLICY_DENIED';
  }

  #refuse(facts: CommandFacts, code: string): void {
    // A known id with other bytes must not touch the record of the command that it imitates.
    if (this.#daemon.ledger.memory.commands.has(facts.command)) return;
    this.#receipts.refuse(facts, { outcome: 'refused', code }, () => this.#receipts.deliver(facts.command, {}));
  }

  #gate({ facts }: Live): CheckGate['output'] {
    const { setting, anchored, channel, computer } = this.#daemon;
    const code = setting.rules.checkStart(facts, {
      anchored,
      epoch: channel?.epoch ?? 0,
      now: computer.clockNow(),
      permitted: this.#daemon.permits(facts.operation),
    });
    if (code === undefined) return { permitted: true };
    return { permitted: false, outcome: code === 'COMMAND_EXPIRED' ? 'expired' : 'refused', code };
  }

  #record({ facts }: Live, ask: Of<RecordPhase>): void {
    const done = (): void => {
      if (ask.isOpen()) ask.resolve({ durable: true });
    };
    const failed = (): void => {
      if (ask.isOpen()) ask.reject();
    };
    if (ask.input.phase === 'accepted-pending') this.#receipts.accept(facts, done, failed);
    else this.#receipts.start(facts, done, failed);
  }

  /** Begins in the very step of its state: what is withdrawn after that finds it begun. */
  #run(ask: Of<RunOperation>): void {
    const live = this.#live.get(ask.input.commandId);
    if (!live?.frame) return this.#daemon.later(0, () => ask.isOpen() && ask.reject());
    live.operation = new Operation(this.#daemon, live.frame);
    live.operation.onEnd((finished) => {
      live.finished = finished;
      if (!this.#daemon.alive || !ask.isOpen()) return;
      if (finished.outcome === 'unknown') ask.reject();
      else ask.resolve(endedAs(finished));
    });
    // Sent ahead so that the page can show it: the whole chain travels again with the result.
    this.#daemon.later(100, () => {
      if (!live.finished) this.#receipts.tell(live.facts.command);
    });
  }

  #stop(live: Live, ask: Of<StopOperation>): void {
    live.operation?.stop(ask.input.reason === 'runtime-passed' ? 'expired' : 'cancelled');
    ask.resolve({ asked: true });
  }

  #askOutcome(live: Live, ask: Of<AskOutcome>): void {
    if (!live.operation) return ask.reject();
    live.operation.onEnd((finished) => {
      if (!this.#daemon.alive || !ask.isOpen()) return;
      if (finished.outcome === 'unknown') ask.reject();
      else ask.resolve(endedAs(finished));
    });
  }

  #end(live: Live, ask: Of<RecordResult>): void {
    const { ended, started } = ask.input;
    const done = (): void => {
      if (ask.isOpen()) ask.resolve({ durable: true });
    };
    const failed = (): void => {
      if (ask.isOpen()) ask.reject();
    };
    if (ended.outcome === 'unknown') return this.#receipts.endUnknown(live.facts, done, failed);
    if (!started) {
      const { outcome, code } = ended;
      return this.#receipts.refuse(live.facts, { outcome, code: code ?? 'REFUSED' }, done, failed);
    }
    const expired = ended.outcome === 'expired';
    live.finished ??= expired ? without('expired', 'EXPIRED') : without('cancelled', 'CANCELLED');
    this.#receipts.end(live.facts, live.finished, done, failed);
  }

  #deliver(live: Live, ask: Of<DeliverResult>): void {
    if (this.#daemon.ledger.memory.commands.get(live.facts.command)?.phase === 'acknowledged')
      return ask.resolve({ answer: 'acknowledged' });
    this.#receipts.deliver(live.facts.command, {
      late: ask.input.late,
      answered: (verdict) => {
        if (!ask.isOpen()) return;
        if (verdict === 'settled') ask.resolve({ answer: 'acknowledged' });
        else if (verdict === 'refused') ask.resolve({ answer: 'refused', code: 'RESULT_REFUSED' });
        else ask.reject();
      },
    });
  }

  #replace(live: Live, ask: Of<RecordReplacement>): void {
    this.#receipts.refuse(
      live.facts,
      { outcome: 'failed', code: ask.input.code },
      () => ask.isOpen() && ask.resolve({ durable: true }),
      () => ask.isOpen() && ask.reject(),
    );
  }
}

function endedAs({ outcome, code }: Finished): Ended {
  return { outcome, code, resultDigest: null };
}
