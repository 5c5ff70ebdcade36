import assert from 'node:assert/strict';
import net from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { connector } from '../../../helpers/link/connector.ts';
import { readOrigin } from '../../../helpers/protocol/origin.ts';

describe("link's connector", () => {
  it('leaves a connection alone once it stands, long after the time for connecting has passed', async () => {
    const held: Socket[] = [];
    const server = net.createServer((socket) => held.push(socket));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const origin = readOrigin(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, true);
    const socket = await connector({ origin, authorities: undefined }, 50)();
    await wait(200);
    assert.equal(socket.destroyed, false);
    socket.destroy();
    for (const one of held) one.destroy();
    server.close();
  });
});
