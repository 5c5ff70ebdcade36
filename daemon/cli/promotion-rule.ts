/*
 * Who confirms a promotion: the pin and policy.json both have a say, and `promote` takes the stricter. Here it is read for people.
 */
import fs from 'node:fs';
import { PolicyInvalid } from '../config.ts';
import { stricter } from '../../helpers/protocol/policy.ts';
import type { Policy } from '../../helpers/protocol/policy.ts';
import type { Places } from './places.ts';
import { policyFile, readPin, readPolicy } from './set-up.ts';

type Confirm = Policy['promotion']['confirm'];

/** What is in force: `nobody` promotes while the policy cannot be used. */
export interface PromotionRule {
  readonly inForce: Confirm | 'nobody';
  /** Why the two files do not say one thing, and what to do; null where they do. */
  readonly difference: { readonly said: string; readonly remedy: string } | null;
}

/** The rule of a paired executor, undefined before pairing. Throws CliFailure: configuration for a damaged pin. */
export function promotionRule(places: Places): PromotionRule | undefined {
  const pin = readPin(places)?.promotion;
  if (pin === undefined) return undefined;
  const policy = confirmIn(places);
  if (typeof policy !== 'string') return { inForce: 'nobody', difference: policy };
  // `promote` takes a pin that says neither for none; here it counts as the stricter.
  const inForce = stricter(policy, pin === 'page' ? 'page' : 'machine');
  if (pin === policy) return { inForce, difference: null };
  return {
    inForce,
    difference: {
      said: `policy.json says ${policy}, the pin says ${pin}; the stricter holds`,
      remedy: 'say `nessie-executor policy promotion machine`, or `page`: it writes both',
    },
  };
}

/**
 * What the pin of a new pairing says. One that replaces another takes nothing back that the owner asked for: that is for
 * `policy promotion page`. Throws PolicyInvalid, and CliFailure where there is no policy.
 */
export function ruleOfNewPin(places: Places): Confirm {
  const before = readPin(places)?.promotion === 'machine' ? 'machine' : 'page';
  return stricter(readPolicy(places).promotion.confirm, before);
}

/** A rule in words. */
export function confirmedBy(inForce: PromotionRule['inForce']): string {
  return inForce === 'nobody' ? 'nobody: none begins' : `the ${inForce}`;
}

function confirmIn(places: Places): Confirm | NonNullable<PromotionRule['difference']> {
  const file = policyFile(places);
  const stat = fs.lstatSync(file, { throwIfNoEntry: false });
  if (stat !== undefined && (!stat.isFile() || (stat.mode & 0o022) !== 0)) {
    return {
      said: 'others may write policy.json, or it is no plain file',
      remedy: 'put a plain file there, and make it 0600 (0644 under root)',
    };
  }
  try {
    if (stat !== undefined) return readPolicy(places).promotion.confirm;
  } catch (error) {
    if (!(error instanceof PolicyInvalid)) throw error;
  }
  return { said: 'policy.json cannot be used', remedy: '`nessie-executor policy check` says why' };
}
