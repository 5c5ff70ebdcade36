/*
 * A control plane at the level of the protocol: real HTTP, a real WebSocket, a real command key and real statements, with the
 * state of one executor in memory. It is honest unless a test tells it to lie: every signed statement passes `lie`.
 */
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { WebSocketServer } from 'ws';
import type { WebSocket } from 'ws';
import { decode, encode } from '../../helpers/protocol/codec.ts';
import { parseDescriptor } from '../../helpers/protocol/descriptor.ts';
import type { Descriptor } from '../../helpers/protocol/descriptor.ts';
import * as ids from '../../helpers/protocol/ids.ts';
import type { CommandId, ExecutorId, RunId } from '../../helpers/protocol/ids.ts';
import { sha256, signPayload, statementDigest } from '../../helpers/protocol/signed.ts';
import type { Signed } from '../../helpers/protocol/signed.ts';
import { encodeStatement, openStatement } from '../../helpers/protocol/statements.ts';
import type { CommandEnvelope, ControlStatementType, Statement } from '../../helpers/protocol/statements.ts';
import { CHANNEL_PATH, channelQuestions, channelTimes, questionSchema, SUBPROTOCOL } from '../../server/protocol.ts';
import type {
  pairingCalls,
  AnswerBody,
  ChannelQuestion,
  CommandFrame,
  QuestionBody,
  ReceiptFrame,
} from '../../server/protocol.ts';
import { FakePairing } from './fake-pairing.ts';
import type { Told, Wanted } from './wanted.ts';

const hex = (prefix: string) => `${prefix}_${randomBytes(16).toString('hex')}`;

