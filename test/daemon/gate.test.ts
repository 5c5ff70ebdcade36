import assert from 'node:assert/strict';
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { checkCommand } from '../../daemon/gate.ts';
import { FENCE_JUMP_LIMIT } from '../../daemon/rules.ts';
import type { GateFacts, GateVerdict } from '../../daemon/gate.ts';
import { ControlClock } from '../../daemon/clock.ts';
import { defaultPolicy, policyDigest } from '../../daemon/config.ts';
import { LedgerMemory } from '../../daemon/ledger/memory.ts';
import { encode } from '../../helpers/protocol/codec.ts';
import {
  agentIdSchema,
  bindingIdSchema,
  commandIdSchema,
  executorIdSchema,
  personIdSchema,
  projectIdSchema,
  runIdSchema,
} from '../../helpers/protocol/ids.ts';
import { admitKey, sha256, signPayload, statementDigest } from '../../helpers/protocol/signed.ts';
import { encodeStatement, statements } from '../../helpers/protocol/statements.ts';
import type { CommandEnvelope, Statement } from '../../helpers/protocol/statements.ts';
import type { CommandFrame } from '../../server/protocol.ts';

const NOW = 1_800_000_000_000;
const id = (prefix: string) => `${prefix}_${randomBytes(16).toString('hex')}`;
const executor = executorIdSchema.parse(id('exr'));
const pair = generateKeyPairSync('ed25519');
const stranger = generateKeyPairSync('ed25519');
const commandKey = admitKey(pair.publicKey.export({ format: 'der', type: 'spki' }).subarray(12));
const policy = defaultPolicy();
const catalogueDigest = randomBytes(32);

function known(overrides: Partial<GateFacts> = {}): GateFacts {
  return {
    executor,
    commandKey,
    epoch: 3,
    confirmed: { revision: 2, policy, policyDigest: policyDigest(policy) },
    catalogueDigest,
    policy,
    isConfirmedHere: () => false,
    memory: new LedgerMemory(),
    anchored: true,
    now: NOW,
    ...overrides,
  };
}

interface Lie {
  readonly envelope?: Partial<CommandEnvelope>;
  readonly leased?: Partial<Statement<'control.leased'>>;
  readonly arguments?: unknown;
  readonly content?: Uint8Array;
  /** Bytes that travel in place of those that were signed. */
  readonly sent?: Partial<CommandFrame>;
  readonly key?: KeyObject;
}

function frame(lie: Lie = {}): CommandFrame {
  const input = encode(lie.arguments ?? { path: 'a.txt' });
  const content = lie.content ?? new Uint8Array(0);
  const envelope: CommandEnvelope = {
    guard: 1,
    protocolVersion: 1,
    executor,
    command: commandIdSchema.parse(id('cmd')),
    run: runIdSchema.parse(id('run')),
    origin: {
      person: personIdSchema.parse(id('per')),
      agent: agentIdSchema.parse(id('agt')),
      conversation: 'conversation',
      project: projectIdSchema.parse(id('prj')),
    },
    binding: bindingIdSchema.parse(id('bnd')),
    fence: 5,
    epoch: 3,
    capabilityRevision: 2,
    catalogueDigest,
    policyDigest: policyDigest(policy),
    operation: 'file.read',
    mode: 'foreground',
    maximumRuntimeMs: 20_000,
    notBefore: NOW - 5000,
    expiresAt: NOW + 25_000,
    idempotencyKey: id('key'),
    argumentsDigest: sha256(input),
    contentDigest: sha256(content),
    ...lie.envelope,
  };
  const key = lie.key ?? pair.privateKey;
  const payload = encodeStatement('control.command', envelope);
  const leased = encodeStatement('control.leased', {
    guard: 2,
    at: NOW,
    executor: envelope.executor,
    command: envelope.command,
    epoch: envelope.epoch,
    envelopeDigest: statementDigest('control.command', payload),
    ...lie.leased,
  });
  return {
    envelope: signPayload(key, 'control.command', payload),
    leased: signPayload(key, 'control.leased', leased),
    arguments: input,
    content,
    ...lie.sent,
  };
}

function codeOf(verdict: GateVerdict): string {
  if (verdict.permitted) return 'permitted';
  return verdict.gate === 'repeat' ? 'repeat' : verdict.code;
}

/** Records a command as the ledger would. */
function remembering(accepted: CommandFrame): LedgerMemory {
  const memory = new LedgerMemory();
  const verdict = checkCommand(accepted, known({ memory }));
  if (!verdict.permitted) throw new Error(`expected a permitted command, got ${codeOf(verdict)}`);
  const receipt = { payload: new Uint8Array(1), signature: new Uint8Array(64) };
  memory.apply({ kind: 'accepted', at: NOW, facts: verdict.command.facts, receipt }, 1, new Uint8Array(32));
  return memory;
}

