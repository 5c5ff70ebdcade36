import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { canonicalBytes } from '../../../helpers/protocol/descriptor.ts';
import { sha256 } from '../../../helpers/protocol/signed.ts';
import { candidates } from '../../../server/availability/store.ts';
import { changeExecutor } from '../../../server/executors/lifecycle.ts';
import { newId } from '../../../server/new-id.ts';
import { codeOf } from '../../../server/pairing/code.ts';
import { secretsFrom } from '../../../server/secrets.ts';
import { machineDescriptor, machineKey } from '../../fakes/fake-machine.ts';
import {
  confirmQuickly,
  digestOfClaim,
  PairingMachine,
  pairThroughRoutes,
  proveOnline,
  startGovernance,
} from '../governance.ts';
import type { Governance } from '../governance.ts';

describe('pairing with eight digits', () => {
  let plane: Governance;
  let machine: PairingMachine;

  beforeEach(async () => {
    plane = await startGovernance();
    machine = new PairingMachine(plane.origin, plane.clock);
  });
  afterEach(() => plane.stop());

  const claimBody = (more: object = {}) => ({
    label: 'desk',
    scope: 'private',
    team: plane.account.team,
    project: null,
    fingerprint: machine.fingerprint,
    ...more,
  });
  const stateOf = async (executor: string) => (await plane.owner.get(`/api/page/executors/${executor}`)).body?.state;
  const begin = async () => {
    const started = (await machine.start()).body;
    const shown = (await plane.owner.post('/api/page/pairings/lookup', { code: started.code })).body;
    return { ...started, shown };
  };

  it('N-073 the machine gets a pairing id, eight digits, its fingerprint, an expiry of 600 s and a poll interval of 3 s', async () => {
    const before = plane.clock.now();
    const { status, body } = await machine.start();
    assert.equal(status, 200);
    assert.match(body.code, /^\d{8}$/);
    assert.match(body.pairing, /^pair_[0-9a-f]{32}$/);
    assert.equal(body.fingerprint, machine.fingerprint);
    assert.equal(body.pollMs, 3000);
    assert.ok(body.expiresAt - before >= 600_000 && body.expiresAt - before < 605_000);
    assert.equal((await machine.poll(body.pairing)).body.state, 'waiting');
    plane.clock.offsetMs += 601_000;
    assert.equal((await machine.poll(body.pairing)).body.state, 'expired');
    assert.equal(
      (await plane.owner.post('/api/page/pairings/lookup', { code: body.code })).body.code,
      'PAIRING_UNKNOWN',
    );
  });

  it('codes are spread evenly over all eight digits, leading zeros included', () => {
    const secrets = secretsFrom(Buffer.alloc(32, 3));
    const firsts = new Map<string, number>();
    for (let index = 0; index < 5000; index += 1) {
      const first = codeOf(secrets, newId('pair'), 0).charAt(0);
      firsts.set(first, (firsts.get(first) ?? 0) + 1);
    }
    for (const digit of '0123456789') {
      const count = firsts.get(digit) ?? 0;
      assert.ok(count > 400 && count < 600, `${digit} led ${count} of 5000`);
    }
  });

  it('N-074 no code is stored; the same request gets the same answer, never extended, and other facts are refused', async () => {
    const body = machine.firstBody();
    const first = await machine.call('start', body);
    plane.clock.offsetMs += 300_000;
    const again = await machine.call('start', body);
    assert.deepEqual(again.body, first.body);
    const signedAnew = await machine.start();
    assert.deepEqual(signedAnew.body, first.body);
    for (const file of ['store.db', 'store.db-wal']) {
      const bytes = await readFile(join(plane.folder, file)).catch(() => Buffer.alloc(0));
      assert.equal(bytes.includes(first.body.code), false, file);
    }
    machine.descriptor = machineDescriptor({ rootName: 'elsewhere' });
    assert.equal((await machine.start()).body.code, 'PAIRING_FACTS_CHANGED');
    plane.clock.offsetMs += 360_000;
    assert.equal((await machine.call('start', body)).body.code, 'PAIRING_EXPIRED');
  });

  it('N-075 the person sees name, fingerprint, platform and expiry, and a claim repeats the fingerprint; twice has one effect', async () => {
    const { pairing, shown, expiresAt } = await begin();
    assert.equal(shown.machineName, 'desk');
    assert.equal(shown.fingerprint, machine.fingerprint);
    assert.deepEqual(shown.platform, machine.descriptor.platform);
    assert.equal(shown.expiresAt, expiresAt);
    const foreign = await plane.owner.post(
      `/api/page/pairings/${pairing}/claim`,
      claimBody({ fingerprint: '0'.repeat(64) }),
    );
    assert.equal(foreign.body.code, 'FINGERPRINT_NOT_CONFIRMED');
    const claim = await plane.owner.post(`/api/page/pairings/${pairing}/claim`, claimBody());
    assert.equal(claim.status, 200, claim.text);
    const again = await plane.owner.post(`/api/page/pairings/${pairing}/claim`, claimBody());
    assert.equal(again.body.executor, claim.body.executor);
    const other = await plane.owner.post(`/api/page/pairings/${pairing}/claim`, claimBody({ label: 'other' }));
    assert.equal(other.body.code, 'CLAIM_CONFLICT');
    const rows = await plane.context.store.read.selectFrom('executors').selectAll().execute();
    assert.equal(rows.length, 1);
  });

  it('N-076 a claim alone never activates; the machine is shown it and confirms or rejects, and either side cancels', async () => {
    const { pairing } = await begin();
    const { executor } = (await plane.owner.post(`/api/page/pairings/${pairing}/claim`, claimBody())).body;
    assert.equal(await stateOf(executor), 'pending_pairing');
    const { claim } = (await machine.poll(pairing)).body;
    assert.equal(claim.organisationName, 'Loch');
    assert.equal(claim.teamName, 'Shore');
    assert.equal(claim.scope, 'private');
    assert.equal(claim.label, 'desk');
    assert.equal((await machine.confirm(pairing, digestOfClaim(claim), 'reject')).body.state, 'rejected');
    assert.equal((await machine.confirm(pairing, digestOfClaim(claim))).body.code, 'PAIRING_CANCELLED');
    assert.equal((await plane.owner.get(`/api/page/executors/${executor}`)).status, 404);

    for (const by of ['person', 'machine']) {
      machine = new PairingMachine(plane.origin, plane.clock);
      const next = await begin();
      await plane.owner.post(`/api/page/pairings/${next.pairing}/claim`, claimBody());
      const poll = machine.sign('machine.pair-poll', { pairing: next.pairing });
      if (by === 'person') await plane.owner.post(`/api/page/pairings/${next.pairing}/cancel`);
      else await machine.call('cancel', { poll });
      assert.equal((await machine.poll(next.pairing)).body.state, 'cancelled');
    }
  });

  it('N-077 the confirmation signs exactly the facts that stand at that moment', async () => {
    const { pairing } = await begin();
    await plane.owner.post(`/api/page/pairings/${pairing}/claim`, claimBody());
    const { claim } = (await machine.poll(pairing)).body;
    await plane.context.store.write((tx) => tx.updateTable('teams').set({ name: 'Another' }).execute());
    assert.equal((await machine.confirm(pairing, digestOfClaim(claim))).body.code, 'CLAIM_CHANGED');
    for (const field of ['executor', 'pairing', 'organisation', 'team', 'scope', 'label']) {
      const altered = digestOfClaim({ ...claim, [field]: field === 'scope' ? 'organization' : `${claim[field]}x` });
      assert.equal((await machine.confirm(pairing, altered)).body.code, 'CLAIM_CHANGED', field);
    }
    await plane.context.store.write((tx) => tx.updateTable('teams').set({ name: 'Shore' }).execute());
    const fresh = await machine.call('claim', { poll: machine.sign('machine.pair-poll', { pairing }) });
    assert.equal((await machine.confirm(pairing, digestOfClaim(fresh.body.claim))).body.state, 'paired');
  });

  it('N-063 a lost answer is asked again with the same bytes, and there is one executor', async () => {
    const body = machine.firstBody();
    await machine.call('start', body);
    const { code, pairing } = (await machine.call('start', body)).body;
    await plane.owner.post('/api/page/pairings/lookup', { code });
    await plane.owner.post(`/api/page/pairings/${pairing}/claim`, claimBody());
    const { claim } = (await machine.poll(pairing)).body;
    const confirm = machine.sign('machine.pair-confirm', {
      pairing,
      claimDigest: digestOfClaim(claim),
      answer: 'confirm',
    });
    const first = await machine.call('confirm', { confirm });
    plane.clock.offsetMs += 3_600_000;
    const again = await machine.call('confirm', { confirm });
    assert.deepEqual(again.body, first.body);
    assert.equal((await plane.context.store.read.selectFrom('executors').selectAll().execute()).length, 1);
  });

  it('what a machine signed counts once: a recorded poll cancels nothing, and an older statement is never taken', async () => {
    const { pairing } = await begin();
    const sign = () => machine.sign('machine.pair-poll', { pairing });
    const early = sign();
    const poll = sign();
    assert.equal((await machine.call('poll', { poll })).body.state, 'waiting');
    for (const recorded of [poll, early])
      for (const call of ['cancel', 'poll', 'claim'] as const) {
        const { status, body } = await machine.call(call, { poll: recorded });
        assert.deepEqual([status, body.code], [400, 'PROOF_INVALID'], call);
      }
    const refused = sign();
    assert.equal((await machine.call('claim', { poll: refused })).status, 409);
    assert.equal((await machine.call('cancel', { poll: refused })).body.code, 'PROOF_INVALID', 'refused is used too');
    await plane.owner.post(`/api/page/pairings/${pairing}/claim`, claimBody());
    const { claim } = (await machine.poll(pairing)).body;
    const answer = (digest: Buffer) =>
      machine.sign('machine.pair-confirm', { pairing, claimDigest: digest, answer: 'confirm' });
    const older = answer(digestOfClaim(claim));
    const wrong = answer(Buffer.alloc(32));
    assert.equal((await machine.call('confirm', { confirm: wrong })).body.code, 'CLAIM_CHANGED');
    assert.equal((await machine.call('confirm', { confirm: older })).body.code, 'PROOF_INVALID');
    const old = machine.sign('machine.pair-poll', { pairing, at: plane.clock.now() - 61_000 });
    assert.equal((await machine.call('cancel', { poll: old })).body.code, 'CLOCK_SKEW');
    assert.equal((await machine.poll(pairing)).body.state, 'claimed', 'nothing of it changed the pairing');
    assert.equal((await machine.call('cancel', { poll: sign() })).body.state, 'cancelled');
  });

  it('pairing makes the machine known and not available: its first descriptor waits for a person', async () => {
    const { executor } = await pairThroughRoutes(plane, plane.owner, { machine });
    const { body } = await plane.owner.get(`/api/page/executors/${executor}`);
    assert.equal(body.state, 'pending_pairing');
    assert.equal(body.fingerprint, machine.fingerprint);
    assert.equal(body.confirmedRevision, 0);
    assert.equal(body.pendingRevision, 1);
  });

  it('N-066 until both sides confirmed and the machine proved its key it is not available, no candidate and has no command', async () => {
    const { agent } = (await plane.owner.post('/api/page/agents', { name: 'a' })).body;
    const { store } = plane.context;
    const wish = {
      person: plane.account.person,
      agent,
      operation: 'file.read',
      origin: { project: plane.account.project },
    };
    const seen = async () => {
      const found = await candidates(plane.context, store.read, wish);
      return found.executors.length;
    };
    const { pairing } = await begin();
    const { executor } = (await plane.owner.post(`/api/page/pairings/${pairing}/claim`, claimBody())).body;
    const prove = () =>
      changeExecutor(plane.context, executor, { type: 'executor.proved', fingerprint: machine.fingerprint });
    await assert.rejects(prove(), { code: 'PAIRING_NOT_CONFIRMED' });
    assert.equal(await seen(), 0);
    const { claim } = (await machine.poll(pairing)).body;
    await machine.confirm(pairing, digestOfClaim(claim));
    await confirmQuickly(plane, executor);
    await plane.owner.put(`/api/page/executors/${executor}/agents/${agent}`, { access: 'on' });
    assert.equal(await seen(), 0, 'confirmed, not proved');
    assert.equal(await stateOf(executor), 'pending_pairing');
    await proveOnline(plane, executor);
    assert.equal(await seen(), 1);
  });

  it('whatever the signature does not cover is refused, with a clock 60 s off too', async () => {
    const other = machineKey();
    const body = machine.firstBody();
    const bytes = canonicalBytes(machineDescriptor({ rootName: 'planted' }));
    for (const [change, code] of [
      [{ requestId: `req_${'0'.repeat(32)}` }, 'PROOF_INVALID'],
      [{ machineName: 'other' }, 'PROOF_INVALID'],
      [{ publicKey: other.publicKey }, 'PROOF_INVALID'],
      [{ descriptor: bytes }, 'PROOF_INVALID'],
      [
        { descriptorSigned: machine.sign('machine.descriptor', { revision: 1, descriptorDigest: sha256(bytes) }) },
        'DESCRIPTOR_INVALID',
      ],
      [{ proof: machine.sign('machine.pair-poll', { pairing: newId('pair') }) }, 'PROOF_INVALID'],
      [{ publicKey: Buffer.alloc(32) }, 'KEY_REFUSED'],
      [{ extra: 1 }, 'VERSION_UNSUPPORTED'],
    ] as const) {
      assert.equal(
        (await machine.call('start', { ...body, ...change })).body.code,
        code,
        JSON.stringify(Object.keys(change)),
      );
    }
    plane.clock.offsetMs += 61_000;
    assert.equal((await machine.call('start', body)).body.code, 'CLOCK_SKEW');
    plane.clock.offsetMs -= 2000;
    assert.equal((await machine.call('start', body)).status, 200);
  });

  it('a key that is paired or pairing already is refused', async () => {
    await machine.start();
    const twin = new PairingMachine(plane.origin, plane.clock, machine.key);
    assert.equal((await twin.start()).body.code, 'KEY_ALREADY_KNOWN');
  });

  it('a replacement is signed by both keys, revokes the old executor in the same transaction, and once', async () => {
    const old = await pairThroughRoutes(plane, plane.owner, { label: 'old' });
    await proveOnline(plane, old.executor);
    const { pairing } = await begin();
    await plane.owner.post(`/api/page/pairings/${pairing}/claim`, claimBody());
    const { claim } = (await machine.poll(pairing)).body;
    const replace = (oldKey = old.machine.key, newKey = machine.key, more: object = {}) => {
      const keys = { oldPublicKey: old.machine.key.publicKey, newPublicKey: machine.key.publicKey };
      const fields = { guard: 7, at: plane.clock.now(), pairing, oldExecutor: old.executor, ...keys };
      return {
        confirm: machine.sign('machine.pair-confirm', {
          pairing,
          claimDigest: digestOfClaim(claim),
          answer: 'confirm',
        }),
        current: machine.sign('machine.replace', { ...fields, ...more }, oldKey),
        next: machine.sign('machine.replace', fields, newKey),
      };
    };
    const { key } = old.machine;
    for (const [what, body, code] of [
      ['only the new key signed', replace(machineKey()), 'PROOF_INVALID'],
      ['only the old key signed', replace(key, machineKey()), 'PROOF_INVALID'],
      ['the keys signed other bytes', replace(key, machine.key, { guard: 8 }), 'PROOF_INVALID'],
      ['the other way round', replace(machine.key, key), 'PROOF_INVALID'],
    ] as const) {
      assert.equal((await machine.call('replace', body)).body.code, code, what);
      assert.equal(await stateOf(old.executor), 'online', what);
    }
    const good = replace();
    const paired = await machine.call('replace', good);
    assert.equal(paired.body.state, 'paired', JSON.stringify(paired.body));
    assert.equal(await stateOf(old.executor), 'revoked');
    assert.deepEqual((await machine.call('replace', good)).body, paired.body);
    assert.equal(await stateOf(paired.body.paired.executor), 'pending_pairing');
  });

  it('N-078 five codes, ten look-ups and 120 calls pass and the next does not; without its counter nothing passes', async () => {
    for (let index = 0; index < 5; index += 1) {
      assert.equal((await new PairingMachine(plane.origin, plane.clock).start()).status, 200, `code ${index + 1}`);
    }
    assert.equal((await machine.start()).status, 429);
    for (let index = 0; index < 10; index += 1) {
      const wrong = await plane.owner.post('/api/page/pairings/lookup', { code: '00000000' });
      assert.equal(wrong.body.code, 'PAIRING_UNKNOWN', `look-up ${index + 1}`);
    }
    assert.equal((await plane.owner.post('/api/page/pairings/lookup', { code: '00000000' })).status, 429);
    for (let index = 6; index < 120; index += 1) await machine.poll(newId('pair'));
    assert.equal((await machine.poll(newId('pair'))).status, 429);
    plane.clock.offsetMs += 601_000;
    await plane.context.store.write((tx) => tx.schema.dropTable('limits').execute());
    assert.equal((await machine.start()).status, 503);
    assert.equal((await plane.owner.post('/api/page/pairings/lookup', { code: '00000000' })).status, 503);
  });

  describe('N-060 both sides', () => {
    it('a person claims only for a scope, team and project that they are entitled to', async () => {
      const guest = await plane.invite('guest');
      const { code, pairing } = (await machine.start()).body;
      await guest.post('/api/page/pairings/lookup', { code });
      const { project } = plane.account;
      for (const [more, answer] of [
        [{ scope: 'organization' }, 'SCOPE_NOT_ENTITLED'],
        [{ scope: 'project', project }, 'SCOPE_NOT_ENTITLED'],
        [{ scope: 'project', project: null }, 'SCOPE_INVALID'],
        [{ scope: 'private', project }, 'SCOPE_INVALID'],
        [{ scope: 'private', team: newId('team') }, 'SCOPE_NOT_ENTITLED'],
        [{ scope: 'everybody' }, 'REQUEST_INVALID'],
        [{ scope: undefined }, 'REQUEST_INVALID'],
        [{ scope: ['private', 'project'] }, 'REQUEST_INVALID'],
      ] as const) {
        const claim = await guest.post(`/api/page/pairings/${pairing}/claim`, claimBody(more));
        assert.equal(claim.body.code, answer, JSON.stringify(more));
      }
      assert.equal((await guest.post(`/api/page/pairings/${pairing}/claim`, claimBody())).status, 200);
    });

    it('a person alone, or a machine alone, pairs nothing, with digits and with a challenge', async () => {
      const all = () => plane.context.store.read.selectFrom('executors').select(['id', 'state']).execute();
      const { pairing, code } = (await machine.start()).body;
      const nobody = await machine.confirm(pairing, Buffer.alloc(32));
      assert.notEqual(nobody.status, 200, 'a machine whose person was never there');
      assert.deepEqual(await all(), []);
      await plane.owner.post('/api/page/pairings/lookup', { code });
      const { executor } = (await plane.owner.post(`/api/page/pairings/${pairing}/claim`, claimBody())).body;
      assert.deepEqual(
        await all(),
        [{ id: executor, state: 'pending_pairing' }],
        'a person whose machine said nothing',
      );
      await assert.rejects(proveOnline(plane, executor), 'and no proof is taken from it');
      const { claim } = (await machine.poll(pairing)).body;
      const other = new PairingMachine(plane.origin, plane.clock);
      assert.notEqual((await other.confirm(pairing, digestOfClaim(claim))).status, 200, 'a machine of another key');
      assert.equal((await machine.confirm(pairing, digestOfClaim(claim))).body.state, 'paired');
      await proveOnline(plane, executor);
      assert.equal(await stateOf(executor), 'online');

      const wish = { label: 'rack', scope: 'organization', team: plane.account.team, project: null };
      const guest = await plane.invite('guest');
      assert.equal((await guest.post('/api/page/enrolments', wish)).body.code, 'SCOPE_NOT_ENTITLED');
      const issued = (await plane.owner.post('/api/page/enrolments', wish)).body;
      const confirm = (fingerprint: string) =>
        plane.owner.post(`/api/page/pairings/${issued.pairing}/confirm`, { fingerprint });
      assert.notEqual((await confirm('0'.repeat(64))).status, 200, 'a person before any machine');
      const enrolling = Object.assign(new PairingMachine(plane.origin, plane.clock), { requestId: issued.requestId });
      const body = enrolling.firstBody(Buffer.from(issued.challenge, 'base64url'));
      const enrolled = await enrolling.call('enrol', body);
      assert.equal((await enrolling.poll(enrolled.body.pairing)).body.state, 'waiting', 'a machine before any person');
      assert.equal(await stateOf(issued.executor), 'pending_pairing');
      assert.equal((await confirm(enrolling.fingerprint)).status, 200);
      assert.equal((await enrolling.poll(enrolled.body.pairing)).body.state, 'paired');
    });
  });
});
