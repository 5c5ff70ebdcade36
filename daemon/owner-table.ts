/*
 * Answers to the owner's command line, each from a probe of this moment.
 */
import type { Core } from './core.ts';
import { OwnerRefused } from './owner.ts';
import type { OwnerTable } from './owner.ts';
import type { Home } from './home.ts';
import { policyDigest } from './config.ts';
import type { DaemonStatus } from './protocol.ts';
import type { TraceLog } from './trace.ts';
import { LedgerDamaged } from './ledger/segment.ts';
import { rotateKey } from './rotate.ts';

const ASK_MS = 30_000;

/** The table of owner.ts for one daemon. */
export function ownerTable(core: Core, home: Home, trace: TraceLog): OwnerTable {
  return {
    'daemon.status': async () => status(core, home, await publicKeyOf(core)),
    'daemon.pair': (body) => home.pair(body),
    'daemon.pairing': () => Promise.resolve(home.pairingState()),
    'daemon.pair-answer': ({ answer, claimDigest }) => home.answer(answer, claimDigest),
    'daemon.pair-cancel': () => Promise.resolve(home.cancel()),
    'daemon.drafts': async () => {
      const { drafts } = await core.workspace.client.request('workspace.drafts', {}, { withinMs: ASK_MS });
      return { drafts };
    },
    'daemon.discard': ({ run }) => core.workspace.client.request('workspace.discard', { run }, { withinMs: ASK_MS }),
    'daemon.difference': ({ run, change }) =>
      core.workspace.client.request(
        'workspace.difference',
        { run, change, ignore: [...(core.standing.policy?.ignore.patterns ?? [])] },
        { withinMs: ASK_MS },
      ),
    'daemon.history': () => core.promotions.history(),
    'daemon.file-system': () => core.promotions.fileSystem(),
    'daemon.undo-plan': (body) => core.promotions.undoPlan(body),
    'daemon.undo': ({ promotion }) => core.promotions.undo(promotion),
    'daemon.root': async () => {
      const { rootName, rootIdentity } = await core.root();
      return { rootName, rootIdentity };
    },
    'daemon.rotate-key': () => rotateKey(core, home),
    'daemon.commands': ({ limit }) => Promise.resolve({ commands: commands(core, limit) }),
    'daemon.trace': ({ after, limit }) => Promise.resolve(trace.lines(after, limit)),
    'daemon.repair': ({ journal }) => repair(core, home, journal),
    'daemon.forget': () => forget(core),
    // The daemon ends once this answer has left: main.ts sees to it.
    'daemon.stop': () => Promise.resolve({}),
  };
}

/** The machine's public key as key-store states it now; null where it has none or does not answer. */
async function publicKeyOf(core: Core): Promise<string | null> {
  try {
    const stored = await core.keyStore.client.request('keystore.status', {}, { withinMs: 1000 });
    return stored.state === 'empty' ? null : Buffer.from(stored.publicKey).toString('hex');
  } catch {
    // `rows` says whether key-store is there; status answers all the same.
    return null;
  }
}

function status(core: Core, home: Home, publicKey: string | null): DaemonStatus {
  const { standing, records } = core;
  const { paired } = records.data;
  const snapshot = home.executor?.actor.getSnapshot();
  return {
    state: stateOf(home, snapshot?.value),
    executor: paired?.executor ?? null,
    label: paired?.claim.label ?? null,
    rootName: rootNameOf(core),
    fingerprint: paired?.fingerprint ?? records.data.joining?.fingerprint ?? null,
    commandKeyFingerprint: paired ? standing.commandKey.fingerprint : null,
    publicKey,
    commandKey: paired?.commandKey ?? null,
    fault: snapshot?.context.fault ?? null,
    standing: home.executor?.heard.standing ?? 'unknown',
    epoch: snapshot?.context.epoch ?? 0,
    lastControlAt: home.executor?.heard.at ?? null,
    revision: { stated: standing.stated?.revision ?? 0, confirmed: records.data.confirmedRevision },
    policy: policyState(core),
    ledger: ledgerState(core),
    running: (snapshot?.context.held ?? []).slice(0, 64).flatMap((command) => runningOf(core, command)),
    rows: [core.link, core.keyStore, core.workspace].map((peer) => ({
      row: peer.row,
      connected: peer.isConnected,
      restarts: peer.restarts,
    })),
  };
}

