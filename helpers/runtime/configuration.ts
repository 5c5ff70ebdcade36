import fs from 'node:fs';
import path from 'node:path';

/** Name of the configuration file in the state folder; `pair` writes it. */
export const CONFIGURATION = 'supervisor.json';

/** What the supervisor opens and starts for; every path absolute, `origin` such as `https://host:8443`. */
export type Configuration = {
  readonly version: 1;
  readonly root: string;
  readonly configDir: string;
  readonly stateDir: string;
  readonly origin: string;
  readonly caFile: string | undefined;
};

/** A reason not to start, with a code that `doctor` knows and a sentence with the remedy; never a path of the machine. */
export class StartRefusal extends Error {
  override readonly name = 'StartRefusal';
  readonly code: string;

  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

function refuse(what: string): never {
  throw new StartRefusal('CONFIGURATION_INVALID', `${CONFIGURATION}: ${what}; run \`nessie-executor pair\` again`);
}

/** Reads a configuration from JSON; throws StartRefusal CONFIGURATION_INVALID naming the field and what was expected. */
export function parseConfiguration(text: string): Configuration {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // the parser's message would quote the file
    return refuse('expected JSON');
  }
  if (typeof value !== 'object' || value === null) return refuse('expected an object');
  const fields = new Map<string, unknown>(Object.entries(value));
  const textOf = (name: string): string => {
    const found = fields.get(name);
    return typeof found === 'string' ? found : refuse(`expected text in \`${name}\``);
  };
  const absolute = (name: string): string => {
    const found = textOf(name);
    return path.isAbsolute(found) && !found.includes('\0') ? found : refuse(`expected an absolute path in \`${name}\``);
  };
  const known = ['version', 'root', 'configDir', 'stateDir', 'origin', 'caFile'];
  for (const name of fields.keys()) if (!known.includes(name)) refuse('found a field that is not known');
  if (fields.get('version') !== 1) refuse('expected 1 in `version`');
  const origin = textOf('origin');
  if (!URL.canParse(origin) || new URL(origin).origin !== origin)
    refuse('expected an origin such as https://host in `origin`');
  return {
    version: 1,
    root: absolute('root'),
    configDir: absolute('configDir'),
    stateDir: absolute('stateDir'),
    origin,
    caFile: fields.has('caFile') ? absolute('caFile') : undefined,
  };
}

/** Whether what was opened belongs to this process's user and nobody else may write it. */
export function isOwnersAlone({ uid, mode }: fs.Stats): boolean {
  return uid === process.getuid?.() && (mode & 0o022) === 0;
}

function readOwn(file: string): string {
  const descriptor = fs.openSync(file, fs.constants.O_RDONLY | fs.constants.O_NOFOLLOW);
  try {
    if (isOwnersAlone(fs.fstatSync(descriptor))) return fs.readFileSync(descriptor, 'utf8');
  } finally {
    fs.closeSync(descriptor);
  }
  return refuse('it must belong to the user who starts this and be writable by nobody else');
}

/** Reads the configuration of a state folder; throws StartRefusal (NOT_PAIRED where there is none). */
export function readConfiguration(stateDir: string): Configuration {
  let text: string;
  try {
    text = readOwn(path.join(stateDir, CONFIGURATION));
  } catch (error) {
    if (error instanceof StartRefusal) throw error;
    throw new StartRefusal('NOT_PAIRED', 'no configuration can be read here: run `nessie-executor pair` first');
  }
  const configuration = parseConfiguration(text);
  if (fs.realpathSync(configuration.stateDir) !== fs.realpathSync(stateDir))
    refuse('found another folder in `stateDir`');
  return configuration;
}
