/*
 * A machine at the level of the protocol: a real WebSocket, a real Ed25519 key, real statements, and a ledger that is a list
 * in memory. It runs no operation itself: whoever makes it says what each command gives, and when.
 *
 * It is honest unless a test asks it to lie: `ask` sends any body, `sign` signs any statement, `frame` any bytes.
 */
import { randomBytes } from 'node:crypto';
import { WebSocket } from 'ws';
import { decode, encode } from '../../helpers/protocol/codec.ts';
import { canonicalBytes } from '../../helpers/protocol/descriptor.ts';
import type { Descriptor } from '../../helpers/protocol/descriptor.ts';
import type { ExecutorId } from '../../helpers/protocol/ids.ts';
import { admitKey, sha256, signPayload, statementDigest } from '../../helpers/protocol/signed.ts';
import type { AdmittedKey, Signed } from '../../helpers/protocol/signed.ts';
import { encodeStatement, openStatement } from '../../helpers/protocol/statements.ts';
import type {
  CommandEnvelope,
  MachineStatementType,
  Outcome,
  Statement,
  StatementType,
} from '../../helpers/protocol/statements.ts';
import { machineDescriptor } from './fake-machine.ts';
import type { MachineKey } from './fake-machine.ts';
import { answerSchema, channelQuestions, SUBPROTOCOL } from '../../server/protocol.ts';
import type { AnswerBody, ChannelQuestion, CommandFrame, QuestionBody, ReceiptFrame } from '../../server/protocol.ts';

/** The control plane answered a question with a refusal. */
export class QuestionRefused extends Error {
  override readonly name = 'QuestionRefused';
  readonly code: string;

  constructor(code: string, message: string) {
    super(`${code}: ${message}`);
    this.code = code;
  }
}

/** One delivered command as the fake hands it to whoever plays the machine. */
export interface Delivered {
  readonly frame: CommandFrame;
  readonly envelope: CommandEnvelope;
  readonly envelopeDigest: Buffer;
  readonly leasedDigest: Buffer;
  readonly arguments: unknown;
  readonly content: Uint8Array;
  /** Aborts when a control answer wants this command ended. */
  readonly cancelled: AbortSignal;
}

/** What a machine gives for one command: a result, or a refusal before the start. */
export type Play = { readonly outcome: Outcome; readonly result: unknown } | { readonly refused: string };

/** What a fake machine is made of. */
export interface FakeMachine {
  /** `http://host:port` of the control plane. */
  readonly origin: string;
  readonly executor: ExecutorId;
  readonly key: MachineKey;
  /** Public command key of the control plane, 32 bytes. */
  readonly controlKey: Uint8Array;
  readonly descriptor?: Descriptor;
  readonly capacity?: number;
  /** Plays one command; commands are played side by side. */
  play?: (delivered: Delivered) => Promise<Play> | Play;
}

/** What a machine keeps between connections; give it to another fake to model a restart, or a copy of it to model a clone. */
export interface FakeState {
  guard: number;
  /** Head after each record; the first is that of an empty ledger. */
  heads: Buffer[];
}

/** An empty ledger and an unused key. */
export function freshState(): FakeState {
  return { guard: 0, heads: [Buffer.alloc(32)] };
}

interface Waiting {
  readonly type: ChannelQuestion;
  resolve(body: unknown): void;
  reject(error: unknown): void;
}

/** One machine and its one connection. */
export class FakeExecutor {
  readonly machine: FakeMachine;
  readonly state: FakeState;
  readonly control: AdmittedKey;
  /** Commands in the order in which they arrived. */
  readonly delivered: Delivered[] = [];
  /** Statements of the last control answer. */
  answer: Statement<'control.answer'> | undefined;
  /** Runs that a control answer named as ended. */
  readonly endedRuns = new Set<string>();
  epoch = 0;
  #socket: WebSocket | undefined;
  #sequence = 0;
  #id = 0;
  #closed: Promise<number> | undefined;
  readonly #waiting = new Map<number, Waiting>();
  readonly #cancels = new Map<string, AbortController>();

  constructor(machine: FakeMachine, state: FakeState = freshState()) {
    this.machine = machine;
    this.state = state;
    this.control = admitKey(machine.controlKey);
  }

  /** Opens the connection and nothing more. */
  async open(): Promise<void> {
    const socket = new WebSocket(`${this.machine.origin.replace(/^http/, 'ws')}/api/executor/channel`, SUBPROTOCOL, {
      perMessageDeflate: false,
    });
    this.#socket = socket;
    this.#sequence = 0;
    this.epoch = 0;
    this.#closed = new Promise((resolve) => {
      socket.on('close', (code) => {
        for (const waiting of this.#waiting.values()) waiting.reject(new Error('connection closed'));
        this.#waiting.clear();
        resolve(code);
      });
    });
    socket.on('message', (data: Buffer) => this.#take(data));
    await new Promise<void>((resolve, reject) => {
      socket.once('open', resolve);
      socket.once('error', reject);
    });
    socket.on('error', () => undefined);
  }