const STATES = ['recovering', 'connecting', 'online', 'fenced', 'draining', 'stopping', 'error'] as const;

function stateOf(home: Home, value: unknown): DaemonStatus['state'] {
  if (!home.executor) return home.isPairing ? 'pairing' : 'unpaired';
  const name = typeof value === 'string' ? value : Object.keys(value ?? {})[0];
  return STATES.find((known) => known === name) ?? 'stopping';
}

function rootNameOf(core: Core): string | null {
  const { stated } = core.standing;
  if (!stated) return null;
  // The daemon wrote these bytes itself from a descriptor that its schema passed.
  const { rootName } = JSON.parse(Buffer.from(stated.descriptor, 'base64').toString('utf8')) as { rootName: string };
  return rootName;
}

function policyState(core: Core): DaemonStatus['policy'] {
  const { reading, confirmed } = core.standing;
  if (reading.state === 'invalid') return { state: 'invalid', message: reading.message };
  const digest = policyDigest(reading.policy).toString('hex');
  if (confirmed?.policyDigest === digest) return { state: 'in-force', digest };
  return { state: 'waiting', digest, confirmedDigest: confirmed?.policyDigest ?? null };
}

function ledgerState(core: Core): DaemonStatus['ledger'] {
  try {
    const { damage, standing } = core.ledger;
    return damage ? { state: 'damaged', code: damage.code } : { state: 'whole', count: standing.count };
  } catch (error) {
    // Before pairing there is no ledger yet, which is whole in its way.
    const code = error instanceof LedgerDamaged ? error.code : 'LEDGER_UNWRITABLE';
    return core.standing.paired ? { state: 'damaged', code } : { state: 'whole', count: 0 };
  }
}

function runningOf(core: Core, id: string): DaemonStatus['running'] {
  const command = [...core.ledger.memory.commands.values()].find(({ facts }) => facts.command === id);
  return command
    ? [
        {
          command: command.facts.command,
          run: command.facts.run,
          operation: command.facts.operation,
          phase: command.phase,
        },
      ]
    : [];
}

function commands(core: Core, limit: number) {
  const known = [...core.ledger.memory.commands.values()].toReversed().slice(0, limit);
  return known.map(({ facts, phase, ended }) => ({
    command: facts.command,
    run: facts.run,
    operation: facts.operation,
    phase,
    outcome: ended?.outcome ?? null,
    code: ended?.code ?? null,
  }));
}

async function repair(core: Core, home: Home, journal: 'leave' | 'restore' | 'set-aside') {
  const actor = home.executor?.actor;
  const isIn = (state: 'error' | { readonly recovering: 'settling' | 'postponed' }): boolean =>
    actor?.getSnapshot().matches(state) === true;
  const isError = isIn('error');
  const isUnsettled =
    isIn({ recovering: 'settling' }) || isIn({ recovering: 'postponed' }) || core.promotions.needsPerson;
  if (!actor || !(isError || isUnsettled))
    throw new OwnerRefused('NOT_IN_ERROR', 'The daemon is not in its error state; there is nothing to repair.');
  const settled = journal === 'leave' ? [] : (await core.promotions.repair(journal)).kept.slice(0, 100);
  // The control plane hears of the way out of `error` alone.
  if (isError) core.standing.keepRepair();
  if (isIn('error') || isIn({ recovering: 'postponed' })) actor.send({ type: 'daemon.repaired' });
  return { state: stateOf(home, actor.getSnapshot().value), settled };
}

async function forget(core: Core): Promise<Record<string, never>> {
  await core.keyStore.client.request('keystore.erase', {}, { withinMs: ASK_MS });
  core.records.change({ paired: null, joining: null, revisions: [], confirmedRevision: 0 });
  return {};
}
