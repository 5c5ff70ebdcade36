/*
 * `policy`: shows, checks and changes what this machine is willing to do. A running daemon reads the file at once.
 */
import fs from 'node:fs';
import path from 'node:path';
import { findOperation, isUnimplemented, operations } from '../../helpers/protocol/operations.ts';
import { PolicyInvalid, policyDigest, widens } from '../config.ts';
import { permits } from '../../helpers/protocol/policy.ts';
import type { Policy } from '../../helpers/protocol/policy.ts';
import { CliFailure } from './failure.ts';
import { askDaemon, isDaemonUp } from './owner-client.ts';
import type { Places } from './places.ts';
import { confirmedBy, promotionRule } from './promotion-rule.ts';
import { chooseRoot } from './root-choice.ts';
import { isPaired, readPolicy, requireSetUp, rewritePin, writeConfiguration, writePolicy } from './set-up.ts';
import { installationFolder, withDaemon } from './supervised.ts';
import { counted, columns, say, sayJson, styled } from './terminal.ts';
import type { Terminal } from './terminal.ts';

/** Prints the policy: every key of the operation list with its verdict, and the other sections. */
export function showPolicy(terminal: Terminal, places: Places, isJson: boolean): void {
  const policy = checkedPolicy(places);
  if (isJson) return sayJson(terminal, { digest: policyDigest(policy).toString('hex'), policy });
  const verdict = (key: string): string =>
    permits(policy, key) ? 'allow' : policy.operations.deny.includes(key) ? 'deny' : 'not allowed';
  const rows = operations.map(({ key, caller, description }) => [verdict(key), key, caller, description]);
  for (const line of columns(rows)) say(terminal, line.startsWith('allow') ? line : styled(terminal, 'yellow', line));
  const { promotion, difference, ignore, limits, history } = policy;
  const rule = promotionRule(places);
  say(terminal, `promotion    confirmed by ${confirmedBy(rule?.inForce ?? promotion.confirm)}`);
  if (rule?.difference)
    say(terminal, styled(terminal, 'yellow', `             ${rule.difference.said}; ${rule.difference.remedy}`));
  say(
    terminal,
    `difference   ${difference.shown === 'page' ? 'sealed to the page, or on this machine' : 'on this machine alone'}`,
  );
  say(terminal, `ignore       ${ignore.patterns.length === 0 ? 'nothing' : ignore.patterns.join('  ')}`);
  say(terminal, `limits       ${limits.concurrentCommands} commands side by side, ${limits.runtimeMs} ms each`);
  say(terminal, `history      ${historyRule(history)}`);
  say(terminal, `digest       ${policyDigest(policy).toString('hex')}`);
}

/** How much of promotions is kept for an undo, as a sentence. */
export function historyRule({ megabytes, days }: Pick<Policy['history'], 'megabytes' | 'days'>): string {
  if (megabytes === 0 || days === 0) return 'nothing but a note of the newest promotion is kept';
  return `up to ${megabytes} MiB of the last ${counted(days, 'day')} can be undone`;
}

/** Says whether the policy can be used. Throws CliFailure: difference with what is wrong. */
export function checkPolicy(terminal: Terminal, places: Places, isJson: boolean): void {
  const policy = checkedPolicy(places);
  const digest = policyDigest(policy).toString('hex');
  if (isJson) return sayJson(terminal, { valid: true, digest });
  say(terminal, `policy.json is valid, digest ${digest}`);
}

function checkedPolicy(places: Places): Policy {
  try {
    return readPolicy(places);
  } catch (error) {
    if (error instanceof PolicyInvalid) throw new CliFailure('difference', error.message, { cause: error });
    throw error;
  }
}

/** Allows or denies operations; deny beats allow, so allowing takes a key off the denied ones. Throws CliFailure: usage for a key that does not exist. */
export function changeOperations(
  terminal: Terminal,
  places: Places,
  verdict: 'allow' | 'deny',
  keys: readonly string[],
): void {
  const unknown = keys.filter((key) => !findOperation(key) && !isUnimplemented(key));
  if (unknown.length > 0) {
    throw new CliFailure(
      'usage',
      `${unknown.join(', ')} is no operation; there are ${operations.map(({ key }) => key).join(', ')}`,
    );
  }
  change(terminal, places, (policy) => {
    const { allow, deny, why } = policy.operations;
    const without = (list: readonly string[]): string[] => list.filter((key) => !keys.includes(key));
    const rules =
      verdict === 'allow'
        ? { allow: [...without(allow), ...keys], deny: without(deny) }
        : { allow, deny: [...without(deny), ...keys] };
    return { ...policy, operations: { ...rules, why } };
  });
}

/**
 * Sets who confirms a promotion, in the pin and in the policy. The stricter of the two holds: what is cut off between the two writes
 * is as strict as before, or as is wanted.
 */
export function changePromotion(terminal: Terminal, places: Places, confirm: 'page' | 'machine'): void {
  const pin = (): void => void (isPaired(places) && rewritePin(places, { promotion: confirm }));
  if (confirm === 'machine') pin();
  change(terminal, places, (policy) => ({ ...policy, promotion: { ...policy.promotion, confirm } }));
  if (confirm === 'page') pin();
}

function change(terminal: Terminal, places: Places, next: (policy: Policy) => Policy): void {
  const before = checkedPolicy(places);
  const after = next(before);
  writePolicy(places, after);
  const isWider = widens(before, after);
  say(
    terminal,
    isWider
      ? 'Written. What is wider waits until a person confirms it on the control plane.'
      : 'Written. It is in force as soon as the daemon has read it.',
  );
}

/** Changes the root: only while no draft is left and no daemon runs; the new one then waits for a review like any policy change. Rejects with CliFailure: refused. */
export async function changeRoot(
  terminal: Terminal,
  places: Places,
  folder: string,
  wholeHome: boolean,
): Promise<void> {
  const before = requireSetUp(places);
  const own = [places.stateDir, places.configDir, installationFolder()];
  const root = chooseRoot(folder, { own, home: process.env['HOME'], wholeHome });
  if (await isDaemonUp(places.stateDir))
    throw new CliFailure('refused', 'the daemon runs; stop it before the root is changed');
  const drafts = draftCount(places);
  if (drafts > 0)
    throw new CliFailure('refused', `${drafts} drafts are left; promote them or \`drafts discard\` them first`);
  writeConfiguration(places, { ...before, root });
  if (!isPaired(places)) return say(terminal, 'The root is changed.');
  try {
    const { rootIdentity } = await withDaemon(places, () => askDaemon(places.stateDir, 'daemon.root', {}));
    rewritePin(places, { rootIdentity: Buffer.from(rootIdentity).toString('hex') });
  } catch (error) {
    writeConfiguration(places, before);
    throw error;
  }
  return say(terminal, 'The root is changed. File operations wait until a person confirms it on the control plane.');
}

/** How many drafts lie in the state folder; the folder of zeroes is the one that is always empty. */
export function draftCount({ stateDir }: Places): number {
  const drafts = path.join(stateDir, 'drafts');
  if (!fs.existsSync(drafts)) return 0;
  return fs.readdirSync(drafts).filter((name) => name !== '00000000').length;
}
