/*
 * The running tree as the kernel shows it, held against the table. The supervisor is found by the lock of the state folder,
 * its rows as its children; what a record of launch says is believed only for a process of the same pid and start time.
 */
import fs from 'node:fs';
import path from 'node:path';

import { TABLE } from '../table.ts';
import { circumstancesOf } from './circumstances.ts';
import { compareProcess, compareSupervisor } from './compare.ts';
import type { Configuration } from './configuration.ts';
import { forbiddenFolders } from './forbidden-folders.ts';
import type { Installation } from './installation.ts';
import {
  argumentsOf,
  childrenOf,
  descriptorsOf,
  environmentOf,
  lockHolder,
  namespacesOf,
  socketsSeenBy,
  startTicksOf,
  threadsOf,
  type DescriptorView,
  type SocketView,
  type ThreadView,
} from './kernel-view.ts';
import type { LaunchRecord } from './launch-plan.ts';
import { recordOf } from './records.ts';
import { render, type Confinement } from './platform/linux.ts';
import type { Confined, RowName } from './privileges.ts';

/** One running process. `differences` are sentences; empty means that it is as the table says. */
export type ProcessView = {
  readonly row: RowName | undefined;
  readonly slot: number;
  readonly landlockAbi: number | undefined;
  readonly pid: number;
  readonly threads: readonly ThreadView[];
  readonly descriptors: readonly DescriptorView[];
  readonly environment: readonly string[];
  readonly sockets: readonly SocketView[];
  /** Digest of the rules that launch recorded, and the one that the table gives now; undefined for the supervisor. */
  readonly digests: { readonly recorded: string; readonly expected: string } | undefined;
  readonly differences: readonly string[];
};

/** The whole tree; `landlockAbi` is the kernel's as launch found it. */
export type Inspection = {
  readonly supervisor: number | undefined;
  readonly processes: readonly ProcessView[];
  readonly landlockAbi: number | undefined;
  readonly differences: readonly string[];
};

function socketsOf(pid: number, descriptors: readonly DescriptorView[]): SocketView[] {
  const seen = socketsSeenBy(pid);
  return descriptors
    .filter(({ kind }) => kind === 'socket')
    .map(({ target }) => {
      const inode = /\[(\d+)\]/.exec(target)?.[1] ?? '';
      return seen.get(inode) ?? { inode, family: 'other', isListening: false };
    });
}

type Seen = Omit<ProcessView, 'row' | 'slot' | 'landlockAbi' | 'digests' | 'differences'>;

function look(pid: number): Seen {
  const descriptors = descriptorsOf(pid);
  return {
    pid,
    threads: threadsOf(pid),
    descriptors,
    environment: environmentOf(pid),
    sockets: socketsOf(pid, descriptors),
  };
}

function expectedOf(
  declaration: Confined,
  record: LaunchRecord,
  installation: Installation,
  configuration: Configuration,
): Confinement {
  const environment = new Map(readValues(record.pid));
  const circumstances = circumstancesOf(
    {
      row: record.row,
      slot: record.slot,
      program: 'role',
      installation: installation.folder,
      origin: configuration.origin,
      loopback: environment.get('NESSIE_ALLOW_LOOPBACK_HTTP') === '1',
      forbiddenFolders: forbiddenFolders(configuration, installation),
    },
    record.landlockAbi,
    record.pid,
  );
  return render(declaration, circumstances);
}

function inspectRow(
  pid: number,
  supervisor: number,
  installation: Installation,
  configuration: Configuration,
): ProcessView {
  const seen = look(pid);
  const record = recordOf(path.join(configuration.stateDir, 'audit'), pid);
  const unknown = { ...seen, row: undefined, slot: 0, landlockAbi: undefined, digests: undefined };
  if (record === undefined || record.startTicks !== startTicksOf(pid)) {
    return { ...unknown, differences: ['no launch recorded this process'] };
  }
  const declaration = TABLE[record.row];
  if (!declaration.confined) return { ...unknown, differences: ['a row that is not confined was recorded'] };
  const { row, slot, landlockAbi } = record;
  const expected = expectedOf(declaration, record, installation, configuration);
  const differences = compareProcess(declaration, expected, configuration, seen, {
    slot,
    arguments: argumentsOf(pid),
    namespaces: namespacesOf(pid),
    expectedNamespaces: namespacesOf(supervisor),
    children: childrenOf(pid),
  });
  if (expected.digest !== record.digest) differences.push('launch recorded other rules than the table gives');
  return {
    ...seen,
    row,
    slot,
    landlockAbi,
    digests: { recorded: record.digest, expected: expected.digest },
    differences,
  };
}

function readValues(pid: number): [string, string][] {
  const entries = fs
    .readFileSync(`/proc/${pid}/environ`, 'utf8')
    .split('\0')
    .filter((entry) => entry !== '');
  return entries.map((entry) => [entry.slice(0, entry.indexOf('=')), entry.slice(entry.indexOf('=') + 1)]);
}

/** Inspects the tree of a state folder; with no executor running there are no processes, and that is no difference. */
export function inspectTree(installation: Installation, configuration: Configuration): Inspection {
  const supervisor = lockHolder(path.join(configuration.stateDir, 'lock'));
  if (supervisor === undefined) return { supervisor, processes: [], landlockAbi: undefined, differences: [] };
  const seen = look(supervisor);
  const own: ProcessView = {
    ...seen,
    row: 'supervisor',
    slot: 0,
    landlockAbi: undefined,
    digests: undefined,
    differences: TABLE.supervisor.confined ? [] : compareSupervisor(TABLE.supervisor, seen),
  };
  const rows = childrenOf(supervisor).map((pid) => inspectRow(pid, supervisor, installation, configuration));
  const missing = Object.values(TABLE)
    .filter(
      ({ row, confined, lifetime }) =>
        confined && lifetime === 'long-lived' && !rows.some((found) => found.row === row),
    )
    .map(({ row }) => `${row} does not run`);
  const processes = [own, ...rows];
  const differences = processes.flatMap(({ row, pid, differences: found }) =>
    found.map((text) => `${row ?? 'process'} ${pid}: ${text}`),
  );
  return { supervisor, processes, landlockAbi: rows[0]?.landlockAbi, differences: [...differences, ...missing] };
}
