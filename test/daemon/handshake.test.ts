import assert from 'node:assert/strict';
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { askDaemon } from '../../daemon/cli/owner-client.ts';
import type { DaemonStatus } from '../../daemon/protocol.ts';
import { decode, encode } from '../../helpers/protocol/codec.ts';
import { runIdSchema } from '../../helpers/protocol/ids.ts';
import type { Signed } from '../../helpers/protocol/signed.ts';
import { statements } from '../../helpers/protocol/statements.ts';
import { childrenOf, descriptorsOf, inodeIn, socketsSeenBy } from '../../helpers/runtime/kernel-view.ts';
import type { ChannelQuestion, CommandFrame } from '../../server/protocol.ts';
import { pairedExecutor, RealExecutor } from '../fixtures/executor.ts';
import { until } from '../fixtures/until.ts';
import { FakeControlPlane } from '../fakes/fake-control-plane.ts';

const newRun = () => runIdSchema.parse(`run_${randomBytes(16).toString('hex')}`);

describe('the handshake of a real executor', function () {
  this.timeout(60_000);
  let plane: FakeControlPlane;
  let executor: RealExecutor;
  let end: () => Promise<void>;

  before(async () => {
    ({ plane, executor, end } = await pairedExecutor());
  });
  after(() => end());

  const back = async (): Promise<void> => {
    plane.beHonest();
    await executor.is('online');
  };
  const written = (name: string): boolean =>
    fs
      .readdirSync(path.join(executor.places.stateDir, 'drafts'), { recursive: true, withFileTypes: true })
      .some((entry) => entry.isFile() && fs.readFileSync(path.join(entry.parentPath, entry.name)).includes(name));

  it('R3 fails with any one field of the control plane’s answer changed on its way, and no change is believed', async () => {
    for (const field of Object.keys(statements['control.session'].shape)) {
      let met = 0;
      plane.meddle = (type, body) => {
        if (type !== 'session.prove') return body;
        met += 1;
        return { session: changed((body as { session: Signed }).session, field) };
      };
      plane.cut();
      await until(`a handshake with another ${field}`, () => met > 0 || undefined);
      await until('it was left', () => !plane.hasSocket || undefined);
      const { state, fault } = await executor.status();
      assert.deepEqual([state, fault], ['connecting', null], field);
      await back();
    }
  });

  it('R4 takes nothing of a recorded stream, as it was or with its times rewritten', async () => {
    const name = randomBytes(8).toString('hex');
    const recorded = new Map<ChannelQuestion, unknown>();
    plane.meddle = (type, body) => {
      if (!recorded.has(type) || type === 'work') recorded.set(type, body);
      return body;
    };
    plane.cut();
    await until('a whole handshake', () => recorded.has('control') || undefined);
    await executor.is('online');
    const held = plane.frame({
      operation: 'file.write',
      arguments: { path: 'a.txt', content: 'first' },
      run: newRun(),
    });
    plane.deliver(held);
    await until('it ended', () => plane.told.find(({ ending }) => ending !== undefined));
    // Its end is told before the answer to that is on the ledger.
    let [last, still] = ['', 0];
    await until('the ledger stands still', async () => {
      const now = JSON.stringify((await executor.status()).ledger);
      still = now === last ? still + 1 : 0;
      last = now;
      return still > 20 || undefined;
    });
    // One command of the recorded time that the machine never got.
    const kept = plane.frame({ operation: 'file.write', arguments: { path: name, content: name }, run: newRun() });

    for (const rewrite of [false, true]) {
      let met = 0;
      plane.meddle = (type, body) => {
        const old = recorded.get(type);
        if (old === undefined) return body;
        met += type === 'session.prove' ? 1 : 0;
        return rewrite ? later(old) : old;
      };
      const { ledger } = await executor.status();
      plane.cut();
      await until('two handshakes of the past', () => met > 1 || undefined);
      const status = await executor.status();
      assert.deepEqual([status.state, status.ledger], ['connecting', ledger]);
      await back();
    }

    const frames: readonly CommandFrame[] = [kept, { ...kept, ...(later(kept) as CommandFrame) }];
    for (const frame of frames) {
      const { epoch } = plane;
      const told = plane.told.length;
      plane.deliver(frame);
      await until(
        'a refusal, or the end of the connection',
        () => plane.told.length > told || plane.epoch > epoch || undefined,
      );
      assert.ok(plane.told.slice(told).every(({ ending }) => ending === 'EPOCH_STALE'));
      await back();
    }
    assert.ok(!written(name));
  });
});

