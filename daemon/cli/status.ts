/*
 * `status`: every executor of this user, from its files and its daemon; no network.
 */
import fs from 'node:fs';
import os from 'node:os';
import { remedyOf } from '../../machines/daemon/faults.ts';
import type { DaemonStatus } from '../protocol.ts';
import { CliFailure } from './failure.ts';
import { askDaemon, isDaemonUp } from './owner-client.ts';
import type { Places } from './places.ts';
import { confirmedBy, promotionRule } from './promotion-rule.ts';
import type { PromotionRule } from './promotion-rule.ts';
import { readPin, readSetUp } from './set-up.ts';
import { grouped, say, sayJson, styled, visible } from './terminal.ts';
import type { Terminal } from './terminal.ts';

/** What `status` knows of one executor. */
export interface ExecutorFacts {
  readonly name: string;
  readonly executor: string | null;
  readonly origin: string | null;
  readonly root: string | null;
  /** Who confirms a promotion: the stricter of pin and policy; null before pairing. */
  readonly promotion: PromotionRule['inForce'] | null;
  /** What the two say differently, with the remedy; null where they agree. */
  readonly promotionDifference: string | null;
  readonly service: { readonly installed: boolean; readonly lingering: boolean | null };
  readonly process: 'running' | 'stopped' | 'silent';
  /** What its daemon says; null where none runs or it does not answer. */
  readonly daemon: DaemonStatus | null;
}

/** Prints all executors, or the one with this name or id. Rejects with CliFailure: refused where there is no such one. */
export async function status(
  terminal: Terminal,
  all: readonly Places[],
  wanted: string | undefined,
  isJson: boolean,
): Promise<void> {
  const facts = await Promise.all(all.map(factsOf));
  const shown =
    wanted === undefined ? facts : facts.filter(({ name, executor }) => name === wanted || executor === wanted);
  if (wanted !== undefined && shown.length === 0)
    throw new CliFailure('refused', 'there is no executor of that name or id here');
  if (isJson) return sayJson(terminal, { executors: shown });
  if (shown.length === 0) say(terminal, 'No executor is set up here. Pair this machine with `nessie-executor pair`.');
  for (const one of shown) print(terminal, one);
}

async function factsOf(places: Places): Promise<ExecutorFacts> {
  const setUp = readSetUp(places);
  const pin = readPin(places);
  const rule = promotionRule(places);
  const answer = await askStatus(places);
  return {
    name: places.name,
    executor: pin?.executor ?? null,
    origin: setUp?.origin ?? null,
    root: setUp?.root ?? null,
    promotion: rule?.inForce ?? null,
    promotionDifference: rule?.difference ? `${rule.difference.said}; ${rule.difference.remedy}` : null,
    service: { installed: isServiceInstalled(places.name), lingering: isLingering() },
    process: typeof answer === 'string' ? answer : 'running',
    daemon: typeof answer === 'string' ? null : answer,
  };
}

/** A daemon that is up answers in milliseconds; a status must not wait for one that hangs. */
const STATUS_MS = 3000;

async function askStatus({ stateDir }: Places): Promise<DaemonStatus | 'stopped' | 'silent'> {
  try {
    return await askDaemon(stateDir, 'daemon.status', {}, STATUS_MS);
  } catch (error) {
    if (!(error instanceof CliFailure) || error.ending !== 'unreachable') throw error;
    return (await isDaemonUp(stateDir)) ? 'silent' : 'stopped';
  }
}

function isServiceInstalled(name: string): boolean {
  const units = [
    `/etc/systemd/system/nessie-executor-${name}.service`,
    `${os.homedir()}/.config/systemd/user/nessie-executor-${name}.service`,
  ];
  return units.some((unit) => fs.existsSync(unit));
}

/** Whether the user's services live on after the session (loginctl(1)); null where no systemd runs. */
function isLingering(): boolean | null {
  if (!fs.existsSync('/run/systemd/system')) return null;
  return fs.existsSync(`/var/lib/systemd/linger/${os.userInfo().username}`);
}

const STATE_STYLES: ReadonlyMap<string, 'green' | 'red'> = new Map([
  ['online', 'green'],
  ['error', 'red'],
  ['fenced', 'red'],
]);

function print(terminal: Terminal, facts: ExecutorFacts): void {
  const { daemon } = facts;
  const state = daemon?.state ?? (facts.process === 'silent' ? 'does not answer' : 'stopped');
  const style = STATE_STYLES.get(state) ?? 'yellow';
  const label = typeof daemon?.label === 'string' ? `  ${visible(daemon.label)}` : '';
  say(
    terminal,
    `${styled(terminal, 'bold', facts.name)}  ${styled(terminal, style, state)}  ${facts.executor ?? 'not paired'}${label}`,
  );
  for (const [name, value] of [...setUpLines(facts), ...(daemon ? daemonLines(daemon) : [])])
    say(terminal, `  ${name.padEnd(14)}${value}`);
}

function setUpLines({ origin, root, promotion, promotionDifference, service }: ExecutorFacts): [string, string][] {
  const lingering = service.lingering === null ? 'no systemd' : `lingering ${service.lingering ? 'on' : 'off'}`;
  const lines: [string, string][] = [
    ['origin', origin ?? 'none'],
    ['root', root === null ? 'none' : visible(root)],
    ['promotion', promotion === null ? 'not paired' : `confirmed by ${confirmedBy(promotion)}`],
  ];
  if (promotionDifference !== null) lines.push(['', promotionDifference]);
  return [...lines, ['service', `${service.installed ? 'installed' : 'not installed'}, ${lingering}`]];
}

function daemonLines(daemon: DaemonStatus): [string, string][] {
  const { revision, rows, running } = daemon;
  const lines: [string, string][] = [
    ['machine key', daemon.fingerprint === null ? 'none' : grouped(daemon.fingerprint)],
    ['control key', daemon.commandKeyFingerprint === null ? 'none' : grouped(daemon.commandKeyFingerprint)],
    ['standing', `${daemon.standing}, epoch ${daemon.epoch}, ${lastControl(daemon.lastControlAt)}`],
    ['revision', `${revision.stated} stated, ${revision.confirmed} confirmed`],
    ['policy', policyLine(daemon.policy)],
    [
      'ledger',
      daemon.ledger.state === 'whole' ? `whole, ${daemon.ledger.count} records` : `damaged (${daemon.ledger.code})`,
    ],
    [
      'rows',
      rows
        .map(
          ({ row, connected, restarts }) =>
            `${row} ${connected ? 'up' : 'down'}${restarts > 0 ? ` (${restarts} restarts)` : ''}`,
        )
        .join(', '),
    ],
  ];
  if (daemon.fault !== null) lines.unshift(['fault', `${daemon.fault}; ${remedyOf(daemon.fault)}`]);
  for (const { command, operation, phase } of running) lines.push(['running', `${operation} ${phase} ${command}`]);
  return lines;
}

function policyLine(policy: DaemonStatus['policy']): string {
  if (policy.state === 'in-force') return `in force, ${policy.digest.slice(0, 16)}`;
  if (policy.state === 'invalid') return `invalid: ${policy.message}`;
  return `${policy.digest.slice(0, 16)} waits for a person on the control plane`;
}

function lastControl(at: number | null): string {
  return at === null
    ? 'the control plane has not answered yet'
    : `answered ${Math.max(0, Math.round((Date.now() - at) / 1000))} s ago`;
}
