import assert from 'node:assert/strict';
import { WebSocket } from 'ws';
import { Unproved } from '../../../server/channel/unproved.ts';
import { SUBPROTOCOL } from '../../../server/protocol.ts';
import { startControlPlane, until } from '../control-plane.ts';
import type { ControlPlane } from '../control-plane.ts';

describe('connections that prove nothing', () => {
  let plane: ControlPlane;
  before(async () => {
    plane = await startControlPlane();
  });
  after(() => plane.stop());

  const open = async () => {
    const socket = new WebSocket(`${plane.origin.replace('http', 'ws')}/api/executor/channel`, [SUBPROTOCOL]);
    const closed = new Promise<number>((resolve) => socket.once('close', resolve));
    socket.on('error', () => undefined);
    await new Promise((resolve) => {
      socket.once('open', resolve);
      socket.once('close', resolve);
    });
    return { socket, closed };
  };

  it('three hundred of one address hold sixteen places, and keep no machine out', async () => {
    const flood = await Promise.all(Array.from({ length: 300 }, open));
    const standing = () => flood.filter(({ socket }) => socket.readyState === WebSocket.OPEN).length;
    await until('the refusals', () => standing() <= 16);
    assert.ok(standing() > 0);
    const paired = await plane.pair();
    // The flood stands on: a machine of the very same address finds room as soon as one of it is a second old.
    await until('the machine to prove itself', async () => {
      const machine = plane.machine(paired);
      await machine.open();
      return machine.online().then(
        () => true,
        () => false,
      );
    });
    assert.ok(standing() <= 16);
    for (const { socket } of flood) socket.terminate();
  });

  it('the next of one address is refused while the others are young, and takes the place of an older one later', async () => {
    const unproved = new Unproved();
    const sockets = (await Promise.all(Array.from({ length: 18 }, open))).map(({ socket }) => socket);
    for (const socket of sockets.slice(0, 16)) assert.ok(unproved.admit(socket, 'one', 0));
    const [first, second] = sockets;
    const [late, later] = sockets.slice(16);
    assert.ok(first && second && late && later);
    assert.equal(unproved.admit(late, 'one', 999), false);
    assert.ok(unproved.admit(late, 'other', 999), 'another address has its own places');
    unproved.release(second);
    assert.ok(unproved.admit(second, 'one', 999), 'one that proved itself holds none');
    assert.ok(unproved.admit(later, 'one', 1000));
    await until('the oldest to be closed', () => first.readyState === WebSocket.CLOSED);
    for (const socket of sockets) socket.terminate();
  });

  it('where all addresses together hold too many, the oldest makes room and the newest stands', async () => {
    const unproved = new Unproved();
    const sockets = Array.from({ length: 257 }, () => new WebSocket('ws://127.0.0.1:9', { autoPong: false }));
    for (const socket of sockets) socket.on('error', () => undefined);
    const gone = new Set<number>();
    for (const [index, socket] of sockets.entries()) socket.once('close', () => gone.add(index));
    const terminated: number[] = [];
    for (const [index, socket] of sockets.entries()) {
      const terminate = socket.terminate.bind(socket);
      socket.terminate = () => {
        terminated.push(index);
        terminate();
      };
    }
    for (const [index, socket] of sockets.entries())
      assert.ok(unproved.admit(socket, `address ${index >> 3}`, index), String(index));
    assert.deepEqual(terminated, [0]);
    for (const socket of sockets) socket.terminate();
    await until('all to be gone', () => gone.size === sockets.length);
  });
});