describe("the machine's gate", () => {
  it('permits a command whose every field is true, with its arguments parsed and defaults filled in', () => {
    const verdict = checkCommand(frame(), known());
    assert.equal(codeOf(verdict), 'permitted');
    assert.ok(verdict.permitted);
    assert.deepEqual(verdict.command.arguments, { path: 'a.txt', offset: 0, maxBytes: 4096 });
  });

  const lies: readonly (readonly [string, Lie, string])[] = [
    ['another protocol version', { envelope: { protocolVersion: 2 } }, 'PROTOCOL_VERSION_UNSUPPORTED'],
    ['another executor', { envelope: { executor: executorIdSchema.parse(id('exr')) } }, 'EXECUTOR_MISMATCH'],
    ['an older connection', { envelope: { epoch: 2 } }, 'EPOCH_STALE'],
    ['a connection that is not there yet', { envelope: { epoch: 4 } }, 'EPOCH_STALE'],
    ['an older descriptor', { envelope: { capabilityRevision: 1 } }, 'DESCRIPTOR_STALE'],
    ['another catalogue', { envelope: { catalogueDigest: randomBytes(32) } }, 'CATALOGUE_MISMATCH'],
    ['another policy', { envelope: { policyDigest: randomBytes(32) } }, 'POLICY_STALE'],
    ['background work', { envelope: { mode: 'background' } }, 'MODE_UNSUPPORTED'],
    ['more time than the owner gives', { envelope: { maximumRuntimeMs: 30_001 } }, 'RUNTIME_EXCEEDED'],
    ['a command of the future', { envelope: { notBefore: NOW + 1 } }, 'COMMAND_NOT_YET_VALID'],
    ['a command that expired', { envelope: { expiresAt: NOW } }, 'COMMAND_EXPIRED'],
    ['a fence far ahead', { envelope: { fence: FENCE_JUMP_LIMIT + 1 } }, 'FENCE_STALE'],
    ['an operation that does not exist', { envelope: { operation: 'file.exec' } }, 'OPERATION_UNKNOWN'],
    ['an operation that is only named', { envelope: { operation: 'command.run' } }, 'OPERATION_NOT_IMPLEMENTED'],
    ['an agent asking for a promotion', { envelope: { operation: 'workspace.promote' } }, 'OPERATION_CALLER_INVALID'],
    ['arguments with an unknown key', { arguments: { path: 'a', shell: true } }, 'ARGUMENTS_INVALID'],
    ['arguments past their limit', { arguments: { path: 'a', maxBytes: 262_145 } }, 'ARGUMENTS_INVALID'],
    ['other arguments than were signed', { sent: { arguments: encode({ path: 'b.txt' }) } }, 'COMMAND_DIGEST_INVALID'],
    ['other content than was signed', { sent: { content: Buffer.from('x') } }, 'CONTENT_DIGEST_INVALID'],
    ['a lease of another command', { leased: { command: commandIdSchema.parse(id('cmd')) } }, 'LEASE_INVALID'],
    ['a lease over another envelope', { leased: { envelopeDigest: randomBytes(32) } }, 'LEASE_INVALID'],
    ['a lease of another connection', { leased: { epoch: 2 } }, 'LEASE_INVALID'],
    ['an envelope of another key', { key: stranger.privateKey }, 'SIGNATURE_INVALID'],
  ];
  for (const [sentence, lie, code] of lies) {
    it(`refuses ${sentence}: ${code}`, () => assert.equal(codeOf(checkCommand(frame(lie), known())), code));
  }

  it('refuses an envelope with any bit of payload or signature changed, before it is parsed', () => {
    const { envelope } = frame();
    for (const part of ['payload', 'signature'] as const) {
      for (let at = 0; at < envelope[part].length; at += 5) {
        const bytes = Uint8Array.from(envelope[part]);
        bytes[at] = (bytes[at] ?? 0) ^ 1;
        const altered = { ...envelope, [part]: bytes };
        assert.equal(codeOf(checkCommand({ ...frame(), envelope: altered }, known())), 'SIGNATURE_INVALID');
      }
    }
  });

  it('N-108 refuses each of the eight facts that a frame binds under its own code when it is another one', () => {
    const first = frame();
    const verdict = checkCommand(first, known());
    assert.ok(verdict.permitted);
    const { envelope } = verdict.command;
    const { run, origin, binding, fence } = envelope;
    const memory = remembering(first);
    const codes = new Map<string, string>();
    const other: Readonly<Record<string, Lie>> = {
      'command id': { envelope: { command: envelope.command } },
      'origin of the run': { envelope: { origin: { ...origin, person: personIdSchema.parse(id('per')) } } },
      'binding fence': { envelope: { fence: fence + 1 } },
      'capability revision': { envelope: { capabilityRevision: envelope.capabilityRevision + 1 } },
      expiry: { envelope: { expiresAt: NOW - 1 } },
      'idempotency key': { envelope: { idempotencyKey: envelope.idempotencyKey } },
      'digest of arguments': { sent: { arguments: encode({ path: 'b.txt' }) } },
      'digest of content': { sent: { content: Buffer.from('x') } },
    };
    const same = { run, origin, binding, fence };
    assert.equal(codeOf(checkCommand(frame({ envelope: same }), known({ memory }))), 'permitted');
    for (const [fact, lie] of Object.entries(other)) {
      const flipped = frame({ ...lie, envelope: { ...same, ...lie.envelope } });
      codes.set(fact, codeOf(checkCommand(flipped, known({ memory }))));
    }
    assert.deepEqual(Object.fromEntries(codes), {
      'command id': 'COMMAND_ID_REUSED',
      'origin of the run': 'COMMAND_ORIGIN_INVALID',
      'binding fence': 'FENCE_STALE',
      'capability revision': 'DESCRIPTOR_STALE',
      expiry: 'COMMAND_EXPIRED',
      'idempotency key': 'IDEMPOTENCY_CONFLICT',
      'digest of arguments': 'COMMAND_DIGEST_INVALID',
      'digest of content': 'CONTENT_DIGEST_INVALID',
    });
  });

  it('N-109 refuses a mismatch and an expired command, and a wall clock that is set back opens no window', () => {
    const accepted = frame();
    const verdict = checkCommand(accepted, known());
    assert.ok(verdict.permitted);
    const { envelope } = verdict.command;
    const memory = remembering(accepted);
    const foreign = { run: envelope.run, binding: bindingIdSchema.parse(id('bnd')), fence: 9 };
    const cases: readonly (readonly [string, Lie, string])[] = [
      ['arguments', { sent: { arguments: encode({ path: 'b.txt' }) } }, 'COMMAND_DIGEST_INVALID'],
      ['run', { envelope: foreign }, 'COMMAND_ORIGIN_INVALID'],
      ['executor', { envelope: { executor: executorIdSchema.parse(id('exr')) } }, 'EXECUTOR_MISMATCH'],
    ];
    for (const [what, lie, code] of cases)
      assert.equal(codeOf(checkCommand(frame(lie), known({ memory }))), code, what);
    const at = { wall: NOW, running: 1000, boot: 1000 };
    const clock = new ControlClock({ wall: () => at.wall, running: () => at.running, boot: () => at.boot }, NOW - 1);
    const late = frame({ envelope: { expiresAt: NOW + 25_000 } });
    const codeNow = () => codeOf(checkCommand(late, known({ now: clock.now(), anchored: clock.isAnchored })));
    clock.anchor(NOW);
    assert.equal(codeNow(), 'permitted');
    at.running += 25_000;
    at.boot += 25_000;
    for (const wall of [NOW + 25_000, NOW, NOW - 86_400_000, 0]) {
      at.wall = wall;
      assert.equal(codeNow(), 'COMMAND_EXPIRED', `wall clock at ${wall}`);
    }
    const restarted = new ControlClock({ wall: () => 0, running: () => 0, boot: () => 0 }, NOW + 25_000);
    const afterRestart = known({ now: restarted.now(), anchored: true });
    assert.equal(
      codeOf(checkCommand(late, afterRestart)),
      'COMMAND_EXPIRED',
      'a restart with the clock at its beginning',
    );
  });

  it('refuses signed arguments that are not msgpack', () => {
    const garbage = Buffer.from([0xc1, 0xff, 0x00]);
    const lie = frame({ envelope: { argumentsDigest: sha256(garbage) }, sent: { arguments: garbage } });
    assert.equal(codeOf(checkCommand(lie, known())), 'ARGUMENTS_INVALID');
  });

  it('refuses signed bytes that are no envelope', () => {
    const nonsense = signPayload(pair.privateKey, 'control.command', Buffer.from('not msgpack of an envelope'));
    assert.equal(codeOf(checkCommand({ ...frame(), envelope: nonsense }, known())), 'ENVELOPE_INVALID');
  });

  it('refuses a statement that was signed for another purpose', () => {
    const { envelope } = frame();
    const forAnother = signPayload(pair.privateKey, 'control.leased', envelope.payload);
    assert.equal(codeOf(checkCommand({ ...frame(), envelope: forAnother }, known())), 'SIGNATURE_INVALID');
  });

  describe('against what the ledger remembers', () => {
    const first = frame();
    const facts = (() => {
      const verdict = checkCommand(first, known());
      if (!verdict.permitted) throw new Error('expected a permitted command');
      return verdict.command;
    })();
    const { envelope } = facts;
    const same = { run: envelope.run, origin: envelope.origin, binding: envelope.binding, fence: envelope.fence };
    const again = (lie: Partial<CommandEnvelope>) => {
      return codeOf(checkCommand(frame({ envelope: { ...same, ...lie } }), known({ memory: remembering(first) })));
    };

    it('answers the same envelope from the ledger', () => {
      assert.equal(codeOf(checkCommand(first, known({ memory: remembering(first) }))), 'repeat');
    });
    it('permits another command of the same run and binding', () => assert.equal(again({}), 'permitted'));
    it('refuses a run that suddenly acts for somebody else', () => {
      const origin = { ...envelope.origin, person: personIdSchema.parse(id('per')) };
      assert.equal(again({ origin }), 'COMMAND_ORIGIN_INVALID');
    });
    it('refuses a run that suddenly has another agent, and takes what its person asks alone', () => {
      const origin = { ...envelope.origin, agent: agentIdSchema.parse(id('agt')) };
      assert.equal(again({ origin }), 'COMMAND_ORIGIN_INVALID');
      const { agent: _, ...person } = envelope.origin;
      const binding = bindingIdSchema.parse(id('bnd'));
      const asked = { origin: person, binding, fence: 9, operation: 'workspace.promote' };
      assert.equal(again(asked), 'ARGUMENTS_INVALID');
    });
    it('refuses a binding for another operation', () => {
      assert.equal(again({ operation: 'file.list' }), 'BINDING_INVALID');
    });
    it('lets a refused command decide nothing: neither the binding of its run nor how high a fence may be', () => {
      const memory = remembering(first);
      const leap = memory.highFence + FENCE_JUMP_LIMIT + 1;
      const lies = [{ binding: bindingIdSchema.parse(id('bnd')) }, { run: runIdSchema.parse(id('run')), fence: leap }];
      for (const lie of lies) {
        const lying = frame({ envelope: { ...same, ...lie } });
        const verdict = checkCommand(lying, known({ memory }));
        assert.ok(!verdict.permitted && verdict.facts);
        const receipt = { payload: new Uint8Array(1), signature: new Uint8Array(64) };
        const refused = { kind: 'refused', at: NOW, facts: verdict.facts, code: codeOf(verdict), receipt } as const;
        memory.apply(refused, 2, new Uint8Array(32));
      }
      const { binding: _, ...other } = same;
      const fence = leap;
      const leaping = frame({ envelope: { ...other, run: runIdSchema.parse(id('run')), fence } });
      assert.equal(codeOf(checkCommand(leaping, known({ memory }))), 'FENCE_STALE');
      assert.equal(codeOf(checkCommand(frame({ envelope: same }), known({ memory }))), 'permitted');
    });
    it('S-202 refuses a command in which any one field is another, each under its own code', () => {
      // The organisation is none of them: an executor belongs to one. The guard is the key's own counter and says nothing of a command.
      const flips: { [Field in Exclude<keyof CommandEnvelope, 'guard'>]: [CommandEnvelope[Field], string] } = {
        protocolVersion: [2, 'PROTOCOL_VERSION_UNSUPPORTED'],
        executor: [executorIdSchema.parse(id('exr')), 'EXECUTOR_MISMATCH'],
        command: [envelope.command, 'COMMAND_ID_REUSED'],
        run: [runIdSchema.parse(id('run')), 'COMMAND_RUN_INVALID'],
        origin: [{ ...envelope.origin, conversation: 'another' }, 'COMMAND_ORIGIN_INVALID'],
        binding: [bindingIdSchema.parse(id('bnd')), 'BINDING_INVALID'],
        fence: [envelope.fence + 1, 'FENCE_STALE'],
        epoch: [envelope.epoch + 1, 'EPOCH_STALE'],
        capabilityRevision: [envelope.capabilityRevision + 1, 'DESCRIPTOR_STALE'],
        catalogueDigest: [randomBytes(32), 'CATALOGUE_MISMATCH'],
        policyDigest: [randomBytes(32), 'POLICY_STALE'],
        operation: ['file.exec', 'OPERATION_UNKNOWN'],
        mode: ['background', 'MODE_UNSUPPORTED'],
        maximumRuntimeMs: [policy.limits.runtimeMs + 1, 'RUNTIME_EXCEEDED'],
        notBefore: [NOW + 1, 'COMMAND_NOT_YET_VALID'],
        expiresAt: [NOW, 'COMMAND_EXPIRED'],
        idempotencyKey: [envelope.idempotencyKey, 'IDEMPOTENCY_CONFLICT'],
        argumentsDigest: [randomBytes(32), 'COMMAND_DIGEST_INVALID'],
        contentDigest: [randomBytes(32), 'CONTENT_DIGEST_INVALID'],
      };
      assert.equal(again({}), 'permitted');
      const fields = Object.keys(statements['control.command'].shape).filter((field) => field !== 'guard');
      assert.deepEqual(Object.keys(flips).toSorted(), fields.toSorted());
      for (const [field, [value, code]] of Object.entries(flips)) assert.equal(again({ [field]: value }), code, field);
      assert.equal(new Set(Object.values(flips).map(([, code]) => code)).size, fields.length);
    });
    it('refuses a lower and a higher fence for the same binding', () => {
      assert.equal(again({ fence: envelope.fence - 1 }), 'FENCE_STALE');
      assert.equal(again({ fence: envelope.fence + 1 }), 'FENCE_STALE');
    });
  });

  describe("against the owner's policy", () => {
    const denying = { ...policy, operations: { ...policy.operations, deny: ['file.read'] } };

    it('refuses what the owner denies now, although a person confirmed it', () => {
      assert.equal(codeOf(checkCommand(frame(), known({ policy: denying }))), 'LOCAL_POLICY_DENIED');
    });
    it('refuses what was not confirmed, although the owner permits it now', () => {
      const confirmed = { revision: 2, policy: denying, policyDigest: policyDigest(policy) };
      assert.equal(codeOf(checkCommand(frame(), known({ confirmed }))), 'LOCAL_POLICY_DENIED');
    });
    it('permits nothing while the policy file is unreadable or invalid', () => {
      assert.equal(codeOf(checkCommand(frame(), known({ policy: undefined }))), 'LOCAL_POLICY_DENIED');
    });
    it('permits nothing before a person confirmed a descriptor', () => {
      assert.equal(codeOf(checkCommand(frame(), known({ confirmed: undefined }))), 'DESCRIPTOR_STALE');
    });
    describe('that a person at the machine confirms promotions', () => {
      const machine = { ...policy, promotion: { confirm: 'machine', why: '' } } as const;
      const run = runIdSchema.parse(id('run'));
      const manifestDigest = 'ab'.repeat(32);
      const { person, conversation, project } = {
        person: personIdSchema.parse(id('per')),
        conversation: 'conversation',
        project: projectIdSchema.parse(id('prj')),
      };
      const promotion = frame({
        envelope: { operation: 'workspace.promote', run, origin: { person, conversation, project } },
        arguments: { approvalDigest: 'cd'.repeat(32), manifestDigest, promotionId: id('prm') },
      });
      const isConfirmedHere = (ofRun: string, digest: string) => ofRun === run && digest === manifestDigest;

      it('takes a promotion that the page approved where neither policy asks for more', () => {
        assert.equal(codeOf(checkCommand(promotion, known())), 'permitted');
      });
      it('refuses it at once where the policy of this moment asks for more and nobody confirmed, and takes it where one did', () => {
        assert.equal(codeOf(checkCommand(promotion, known({ policy: machine }))), 'PROMOTION_CONFIRMATION_REQUIRED');
        assert.equal(codeOf(checkCommand(promotion, known({ policy: machine, isConfirmedHere }))), 'permitted');
      });
      it('refuses it where the confirmed policy asks for more, until a person confirmed the wider one', () => {
        const confirmed = { revision: 2, policy: machine, policyDigest: policyDigest(policy) };
        assert.equal(codeOf(checkCommand(promotion, known({ confirmed }))), 'PROMOTION_CONFIRMATION_REQUIRED');
        assert.equal(codeOf(checkCommand(promotion, known({ confirmed, isConfirmedHere }))), 'permitted');
      });
      it('asks nothing of other operations', () => {
        assert.equal(codeOf(checkCommand(frame(), known({ policy: machine }))), 'permitted');
      });
    });
    it('lets deny beat allow', () => {
      const both = { ...policy, operations: { allow: ['file.read'], deny: ['file.read'], why: '' } };
      assert.equal(codeOf(checkCommand(frame(), known({ policy: both }))), 'LOCAL_POLICY_DENIED');
    });
  });
});
