import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { sha256 } from '../../../helpers/protocol/signed.ts';
import { machineDescriptor, machineKey } from '../../fakes/fake-machine.ts';
import { canonicalBytes } from '../../../helpers/protocol/descriptor.ts';
import { expirePairings } from '../../../server/pairing/show.ts';
import { PairingMachine, startGovernance } from '../governance.ts';
import type { Governance } from '../governance.ts';

const challengeOf = (enrolment: { challenge: string }) => Buffer.from(enrolment.challenge, 'base64url');

describe('enrolment', () => {
  let plane: Governance;
  beforeEach(async () => {
    plane = await startGovernance();
  });
  afterEach(() => plane.stop());

  const issue = async () => {
    const wish = { label: 'rack', scope: 'organization', team: plane.account.team, project: null };
    return (await plane.owner.post('/api/page/enrolments', wish)).body;
  };
  const machineFor = (requestId: string): PairingMachine =>
    Object.assign(new PairingMachine(plane.origin, plane.clock), { requestId });

  it('a machine proves its key over the challenge, a person confirms its fingerprint, and only then it is known', async () => {
    const enrolment = await issue();
    const machine = machineFor(enrolment.requestId);
    const body = machine.firstBody(challengeOf(enrolment));
    const first = await machine.call('enrol', body);
    assert.equal(first.status, 200, JSON.stringify(first.body));
    assert.deepEqual((await machine.call('enrol', body)).body, first.body);
    assert.equal((await machine.poll(first.body.pairing)).body.state, 'waiting');
    const { fingerprint } = (await plane.owner.get(`/api/page/pairings/${enrolment.pairing}`)).body;
    assert.equal(fingerprint, machine.fingerprint);
    const confirm = (text: string) =>
      plane.owner.post(`/api/page/pairings/${enrolment.pairing}/confirm`, { fingerprint: text });
    assert.equal((await confirm('0'.repeat(64))).body.code, 'FINGERPRINT_NOT_CONFIRMED');
    assert.equal((await machine.poll(first.body.pairing)).body.state, 'waiting');
    assert.equal((await confirm(fingerprint)).status, 200);
    const { state, paired } = (await machine.poll(first.body.pairing)).body;
    assert.equal(state, 'paired');
    assert.equal(paired.executor, enrolment.executor);
    assert.deepEqual(Buffer.from(paired.commandKey), Buffer.from(plane.context.signer.publicKey));
  });

  it('N-070 the challenge has 256 bits and only its SHA-256 is kept; an unknown request and a wrong challenge look alike', async () => {
    const enrolment = await issue();
    const challenge = challengeOf(enrolment);
    assert.equal(challenge.length, 32);
    const row = await plane.context.store.read.selectFrom('pairings').selectAll().executeTakeFirstOrThrow();
    assert.deepEqual(row.challengeVerifier, sha256(challenge));
    for (const file of ['store.db', 'store.db-wal']) {
      const bytes = await readFile(join(plane.folder, file)).catch(() => Buffer.alloc(0));
      assert.equal(bytes.includes(challenge) || bytes.includes(enrolment.challenge), false, file);
    }
    const wrong = machineFor(enrolment.requestId);
    const unknown = new PairingMachine(plane.origin, plane.clock);
    const answers = [
      await wrong.call('enrol', wrong.firstBody(Buffer.alloc(32, 1))),
      await unknown.call('enrol', unknown.firstBody(challenge)),
    ];
    assert.equal(answers[0]?.body.code, 'ENROLLMENT_UNKNOWN');
    assert.equal(answers[0]?.text, answers[1]?.text);
    assert.equal(answers[0]?.status, answers[1]?.status);
  });

  it('N-071 an enrolment is valid for ten minutes and used once, also by two machines at the same time', async () => {
    const late = await issue();
    plane.clock.offsetMs += 601_000;
    const tooLate = machineFor(late.requestId);
    assert.equal((await tooLate.call('enrol', tooLate.firstBody(challengeOf(late)))).body.code, 'ENROLLMENT_EXPIRED');
    const enrolment = await issue();
    const machines = [machineFor(enrolment.requestId), machineFor(enrolment.requestId)];
    const answers = await Promise.all(
      machines.map((machine) => machine.call('enrol', machine.firstBody(challengeOf(enrolment)))),
    );
    assert.deepEqual(
      answers.map(({ body }) => String(body.code)).toSorted((a, b) => a.localeCompare(b)),
      ['ENROLLMENT_USED', 'undefined'],
    );
  });

  it('N-072 the proof covers request id, challenge, public key and the digest of the first descriptor', async () => {
    const enrolment = await issue();
    const machine = machineFor(enrolment.requestId);
    const body = machine.firstBody(challengeOf(enrolment));
    for (const change of [
      { requestId: `req_${'0'.repeat(32)}` },
      { challenge: Buffer.alloc(32, 9) },
      { publicKey: machineKey().publicKey },
      { descriptor: canonicalBytes(machineDescriptor({ rootName: 'planted' })) },
      { proof: machine.sign('machine.pair-poll', { pairing: enrolment.pairing }) },
    ]) {
      const { code } = (await machine.call('enrol', { ...body, ...change })).body;
      assert.equal(code, 'ENROLLMENT_PROOF_INVALID', Object.keys(change).join());
    }
    assert.equal((await machine.call('enrol', body)).status, 200);
  });

  it('one flow cannot activate what the other began', async () => {
    const enrolment = await issue();
    const machine = machineFor(enrolment.requestId);
    const { pairing } = (await machine.call('enrol', machine.firstBody(challengeOf(enrolment)))).body;
    const confirmed = await machine.confirm(pairing, Buffer.alloc(32));
    assert.equal(confirmed.body.code, 'FLOW_MISMATCH');
    const claim = {
      label: 'x',
      scope: 'private',
      team: plane.account.team,
      project: null,
      fingerprint: machine.fingerprint,
    };
    assert.equal((await plane.owner.post(`/api/page/pairings/${pairing}/claim`, claim)).body.code, 'PAIRING_UNKNOWN');
    assert.equal((await machine.start()).body.code, 'FLOW_MISMATCH');
  });

  it('N-067 nothing but a signed-in person on the page confirms: no token, no other origin, no request without the session’s own token', async () => {
    const enrolment = await issue();
    const machine = machineFor(enrolment.requestId);
    await machine.call('enrol', machine.firstBody(challengeOf(enrolment)));
    const path = `/api/page/pairings/${enrolment.pairing}/confirm`;
    const body = { fingerprint: machine.fingerprint };
    const { agent } = (await plane.owner.post('/api/page/agents', { name: 'a' })).body;
    const { token } = (await plane.owner.post(`/api/page/agents/${agent}/tokens`, { project: plane.account.project }))
      .body;
    const bare = async (headers: Record<string, string>) =>
      (
        await fetch(plane.origin + path, {
          method: 'POST',
          body: JSON.stringify(body),
          headers: { 'content-type': 'application/json', ...headers },
        })
      ).status;
    assert.equal(await bare({ origin: 'http://127.0.0.1:7420', authorization: `Bearer ${token}` }), 401);
    assert.equal(await bare({ cookie: plane.owner.cookie, 'x-nessie-csrf': plane.owner.csrf }), 403);
    assert.equal(
      await bare({
        cookie: plane.owner.cookie,
        'x-nessie-csrf': plane.owner.csrf,
        origin: 'https://elsewhere.example',
      }),
      403,
    );
    assert.equal(await bare({ cookie: plane.owner.cookie, origin: 'http://127.0.0.1:7420' }), 403);
    assert.equal((await machine.poll(enrolment.pairing)).body.state, 'waiting');
    assert.equal((await plane.owner.post(path, body)).status, 200);
  });

  it('N-065 a person is shown the fingerprint and confirms it: another one, and a key exchanged after it was shown, are refused', async () => {
    const enrolment = await issue();
    const machine = machineFor(enrolment.requestId);
    await machine.call('enrol', machine.firstBody(challengeOf(enrolment)));
    const path = `/api/page/pairings/${enrolment.pairing}`;
    const shown = (await plane.owner.get(path)).body.fingerprint;
    const swapped = machineFor(enrolment.requestId);
    assert.equal((await swapped.call('enrol', swapped.firstBody(challengeOf(enrolment)))).body.code, 'ENROLLMENT_USED');
    const { publicKey } = swapped.key;
    const exchange = { publicKey, fingerprint: swapped.fingerprint };
    const { store } = plane.context;
    const row = await store.read.selectFrom('pairings').select(['publicKey', 'fingerprint']).executeTakeFirstOrThrow();
    await store.write((tx) => tx.updateTable('pairings').set(exchange).execute());
    for (const fingerprint of [swapped.fingerprint, shown]) {
      const refused = await plane.owner.post(`${path}/confirm`, { fingerprint });
      assert.equal(refused.body.code, 'FINGERPRINT_NOT_CONFIRMED');
    }
    await store.write((tx) => tx.updateTable('pairings').set(row).execute());
    assert.equal((await plane.owner.post(`${path}/confirm`, { fingerprint: shown })).status, 200);
  });

  it('what nobody answers ends by itself: its executor leaves the list, and a pairing without one is forgotten after a day', async () => {
    const enrolment = await issue();
    await new PairingMachine(plane.origin, plane.clock).start();
    const pairings = () =>
      plane.context.store.read.selectFrom('pairings').select(['id', 'state', 'executor']).orderBy('flow').execute();
    await expirePairings(plane.context);
    assert.deepEqual(
      (await pairings()).map(({ state }) => state),
      ['offered', 'issued'],
    );
    plane.clock.offsetMs += 601_000;
    await expirePairings(plane.context);
    assert.deepEqual(
      (await pairings()).map(({ state }) => state),
      ['expired', 'expired'],
    );
    assert.deepEqual((await plane.owner.get('/api/page/executors')).body.executors, []);
    plane.clock.offsetMs += 86_400_000;
    await expirePairings(plane.context);
    assert.deepEqual(
      (await pairings()).map(({ executor }) => executor),
      [enrolment.executor],
    );
  });
});