describe('the life of a real executor', function () {
  this.timeout(60_000);
  const plane = new FakeControlPlane();
  let executor: RealExecutor;

  before(async () => {
    executor = new RealExecutor(await plane.listen());
  });
  after(async () => {
    await executor.remove();
    await plane.close();
  });

  it('S-233 at no time does any process of it listen on a network, and once it is paired one outgoing connection is all there is', async () => {
    const seen = new Map<DaemonStatus['state'] | 'silent', number>();
    const wrong = new Set<string>();
    // The calls of a pairing are connections of their own.
    let most = 2;
    const ended = new AbortController();
    const watch = async (): Promise<void> => {
      while (!ended.signal.aborted) {
        await setImmediate();
        const state = await executor.status().then(
          (status) => status.state,
          () => 'silent' as const,
        );
        const sockets = networkSockets(executor);
        if (sockets === undefined) continue;
        seen.set(state, (seen.get(state) ?? 0) + 1);
        const { listening, udp, tcp, holders } = sockets;
        if (listening + udp > 0 || tcp > most || holders.some((row) => row !== 'link')) {
          wrong.add(`${state}: ${JSON.stringify(sockets)}`);
        }
      }
    };
    const during = async (state: DaemonStatus['state']): Promise<void> => {
      const before = seen.get(state) ?? 0;
      await until(state, () => (seen.get(state) ?? 0) > before + 3 || undefined);
    };
    const watching = watch();
    await executor.start();
    await during('unpaired');
    await executor.pair();
    await during('online');
    await until('the calls have ended', () => networkSockets(executor)?.tcp === 1 || undefined);
    most = 1;
    plane.signingKey = generateKeyPairSync('ed25519').privateKey;
    plane.cut();
    await during('connecting');
    plane.beHonest();
    await executor.is('online');
    plane.standing = 'fenced';
    plane.wake();
    plane.beHonest();
    await executor.is('online');
    plane.lie = (type, fields) => (type === 'control.session' ? { ...fields, verdict: 'ledger-forked' } : fields);
    plane.cut();
    await during('error');
    plane.beHonest();
    await askDaemon(executor.places.stateDir, 'daemon.repair', { journal: 'leave' });
    await executor.is('online');
    plane.standing = 'draining';
    plane.wake();
    await during('draining');
    await executor.stop();
    ended.abort();
    await watching;
    assert.deepEqual([...wrong], []);
    for (const state of ['unpaired', 'pairing', 'connecting', 'online', 'error', 'draining'] as const)
      assert.ok((seen.get(state) ?? 0) > 0, state);
  });
});

/** The same signature over a statement in which one field is another value of its own kind. */
function changed({ payload, signature }: Signed, field: string): Signed {
  const fields = decode(payload) as Record<string, unknown>;
  const value = fields[field];
  const other =
    typeof value === 'number'
      ? value + 1
      : value instanceof Uint8Array
        ? Buffer.from(value).map((byte, index) => (index === 0 ? byte ^ 1 : byte))
        : field === 'verdict'
          ? 'revoked'
          : String(value).replace(/.$/, (last) => (last === '0' ? '1' : '0'));
  assert.notDeepEqual(other, value);
  return { payload: encode({ ...fields, [field]: other }), signature };
}

/** A body with every time in every signed statement put off by an hour, under the signatures that were there. */
function later(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(later);
  if (value === null || typeof value !== 'object' || value instanceof Uint8Array) return value;
  const entries = Object.entries(value).map(([name, inner]): [string, unknown] => {
    if (name !== 'payload') return [name, later(inner)];
    const fields = decode(inner as Uint8Array) as Record<string, unknown>;
    for (const time of ['at', 'notBefore', 'expiresAt']) {
      if (typeof fields[time] === 'number') fields[time] += 3_600_000;
    }
    return [name, encode(fields)];
  });
  return Object.fromEntries(entries);
}

/** Sockets of families that reach a network, over all processes of the tree; undefined while it is not whole. */
function networkSockets(
  executor: RealExecutor,
): { listening: number; tcp: number; udp: number; holders: string[] } | undefined {
  try {
    const daemon = executor.pidOf('daemon');
    const supervisor = Number(/^PPid:\s+(\d+)$/m.exec(fs.readFileSync(`/proc/${daemon}/status`, 'utf8'))?.[1]);
    const seen = socketsSeenBy(supervisor);
    const found = { listening: 0, tcp: 0, udp: 0, holders: new Array<string>() };
    for (const pid of [supervisor, ...childrenOf(supervisor)]) {
      for (const { target } of descriptorsOf(pid).filter(({ kind }) => kind === 'socket')) {
        const socket = seen.get(inodeIn(target));
        if (socket === undefined || socket.family === 'unix') continue;
        if (socket.isListening) found.listening += 1;
        if (socket.family === 'tcp') found.tcp += 1;
        if (socket.family === 'udp') found.udp += 1;
        found.holders.push(/\/([a-z-]+)\.mjs/.exec(fs.readFileSync(`/proc/${pid}/cmdline`, 'utf8'))?.[1] ?? '');
      }
    }
    return found;
  } catch {
    // A row ended or started while the list was read.
    return undefined;
  }
}