/** One fake control plane with one executor. */
export class FakeControlPlane {
  readonly executor: ExecutorId = ids.executorIdSchema.parse(hex('exr'));
  readonly run: RunId = ids.runIdSchema.parse(hex('run'));
  readonly told: Told[] = [];
  readonly questions: string[] = [];
  /** Calls beside the channel, by name. */
  readonly calls: string[] = [];
  /** Hears each frame of receipts as it arrives, before it is answered. */
  heard: (frame: ReceiptFrame) => void = () => undefined;
  /** Proofs as they came, oldest first. */
  readonly proofs: Statement<'machine.session'>[] = [];
  /** Changes any statement before it is signed; returns what is signed instead. */
  lie: <Type extends ControlStatementType>(type: Type, fields: Statement<Type>) => Statement<Type> = (_, fields) =>
    fields;
  /** Changes the body of any answer on its way, after everything in it was signed. */
  meddle: (type: ChannelQuestion, body: unknown) => unknown = (_, body) => body;
  standing: Statement<'control.answer'>['standing'] = 'accepting';
  cancel: CommandId[] = [];
  epoch = 0;
  confirmed = { revision: 0, policyDigest: new Uint8Array(32) };
  /** When false nothing is answered any more: what is asked is swallowed. */
  answering = true;
  readonly #key = generateKeyPairSync('ed25519');
  /** What everything is signed with; a test may put a stranger's in its place. */
  signingKey: KeyObject = this.#key.privateKey;
  readonly #http = http.createServer((request, response) => void this.#serve(request, response));
  readonly #sockets = new WebSocketServer({
    noServer: true,
    maxPayload: 1_048_576,
    handleProtocols: () => SUBPROTOCOL,
  });
  readonly pairing = new FakePairing(this.executor, () => this.commandKey);
  readonly #bindings = new Map<string, { binding: ids.BindingId; fence: number }>();
  readonly #origin = {
    person: ids.personIdSchema.parse(hex('per')),
    agent: ids.agentIdSchema.parse(hex('agt')),
    conversation: 'conversation',
    project: ids.projectIdSchema.parse(hex('prj')),
  };
  #guard = 0;
  #challenge = randomBytes(32);
  #live: WebSocket | undefined;
  #queue: CommandFrame[] = [];
  #delivered = new Map<CommandId, CommandFrame>();
  #work: { id: number; capacity: number } | undefined;
  #control: { id: number; nonce: Uint8Array; timer: NodeJS.Timeout } | undefined;
  #firstControl = true;
  acknowledged: { count: number; head: Uint8Array } = { count: 0, head: new Uint8Array(32) };
  readonly #waiting = new Map<CommandId, (told: Told) => void>();

  /** Signs with its own key again. */
  beHonest(): void {
    this.signingKey = this.#key.privateKey;
    this.lie = (_, fields) => fields;
    this.meddle = (_, body) => body;
    this.cancel = [];
    this.answering = true;
    this.standing = 'accepting';
  }

  /** Public command key, 32 bytes. */
  get commandKey(): Uint8Array {
    return raw(this.#key.publicKey);
  }

  /** The newest descriptor that arrived. */
  get descriptor(): Descriptor | undefined {
    return this.pairing.descriptor;
  }

  /** Whether a connection stands, proved or not. */
  get hasSocket(): boolean {
    return this.#live !== undefined;
  }

  get isConnected(): boolean {
    return this.#live !== undefined && this.epoch > 0;
  }

  /** Listens on a loopback port; resolves with the origin. */
  async listen(): Promise<string> {
    this.#http.on('upgrade', (request, socket, head) => {
      if (request.url !== CHANNEL_PATH) return socket.destroy();
      return this.#sockets.handleUpgrade(request, socket, head, (opened) => this.#opened(opened));
    });
    await new Promise<void>((resolve) => this.#http.listen(0, '127.0.0.1', resolve));
    // A server that listens on TCP has an address of this shape.
    return `http://127.0.0.1:${(this.#http.address() as AddressInfo).port}`;
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets.clients) socket.terminate();
    this.#http.closeAllConnections();
    await new Promise((resolve) => this.#http.close(resolve));
  }

  /** Ends the connection of the moment. */
  cut(): void {
    this.#live?.terminate();
  }

  /** Sends any bytes, asked or not. */
  sendRaw(bytes: Uint8Array): void {
    this.#live?.send(bytes);
  }

  /** Answers the held control question now, with what stands. */
  wake(): void {
    if (this.#control) this.#answerControl();
  }

  /** Signs a command as it would be dispatched now. */
  frame(wanted: Wanted): CommandFrame {
    const input = encode(wanted.arguments ?? {});
    const content = wanted.content ?? new Uint8Array(0);
    const envelope = this.lie('control.command', { ...this.#envelope(wanted, input, content), ...wanted.envelope });
    const payload = encodeStatement('control.command', envelope);
    const leased = this.lie('control.leased', {
      guard: this.#nextGuard(),
      at: Date.now(),
      executor: envelope.executor,
      command: envelope.command,
      epoch: envelope.epoch,
      envelopeDigest: statementDigest('control.command', payload),
    });
    return {
      envelope: signPayload(this.signingKey, 'control.command', payload),
      leased: signPayload(this.signingKey, 'control.leased', encodeStatement('control.leased', leased)),
      arguments: input,
      content,
    };
  }

  /** Queues frames for the next work answer. */
  deliver(...frames: readonly CommandFrame[]): void {
    this.#queue.push(...frames);
    this.#answerWork();
  }

  /** Dispatches a command and waits for its ending. */
  async call(wanted: Wanted, withinMs = 10_000): Promise<Told> {
    const frame = this.frame(wanted);
    const command = commandOf(frame);
    const told = new Promise<Told>((resolve, reject) => {
      const timer = setTimeout(
        () => reject(new Error(`no ending of ${wanted.operation} within ${withinMs} ms`)),
        withinMs,
      );
      this.#waiting.set(command, (ending) => {
        clearTimeout(timer);
        resolve(ending);
      });
    });
    this.deliver(frame);
    return told;
  }

  /** Confirms the newest descriptor, as a person would. */
  confirmDescriptor(): void {
    if (!this.descriptor) throw new Error('no descriptor arrived');
    this.confirmed = {
      revision: this.descriptor.revision,
      policyDigest: Buffer.from(this.descriptor.policyDigest, 'hex'),
    };
    this.wake();
  }

  sign<Type extends ControlStatementType>(type: Type, fields: Omit<Statement<Type>, 'guard'>): Signed {
    // The guard is the one field that every statement has and callers leave out.
    const statement = this.lie(type, { guard: this.#nextGuard(), ...fields } as Statement<Type>);
    return signPayload(this.signingKey, type, encodeStatement(type, statement));
  }

  #nextGuard(): number {
    this.#guard += 1;
    return this.#guard;
  }

  #envelope(wanted: Wanted, input: Uint8Array, content: Uint8Array): CommandEnvelope {
    const run = wanted.run ?? this.run;
    const key = `${run} ${wanted.operation}`;
    const bound = this.#bindings.get(key) ?? {
      binding: ids.bindingIdSchema.parse(hex('bnd')),
      fence: this.#bindings.size + 1,
    };
    this.#bindings.set(key, bound);
    const { agent, ...person } = this.#origin;
    return {
      guard: this.#nextGuard(),
      protocolVersion: 1,
      executor: this.executor,
      command: ids.commandIdSchema.parse(hex('cmd')),
      run,
      origin: wanted.byPerson ? person : { ...person, agent },
      ...bound,
      epoch: Math.max(1, this.epoch),
      capabilityRevision: Math.max(1, this.confirmed.revision),
      catalogueDigest: Buffer.from(this.descriptor?.catalogueDigest ?? '00'.repeat(32), 'hex'),
      policyDigest: this.confirmed.policyDigest,
      operation: wanted.operation,
      mode: 'foreground',
      maximumRuntimeMs: 20_000,
      notBefore: Date.now() - 5000,
      expiresAt: Date.now() + 25_000,
      idempotencyKey: hex('key'),
      argumentsDigest: sha256(input),
      contentDigest: sha256(content),
    };
  }

  async #serve(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    const parts: Buffer[] = [];
    for await (const chunk of request) parts.push(chunk as Buffer);
    const call = request.url?.split('/').at(-1) as keyof typeof pairingCalls;
    this.calls.push(call);
    const answer = this.pairing.answer(call, decode(Buffer.concat(parts)));
    response.writeHead(200, { 'content-type': 'application/msgpack' }).end(encode(answer));
  }

  #opened(socket: WebSocket): void {
    this.#live?.terminate();
    this.#live = socket;
    this.epoch = 0;
    this.#work = undefined;
    clearTimeout(this.#control?.timer);
    this.#control = undefined;
    this.#firstControl = true;
    socket.on('message', (data: Buffer) => this.answering && this.#asked(socket, data));
    socket.on('close', () => {
      if (this.#live === socket) this.#live = undefined;
    });
  }

  #asked(socket: WebSocket, data: Buffer): void {
    const question = questionSchema.parse(decode(data));
    this.questions.push(question.type);
    const { id } = question;
    const reply = <Type extends ChannelQuestion>(type: Type, body: AnswerBody<Type>, epoch = question.epoch) =>
      socket.send(
        encode({ kind: 'answer', id, epoch, body: this.meddle(type, channelQuestions[type].answer.parse(body)) }),
      );
    const body = <Type extends ChannelQuestion>(type: Type) =>
      channelQuestions[type].body.parse(question.body) as QuestionBody<Type>;
    switch (question.type) {
      case 'session.challenge':
        return reply('session.challenge', { challenge: this.#challenge, acknowledgedCount: this.acknowledged.count });
      case 'session.prove':
        return reply('session.prove', { session: this.#session(body('session.prove').proof) });
      case 'work':
        this.#work = { id, capacity: body('work').capacity };
        return this.#answerWork();
      case 'control':
        return this.#holdControl(id, body('control').nonce);
      case 'heartbeat':
        return reply('heartbeat', { at: Date.now() });
      case 'receipts': {
        const acknowledged = this.#receipts(body('receipts'));
        return reply('receipts', acknowledged ? { acknowledged } : {});
      }
      case 'descriptor':
        this.pairing.descriptor = parseDescriptor(body('descriptor').descriptor);
        return reply('descriptor', { state: 'pending' });
      default:
        throw new Error(`question ${question.type} is not played here`);
    }
  }

  #session(proof: Signed): Signed {
    const opened = this.pairing.machine && openStatement('machine.session', this.pairing.machine, proof);
    if (!opened) throw new Error('the proof is not signed by the paired key');
    this.proofs.push(opened.statement);
    const { nonce, acknowledgedCount, acknowledgedHead, ledgerCount } = opened.statement;
    const forked = Buffer.compare(acknowledgedHead, this.acknowledged.head) !== 0;
    const behind = acknowledgedCount !== this.acknowledged.count || ledgerCount < this.acknowledged.count;
    const verdict = behind ? 'ledger-behind' : forked ? 'ledger-forked' : 'online';
    this.#remember(opened.statement.ledgerCount, opened.statement.ledgerHead);
    this.epoch = this.#epochs + 1;
    this.#epochs = this.epoch;
    const { count, head } = this.acknowledged;
    return this.sign('control.session', {
      at: Date.now(),
      executor: this.executor,
      nonce,
      epoch: this.epoch,
      acknowledgedCount: count,
      acknowledgedHead: head,
      verdict,
    });
  }

  #epochs = 0;
  #remember(count: number, head: Uint8Array): void {
    if (count > this.acknowledged.count) this.acknowledged = { count, head };
  }

  #holdControl(id: number, nonce: Uint8Array): void {
    this.#control = {
      id,
      nonce,
      timer: setTimeout(() => this.#answerControl(), this.#firstControl ? 0 : channelTimes.controlHoldMs),
    };
    this.#firstControl = false;
  }

  #answerControl(): void {
    const held = this.#control;
    if (!held || !this.answering) return;
    clearTimeout(held.timer);
    this.#control = undefined;
    const answer = this.sign('control.answer', {
      at: Date.now(),
      executor: this.executor,
      nonce: held.nonce,
      epoch: this.epoch,
      standing: this.standing,
      cancel: this.cancel,
      endedRuns: [],
      confirmedRevision: this.confirmed.revision,
      confirmedPolicyDigest: this.confirmed.policyDigest,
    });
    this.#live?.send(
      encode({ kind: 'answer', id: held.id, epoch: this.epoch, body: this.meddle('control', { answer }) }),
    );
  }

  #answerWork(): void {
    if (!this.#work || this.#queue.length === 0 || !this.answering) return;
    const { id, capacity } = this.#work;
    this.#work = undefined;
    const commands = this.#queue.splice(0, capacity);
    for (const frame of commands) this.#delivered.set(commandOf(frame), frame);
    this.#live?.send(encode({ kind: 'answer', id, epoch: this.epoch, body: this.meddle('work', { commands }) }));
  }

  #receipts(frame: ReceiptFrame): Signed | undefined {
    this.heard(frame);
    const last = frame.receipts.at(-1);
    if (!last || !this.pairing.machine) throw new Error('no receipt or no machine');
    const opened = openStatement(last.type, this.pairing.machine, last.signed);
    if (!opened) throw new Error('receipt is not signed by the paired key');
    const { statement } = opened;
    const ending = 'outcome' in statement ? statement.outcome : 'code' in statement ? statement.code : undefined;
    const told: Told = { command: frame.command, frame, ending, result: frame.result && decode(frame.result) };
    this.told.push(told);
    if (ending === undefined) return undefined;
    if ('ledgerCount' in statement) this.#remember(statement.ledgerCount, statement.ledgerHead);
    this.#waiting.get(frame.command)?.(told);
    this.#waiting.delete(frame.command);
    return this.sign('control.acknowledged', {
      at: Date.now(),
      executor: this.executor,
      command: frame.command,
      receiptDigest: opened.digest,
      verdict: 'settled',
    });
  }
}

function commandOf(frame: CommandFrame): CommandId {
  // The fake signed this envelope itself.
  return (decode(frame.envelope.payload) as unknown as CommandEnvelope).command;
}

function raw(key: KeyObject): Uint8Array {
  return key.export({ format: 'der', type: 'spki' }).subarray(12);
}
