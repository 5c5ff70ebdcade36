/*
 * What must be on disk before an executor starts, and the pin that its owner's answer makes.
 */
import fs from 'node:fs';
import path from 'node:path';
import { OriginRefused, readOrigin } from '../../helpers/protocol/origin.ts';
import { CONFIGURATION, parseConfiguration } from '../../helpers/runtime/configuration.ts';
import type { Configuration } from '../../helpers/runtime/configuration.ts';
import { defaultPolicy, parsePolicy } from '../config.ts';
import type { Policy } from '../../helpers/protocol/policy.ts';
import type { PairingState } from '../protocol.ts';
import { CliFailure } from './failure.ts';
import { configurationReaders, makeFolder, OWNER_ONLY, writeOwnerFile } from './owner-files.ts';
import type { Places } from './places.ts';
import { chooseRoot } from './root-choice.ts';

/** What the owner chose. */
export interface SetUp {
  readonly places: Places;
  readonly origin: string;
  /** One folder, as the owner named it. */
  readonly root: string;
  /** PEM of the only authorities that are trusted for the origin. */
  readonly caFile?: string;
  readonly wholeHome?: boolean;
  /** Folder of the installation, which no root may overlap. */
  readonly installation?: string;
}

/** What a pairing ended with. */
export type PairedState = Extract<PairingState, { readonly state: 'paired' }>;

const uid = (): number => process.getuid?.() ?? -1;
const json = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`;

/** Writes the configuration, and policy and owner's folder where there are none; what the owner chose before is kept. Throws CliFailure: refused. */
export function writeSetUp(setUp: SetUp): Configuration {
  const { places } = setUp;
  const configuration = chosen(setUp);
  const before = readSetUp(places);
  if (before && isPaired(places) && (before.root !== configuration.root || before.origin !== configuration.origin)) {
    throw new CliFailure(
      'refused',
      'this executor is paired with another root or origin; say `policy root FOLDER`, or `forget` and pair again',
    );
  }
  const readers = configurationReaders(uid());
  makeFolder(places.stateDir, OWNER_ONLY);
  makeFolder(path.join(places.ownerDir, 'confirmations'), readers);
  if (!fs.existsSync(policyFile(places))) writePolicy(places, defaultPolicy());
  writeConfiguration(places, configuration);
  return configuration;
}

function chosen({ places, origin, root, caFile, wholeHome = false, installation }: SetUp): Configuration {
  const own = [places.stateDir, places.configDir, ...(installation === undefined ? [] : [installation])];
  return {
    version: 1,
    root: chooseRoot(root, { own, home: process.env['HOME'], wholeHome }),
    configDir: places.configDir,
    stateDir: places.stateDir,
    origin: permittedOrigin(origin),
    caFile: caFile === undefined ? undefined : path.resolve(caFile),
  };
}

function permittedOrigin(text: string): string {
  try {
    return readOrigin(text, process.env['NESSIE_ALLOW_LOOPBACK_HTTP'] === '1').text;
  } catch (error) {
    if (error instanceof OriginRefused) throw new CliFailure('refused', error.message, { cause: error });
    throw error;
  }
}

/** Writes what the supervisor starts for. */
export function writeConfiguration(places: Places, configuration: Configuration): void {
  writeOwnerFile(path.join(places.stateDir, CONFIGURATION), json(configuration), OWNER_ONLY);
}

/** The configuration that is on disk, or undefined where there is none. Throws StartRefusal for one that is damaged. */
export function readSetUp(places: Places): Configuration | undefined {
  const file = path.join(places.stateDir, CONFIGURATION);
  return fs.existsSync(file) ? parseConfiguration(fs.readFileSync(file, 'utf8')) : undefined;
}

/** The configuration that is on disk. Throws CliFailure: refused where there is none. */
export function requireSetUp(places: Places): Configuration {
  const found = readSetUp(places);
  if (!found)
    throw new CliFailure('refused', 'there is no executor here; pair this machine with `nessie-executor pair`');
  return found;
}

/** Absolute path of the owner's policy. */
export const policyFile = (places: Places): string => path.join(places.configDir, 'policy.json');

/** The owner's policy. Throws PolicyInvalid, or CliFailure where there is none. */
export function readPolicy(places: Places): Policy {
  if (!fs.existsSync(policyFile(places))) {
    throw new CliFailure('refused', 'there is no policy here; pair this machine with `nessie-executor pair`');
  }
  return parsePolicy(fs.readFileSync(policyFile(places), 'utf8'));
}

/** Writes the owner's policy; a running daemon reads it at once. */
export function writePolicy(places: Places, policy: Policy): void {
  writeOwnerFile(policyFile(places), json(policy), configurationReaders(uid()));
}

const pinFile = (places: Places): string => path.join(places.ownerDir, 'pin.json');

/** Whether the owner confirmed a pairing here. */
export const isPaired = (places: Places): boolean => fs.existsSync(pinFile(places));

/** Writes the pin: the trust that `promote` starts from. Called after the person's answer and never before. */
export function writePin({
  places,
  paired,
  confirm,
}: {
  places: Places;
  paired: PairedState;
  confirm: 'page' | 'machine';
}): void {
  const pin = {
    version: 1,
    executor: paired.executor,
    commandKey: Buffer.from(paired.commandKey).toString('hex'),
    rootIdentity: Buffer.from(paired.rootIdentity).toString('hex'),
    promotion: confirm,
  };
  writeOwnerFile(pinFile(places), json(pin), configurationReaders(uid()));
}

/** The pin as it is on disk; digests and keys are hexadecimal. */
export interface Pin {
  readonly executor: string;
  readonly promotion: string;
  readonly commandKey: string;
  readonly rootIdentity: string;
}

/** The pin; undefined before pairing. Throws CliFailure: configuration for one that is damaged. */
export function readPin(places: Places): Pin | undefined {
  if (!isPaired(places)) return undefined;
  const pin: unknown = JSON.parse(fs.readFileSync(pinFile(places), 'utf8'));
  const fields = new Map<string, unknown>(Object.entries(typeof pin === 'object' && pin !== null ? pin : {}));
  const text = (name: string): string => {
    const value = fields.get(name);
    if (typeof value === 'string') return value;
    throw new CliFailure('configuration', `pin.json has no ${name}; pair this machine again`);
  };
  return {
    executor: text('executor'),
    promotion: text('promotion'),
    commandKey: text('commandKey'),
    rootIdentity: text('rootIdentity'),
  };
}

/** Changes what the owner decides about a pin: the rule of promotion, or the identity of a root that was chosen anew. */
export function rewritePin(places: Places, changes: Partial<Pick<Pin, 'promotion' | 'rootIdentity'>>): void {
  const pin = readPin(places);
  if (!pin) throw new CliFailure('refused', 'this machine is not paired');
  writeOwnerFile(pinFile(places), json({ version: 1, ...pin, ...changes }), configurationReaders(uid()));
}