  /** Close code of the connection, once it is closed. */
  get closed(): Promise<number> {
    if (!this.#closed) throw new Error('open first');
    return this.#closed;
  }

  /** Says goodbye. */
  async close(): Promise<void> {
    this.#socket?.close(1000);
    await this.#closed;
  }

  /** Cuts the connection without a word. */
  cut(): void {
    this.#socket?.terminate();
  }

  /** Sends bytes as they are. */
  frame(bytes: Uint8Array): void {
    this.#socket?.send(bytes);
  }

  /** Asks one question; rejects with QuestionRefused, or when the connection closes. */
  async ask<Type extends ChannelQuestion>(
    type: Type,
    body: QuestionBody<Type>,
    lie: { readonly epoch?: number; readonly sequence?: number; readonly id?: number } = {},
  ): Promise<AnswerBody<Type>> {
    this.#id += 1;
    const id = lie.id ?? this.#id;
    this.#sequence = lie.sequence ?? this.#sequence + 1;
    const question = {
      kind: 'question',
      id,
      epoch: lie.epoch ?? this.epoch,
      sequence: this.#sequence,
      type,
      body,
    };
    const answered = new Promise<unknown>((resolve, reject) => {
      this.#waiting.set(id, { type, resolve, reject });
    });
    this.frame(encode(question));
    // The schema of `type` has passed the body.
    return channelQuestions[type].answer.parse(await answered) as AnswerBody<Type>;
  }

  /** Signs one statement of this machine with its next guard. */
  sign<Type extends MachineStatementType>(type: Type, fields: Omit<Statement<Type>, 'guard'>): Signed {
    this.state.guard += 1;
    // encodeStatement parses guard and fields with the schema of `type`; the compiler cannot follow Omit through an indexed type.
    const statement = { ...fields, guard: this.state.guard } as unknown as Statement<Type>;
    return signPayload(this.machine.key.privateKey, type, encodeStatement<Type>(type, statement));
  }

  /** Adds one record to the ledger: a signed statement. */
  record(type: StatementType, signed: Signed): Buffer {
    const digest = statementDigest(type, signed.payload);
    this.state.heads.push(sha256(this.#head, digest));
    return digest;
  }

  get #head(): Buffer {
    return this.state.heads.at(-1) ?? Buffer.alloc(32);
  }

  /** Count and head as statements carry them. */
  get ledger(): { ledgerCount: number; ledgerHead: Buffer } {
    return { ledgerCount: this.state.heads.length - 1, ledgerHead: this.#head };
  }

  /** Challenge and proof; `lie` goes over the fields of the proof, `between` happens before it is made. Returns the verdict. */
  async prove(
    lie: Partial<Statement<'machine.session'>> = {},
    between: () => Promise<unknown> = () => Promise.resolve(),
  ): Promise<Statement<'control.session'>> {
    const { challenge, acknowledgedCount } = await this.ask('session.challenge', { executor: this.machine.executor });
    await between();
    const nonce = randomBytes(32);
    const proof = this.sign('machine.session', {
      at: Date.now(),
      executor: this.machine.executor,
      challenge,
      nonce,
      ...this.ledger,
      capabilityRevision: this.machine.descriptor?.revision ?? 1,
      repaired: false,
      acknowledgedCount,
      acknowledgedHead: this.state.heads[acknowledgedCount] ?? randomBytes(32),
      ...lie,
    });
    const { session } = await this.ask('session.prove', { proof });
    const opened = openStatement('control.session', this.control, session);
    if (!opened || Buffer.compare(opened.statement.nonce, nonce) !== 0) throw new Error('session answer is not signed');
    this.epoch = opened.statement.epoch;
    return opened.statement;
  }

  /** Opens and proves, and asks for nothing by itself. */
  async connect(): Promise<Statement<'control.session'>> {
    await this.open();
    return this.prove();
  }

  /** Connects and begins to ask for work and control until the connection ends. */
  async online(): Promise<Statement<'control.session'>> {
    const session = await this.connect();
    if (session.verdict === 'descriptor-needed') await this.announce();
    void this.#lane(() => this.askWork());
    void this.#lane(() => this.askControl());
    return session;
  }

  async #lane(once: () => Promise<unknown>): Promise<void> {
    try {
      for (;;) await once();
    } catch {
      // The lane ends with the connection; tests look at `closed`.
    }
  }

  /** Sends the descriptor. */
  announce(descriptor: Descriptor = this.machine.descriptor ?? machineDescriptor()): Promise<AnswerBody<'descriptor'>> {
    const bytes = canonicalBytes(descriptor);
    const signed = this.sign('machine.descriptor', {
      at: Date.now(),
      executor: this.machine.executor,
      revision: descriptor.revision,
      descriptorDigest: sha256(bytes),
    });
    return this.ask('descriptor', { descriptor: bytes, signed });
  }

  /** Signs and sends one heartbeat. */
  heartbeat(at = Date.now()): Promise<AnswerBody<'heartbeat'>> {
    const fields = { at, executor: this.machine.executor, epoch: this.epoch, ...this.ledger };
    return this.ask('heartbeat', { heartbeat: this.sign('machine.heartbeat', fields) });
  }

  /** Asks for work once and plays what arrives. */
  async askWork(): Promise<readonly Delivered[]> {
    const { commands } = await this.ask('work', { capacity: this.machine.capacity ?? 16 });
    const delivered = commands.map((frame) => this.receive(frame));
    for (const one of delivered) void this.run(one).catch(() => undefined);
    return delivered;
  }

  /** Asks the control lane once; throws when the answer is not signed over this nonce. */
  async askControl(): Promise<Statement<'control.answer'>> {
    const nonce = randomBytes(32);
    const { answer } = await this.ask('control', { nonce });
    const opened = openStatement('control.answer', this.control, answer);
    if (!opened || Buffer.compare(opened.statement.nonce, nonce) !== 0) throw new Error('control answer is not signed');
    this.answer = opened.statement;
    for (const run of opened.statement.endedRuns) this.endedRuns.add(run);
    for (const command of opened.statement.cancel) this.#cancels.get(command)?.abort();
    return opened.statement;
  }

  /** Verifies what arrived and remembers it. */
  receive(frame: CommandFrame): Delivered {
    const envelope = openStatement('control.command', this.control, frame.envelope);
    const leased = openStatement('control.leased', this.control, frame.leased);
    if (!envelope || !leased) throw new Error('command is not signed by the control plane');
    const cancel = new AbortController();
    this.#cancels.set(envelope.statement.command, cancel);
    const delivered = {
      frame,
      envelope: envelope.statement,
      envelopeDigest: envelope.digest,
      leasedDigest: leased.digest,
      arguments: frame.arguments.length > 0 ? decode(frame.arguments) : {},
      content: frame.content,
      cancelled: cancel.signal,
    };
    this.delivered.push(delivered);
    return delivered;
  }

  /** Plays one command and reports its whole chain in one frame. */
  async run(delivered: Delivered): Promise<AnswerBody<'receipts'>> {
    const play = (await this.machine.play?.(delivered)) ?? { refused: 'NOT_ACCEPTING' };
    return this.ask('receipts', this.chain(delivered, play));
  }

  /** The frame of a whole chain; `late` says that it began under an earlier connection. */
  chain(delivered: Delivered, play: Play, late = false): ReceiptFrame {
    const command = delivered.envelope.command;
    if ('refused' in play) {
      const { type, signed } = this.receipt('machine.refused', delivered, delivered.leasedDigest, {
        code: play.refused,
      });
      return { command, receipts: [{ type, signed }], late };
    }
    const accepted = this.receipt('machine.accepted', delivered, delivered.leasedDigest);
    const started = this.receipt('machine.started', delivered, accepted.digest);
    const result = encode(play.result);
    const ended = this.ending(delivered, started.digest, play.outcome, result);
    return {
      command,
      receipts: [accepted, started, ended].map(({ type, signed }) => ({ type, signed })),
      result,
      late,
    };
  }

  /** A result statement and its ledger record. */
  ending(delivered: Delivered, previous: Uint8Array, outcome: Outcome, result: Uint8Array): Receipt<'machine.result'> {
    return this.receipt('machine.result', delivered, previous, {
      ...this.ledger,
      outcome,
      resultDigest: sha256(result),
    });
  }

  /** One receipt of a command and its ledger record. */
  receipt<Type extends Receipt['type']>(
    type: Type,
    delivered: Delivered,
    previous: Uint8Array,
    more: Record<string, unknown> = {},
  ): Receipt<Type> {
    const fields = {
      at: Date.now(),
      executor: this.machine.executor,
      command: delivered.envelope.command,
      epoch: delivered.envelope.epoch,
      envelopeDigest: delivered.envelopeDigest,
      previous,
      ...more,
    };
    // encodeStatement parses the fields with the schema of `type`.
    const signed = this.sign(type, fields as unknown as Omit<Statement<Type>, 'guard'>);
    return { type, signed, digest: this.record(type, signed) };
  }

  #take(data: Buffer): void {
    const answer = answerSchema.parse(decode(data));
    const waiting = this.#waiting.get(answer.id);
    if (!waiting) throw new Error('answer to no open question');
    this.#waiting.delete(answer.id);
    if (answer.kind === 'answer') waiting.resolve(answer.body);
    else waiting.reject(new QuestionRefused(answer.code, answer.message));
  }
}

/** A signed receipt with the digest that the next link names. */
export interface Receipt<Type extends MachineStatementType = ReceiptFrame['receipts'][number]['type']> {
  readonly type: Type;
  readonly signed: Signed;
  readonly digest: Buffer;
}
