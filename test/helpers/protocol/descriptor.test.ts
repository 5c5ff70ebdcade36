import assert from 'node:assert/strict';
import { canonicalBytes, descriptorSchema, parseDescriptor } from '../../../helpers/protocol/descriptor.ts';
import { machineDescriptor } from '../../fakes/fake-machine.ts';

const good = machineDescriptor();
const many = (count: number): string[] => Array.from({ length: count }, (_, index) => `file.list${index}`);

/** Fields of a descriptor: what each may be at its limits, and what it may not be one step further. */
const table: Readonly<Record<string, { readonly may: readonly unknown[]; readonly mayNot: readonly unknown[] }>> = {
  protocolVersion: { may: [1], mayNot: [0, 2, '1', null] },
  daemonVersion: { may: ['0.1.0', '10.20.30'], mayNot: ['1', '1.2', '1.2.3-x', '', 1] },
  revision: { may: [1, Number.MAX_SAFE_INTEGER], mayNot: [0, -1, 1.5, '1'] },
  profiles: {
    may: [['workspace'], ['workspace', 'guest']],
    mayNot: [[], ['workspace', 'guest', 'guest'], ['shell'], 'guest'],
  },
  platform: {
    may: [
      { architecture: 'arm64', system: 'linux', majorVersion: 6 },
      { architecture: 'x64', system: 'linux', majorVersion: 999 },
    ],
    mayNot: [
      { ...good.platform, architecture: 'arm' },
      { ...good.platform, system: 'plan9' },
      { ...good.platform, majorVersion: 0 },
      { ...good.platform, majorVersion: 1000 },
      { ...good.platform, hostname: 'desk' },
    ],
  },
  supervisor: { may: ['systemd', 'foreground'], mayNot: ['cron', '', null] },
  sandbox: {
    may: ['no-guest-support', 'kvm-absent', 'kvm-denied'].map((reason) => ({ backend: 'none', reason })),
    mayNot: [{ backend: 'none' }, { backend: 'none', reason: '/dev/kvm' }, { backend: 'docker' }, 'none'],
  },
  rootName: { may: ['a', 'x'.repeat(1024)], mayNot: ['', 'x'.repeat(1025), null] },
  operations: { may: [[], many(1), many(32)], mayNot: [many(33), ['x'.repeat(65)], 'file.list'] },
  catalogueDigest: { may: ['a'.repeat(64)], mayNot: ['a'.repeat(63), 'A'.repeat(64), 'g'.repeat(64)] },
  policyDigest: { may: ['0'.repeat(64)], mayNot: ['0'.repeat(65), '', null] },
  promotion: { may: ['page', 'machine'], mayNot: ['nobody', null] },
  difference: { may: ['page', 'machine'], mayNot: ['nobody', null] },
  limits: {
    may: [
      { resultBytes: 1, runtimeMs: 1000, concurrentCommands: 1 },
      { resultBytes: 400_000, runtimeMs: 300_000, concurrentCommands: 64 },
    ],
    mayNot: [
      { ...good.limits, resultBytes: 0 },
      { ...good.limits, resultBytes: 400_001 },
      { ...good.limits, runtimeMs: 999 },
      { ...good.limits, runtimeMs: 300_001 },
      { ...good.limits, concurrentCommands: 0 },
      { ...good.limits, concurrentCommands: 65 },
      { ...good.limits, memory: 1 },
    ],
  },
};

describe('a descriptor', () => {
  it('has the fields of a closed table, each within its limits and none beyond', () => {
    assert.deepEqual(Object.keys(descriptorSchema.shape).toSorted(), Object.keys(table).toSorted());
    const isTaken = (changed: object): boolean => {
      try {
        return canonicalBytes(parseDescriptor(canonicalBytes(changed))).equals(canonicalBytes(changed));
      } catch {
        // Refused, whatever for.
        return false;
      }
    };
    assert.ok(isTaken(good));
    for (const [field, { may, mayNot }] of Object.entries(table)) {
      for (const value of may) assert.ok(isTaken({ ...good, [field]: value }), `${field}: ${JSON.stringify(value)}`);
      for (const value of mayNot)
        assert.ok(!isTaken({ ...good, [field]: value }), `${field}: ${JSON.stringify(value)}`);
      const { [field as keyof typeof good]: _, ...without } = good;
      assert.ok(!isTaken(without), `without ${field}`);
    }
    assert.ok(!isTaken({ ...good, root: '/home' }), 'a field more');
  });
});
