import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { WebSocket } from 'ws';
import { encode } from '../../../helpers/protocol/codec.ts';
import { freshState } from '../../fakes/fake-executor.ts';
import { startControlPlane } from '../control-plane.ts';
import type { ControlPlane, PairedMachine } from '../control-plane.ts';
import { refusedWith } from '../refused-with.ts';

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
