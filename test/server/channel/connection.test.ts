import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { connect } from 'node:net';
import { WebSocket } from 'ws';
import { encode } from '../../../helpers/protocol/codec.ts';
import { createApp } from '../../../server/app.ts';
import { startWork } from '../../../server/commands/start-work.ts';
import { findExecutor } from '../../../server/executors/store.ts';
import { CHANNEL_PATH, SUBPROTOCOL } from '../../../server/protocol.ts';
import { createWake } from '../../../server/wake.ts';
import { freshState } from '../../fakes/fake-executor.ts';
import { startControlPlane, until } from '../control-plane.ts';
import type { ControlPlane, PairedMachine } from '../control-plane.ts';
import { refusedWith } from '../refused-with.ts';
import { deliver, done, openRun, storedCommand } from '../work-run.ts';

describe('frames of a machine', () => {
  let plane: ControlPlane;
  let paired: PairedMachine;

  before(async () => {
    plane = await startControlPlane();
    paired = await plane.pair();
  });
  after(() => plane.stop());

  const violations: Record<string, (machine: ReturnType<ControlPlane['machine']>) => void> = {
    'bytes that are no msgpack': (machine) => machine.frame(Buffer.from('c1', 'hex')),
    'a message of another shape': (machine) => machine.frame(encode({ kind: 'question' })),
    'an unknown question': (machine) =>
      machine.frame(encode({ kind: 'question', id: 1, epoch: 0, sequence: 1, type: 'shell', body: {} })),
    'a name of every object': (machine) =>
      machine.frame(encode({ kind: 'question', id: 1, epoch: 0, sequence: 1, type: 'toString', body: {} })),
    'an answer': (machine) => machine.frame(encode({ kind: 'answer', id: 1, epoch: 0, body: {} })),
    'a skipped sequence': (machine) =>
      void machine.ask('session.challenge', { executor: paired.executor }, { sequence: 2 }).catch(() => undefined),
    'a question before the proof': (machine) => void machine.ask('work', { capacity: 1 }).catch(() => undefined),
    'a second challenge': (machine) => {
      void machine.ask('session.challenge', { executor: paired.executor }).catch(() => undefined);
      void machine.ask('session.challenge', { executor: paired.executor }).catch(() => undefined);
    },
    'a body of another shape': (machine) =>
      void machine.ask('session.challenge', { executor: 'me' as never }).catch(() => undefined),
  };
  for (const [what, lie] of Object.entries(violations)) {
    it(`${what} ends the connection without an answer`, async () => {
      const machine = plane.machine(paired);
      await machine.open();
      lie(machine);
      assert.equal(await machine.closed, 1002);
    });
  }

  it('a message above the limit ends the connection before it is read', async () => {
    const machine = plane.machine(paired);
    await machine.open();
    machine.frame(Buffer.alloc(786_433));
    assert.equal(await machine.closed, 1009);
  });

  it('R9 a message that announces more than the limit ends the connection from its header alone, before any of it came', async () => {
    const { hostname, port } = new URL(plane.origin);
    const before = process.memoryUsage();
    for (let turn = 0; turn < 20; turn += 1) {
      const socket = connect({ host: hostname, port: Number(port) });
      socket.write(
        `GET ${CHANNEL_PATH} HTTP/1.1\r\nHost: ${hostname}:${port}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
          `Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${randomBytes(16).toString('base64')}\r\n` +
          `Sec-WebSocket-Protocol: ${SUBPROTOCOL}\r\n\r\n`,
      );
      await once(socket, 'data');
      // RFC 6455, section 5.2: a last binary frame, masked, of 1 GiB by its 64-bit length. Nothing follows.
      socket.write(Buffer.from('82ff000000004000000000000000', 'hex'));
      const [close] = (await once(socket, 'data')) as [Buffer];
      assert.deepEqual([close.readUInt8(0), close.readUInt16BE(2)], [0x88, 1009]);
      socket.destroy();
    }
    const after = process.memoryUsage();
    assert.ok(
      after.arrayBuffers - before.arrayBuffers < 8_388_608,
      `${after.arrayBuffers - before.arrayBuffers} bytes`,
    );
  });

  it('two questions of one lane at once, or a repeated sequence, end the connection', async () => {
    const state = freshState();
    const machine = plane.machine(paired, undefined, state);
    await machine.open();
    await machine.prove();
    void machine.ask('work', { capacity: 1 }).catch(() => undefined);
    void machine.ask('work', { capacity: 1 }).catch(() => undefined);
    assert.equal(await machine.closed, 1002);
    const again = plane.machine(paired, undefined, state);
    await again.open();
    await again.prove();
    void again.ask('work', { capacity: 1 }, { sequence: 2 }).catch(() => undefined);
    assert.equal(await again.closed, 1002);
  });

  it('a frame of another epoch is refused and ends the connection', async () => {
    const state = freshState();
    state.guard = 5000;
    for (const type of ['work', 'control', 'heartbeat'] as const) {
      const machine = plane.machine(paired, undefined, state);
      await machine.open();
      await machine.prove();
      const body = {
        work: { capacity: 1 },
        control: { nonce: randomBytes(32) },
        heartbeat: { heartbeat: { payload: Buffer.alloc(1), signature: Buffer.alloc(64) } },
      }[type];
      await assert.rejects(machine.ask(type, body, { epoch: machine.epoch - 1 }), refusedWith('CONNECTION_FENCED'));
      assert.equal(await machine.closed, 1008);
    }
  });

  it('another subprotocol, or none, is refused before there is a connection', async () => {
    for (const protocols of [[], ['nessie-executor.v2'], ['chat']]) {
      const socket = new WebSocket(`${plane.origin.replace('http', 'ws')}/api/executor/channel`, protocols);
      const status = await new Promise((resolve) => {
        socket.on('unexpected-response', (_request, response) => resolve(response.statusCode));
        socket.on('open', () => resolve('open'));
        socket.on('error', () => undefined);
      });
      assert.equal(status, 400);
    }
  });
});

describe('the end of a connection after its machine proved itself anew', () => {
  let plane: ControlPlane;
  let paired: PairedMachine;

  beforeEach(async () => {
    plane = await startControlPlane();
    paired = await plane.pair();
  });
  afterEach(() => plane.stop());

  it('a goodbye that is stored after the new proof does not take the machine offline', async () => {
    const state = freshState();
    const before = plane.machine(paired, undefined, state);
    await before.connect();
    const after = plane.machine(paired, undefined, state);
    await after.open();
    // Whatever writes, this process or another: what comes meanwhile waits in its order.
    let release = (): void => undefined;
    const writing = new Promise<void>((resolve) => {
      void plane.context.store.write(async () => {
        resolve();
        await new Promise<void>((go) => {
          release = go;
        });
      });
    });
    await writing;
    const asked = plane.key.asked;
    const proving = after.prove();
    await until('the proof to be signed for', () => plane.key.asked > asked);
    await settledTurns();
    await before.close();
    await until('the goodbye to be taken', () => plane.work.lanes.find(paired.executor) === undefined);
    await settledTurns();
    release();
    const { epoch } = await proving;
    // A goodbye of two jobs would have queued its second one by now.
    for (let job = 0; job < 3; job += 1) await plane.context.store.write(async () => undefined);
    const row = await findExecutor(plane.context.store.read, paired.executor);
    assert.deepEqual([row?.state, row?.epoch], ['online', epoch]);
    assert.equal((await after.askControl()).standing, 'accepting');
  });

  it('a cut that is noticed late loses nothing that the new connection was given, by another process too', async () => {
    const context = { ...plane.context, wake: createWake() };
    const work = await startWork(context);
    const app = await createApp(context, work);
    const origin = await app.listen({ host: '127.0.0.1', port: 0 });
    try {
      const state = freshState();
      const before = plane.machine(paired, undefined, state);
      await before.connect();
      const after = plane.machine(paired, undefined, state);
      Object.assign(after.machine, { origin });
      await after.connect();
      const run = await openRun({ ...plane, context, work });
      const { delivered, called, id } = await deliver(after, run);
      before.cut();
      await until('the end to be taken', () => plane.work.lanes.find(paired.executor) === undefined);
      await settledTurns();
      await plane.context.store.write(async () => undefined);
      assert.equal((await storedCommand(plane, id)).outcome, null);
      await after.ask('receipts', after.chain(delivered, done));
      assert.equal((await called).end?.outcome, 'succeeded');
      after.cut();
    } finally {
      await work.stop();
      await app.close();
    }
  });
});

/** Lets every job of this process that waits for no timer and no disk come to its next wait. */
async function settledTurns(): Promise<void> {
  for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}
