/* A real root and a real drafts folder for tests of the workspace, and its handlers over them. */
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

import { makeHandlers, makeServices, type Handlers } from '../../../helpers/workspace/handlers.ts';
import type { MachineLimits } from '../../../helpers/workspace/draft-budget.ts';
import type { Services } from '../../../helpers/workspace/call.ts';
import {
  failureSchema,
  operationShape,
  type OperationFailure,
  type OperationKey,
  type OperationSuccess,
} from '../../../helpers/protocol/operations.ts';
import { promotionIdSchema, runIdSchema, type PromotionId, type RunId } from '../../../helpers/protocol/ids.ts';

const source = (file: string): string => path.resolve(import.meta.dirname, '..', '..', '..', file);
const tasks = {
  filename: source('helpers/workspace/pool-tasks.ts'),
  execArgv: ['--import', pathToFileURL(source('test/fixtures/tsx-thread.mjs')).href],
};

/** A new run id. */
export const newRun = (): RunId => runIdSchema.parse(`run_${randomBytes(16).toString('hex')}`);

/** A new promotion id. */
export const newPromotion = (): PromotionId => promotionIdSchema.parse(`prm_${randomBytes(16).toString('hex')}`);

/** Options of one operation in a test. */
export interface AskOptions {
  readonly run?: RunId;
  readonly ignore?: string[];
  readonly withinMs?: number;
  readonly call?: string;
}

const open = (folder: string): number => fs.openSync(folder, fs.constants.O_RDONLY | fs.constants.O_DIRECTORY);

/** Where trees of many files are made: in memory, where the machine has such a folder. */
export const memoryFolder = (): string => (fs.existsSync('/dev/shm') ? '/dev/shm' : os.tmpdir());

/** One workspace with its own folders. */
export class Bench {
  readonly folder: string;
  readonly rootPath: string;
  readonly draftsPath: string;
  readonly run = newRun();
  services!: Services;
  handlers!: Handlers;
  limits: MachineLimits | undefined;
  #descriptors: number[] = [];

  /** `root` is a folder that stands already; it stays. */
  constructor(base = os.tmpdir(), root?: string) {
    this.folder = fs.mkdtempSync(path.join(base, 'workspace-'));
    this.rootPath = root ?? path.join(this.folder, 'project');
    this.draftsPath = path.join(this.folder, 'state', 'drafts');
    if (root === undefined) fs.mkdirSync(this.rootPath);
    fs.mkdirSync(this.draftsPath, { recursive: true, mode: 0o700 });
    this.start();
  }

  /** Starts the process's services again, as after a restart. */
  start(): void {
    for (const descriptor of this.#descriptors) fs.closeSync(descriptor);
    const [root, drafts] = [open(this.rootPath), open(this.draftsPath)];
    this.#descriptors = [root, drafts];
    this.services = makeServices({ root, drafts, forbiddenFolders: '', tasks, limits: this.limits });
    this.handlers = makeHandlers(this.services);
  }

  async remove(): Promise<void> {
    await this.services.pool.close();
    for (const descriptor of this.#descriptors) fs.closeSync(descriptor);
    fs.rmSync(this.folder, { recursive: true, force: true });
  }

  at(...parts: string[]): string {
    return path.join(this.rootPath, ...parts);
  }

  /** Writes files into the root; a key that ends in `/` is a folder. */
  put(files: Readonly<Record<string, string | Buffer>>): void {
    for (const [name, content] of Object.entries(files)) {
      fs.mkdirSync(path.dirname(this.at(name)), { recursive: true });
      if (name.endsWith('/')) fs.mkdirSync(this.at(name), { recursive: true });
      else fs.writeFileSync(this.at(name), content);
    }
  }

  /** Runs one operation, and checks its answer against the schema of the operation. */
  async ask(
    operation: OperationKey,
    args: unknown,
    options: AskOptions = {},
  ): Promise<OperationSuccess<OperationKey> | OperationFailure> {
    const { result } = await this.handlers['workspace.operate']({
      call: options.call ?? randomBytes(8).toString('hex'),
      run: options.run ?? this.run,
      operation,
      arguments: args,
      withinMs: options.withinMs ?? 20_000,
      ignore: options.ignore ?? [],
    });
    const failure = failureSchema.safeParse(result);
    const answer = failure.success ? failure.data : operationShape(operation).result.parse(result);
    assert.ok(!JSON.stringify(answer).includes(this.folder), 'an answer holds a host path');
    return answer;
  }

  /** Runs one operation that must succeed. */
  async done<Key extends OperationKey>(
    operation: Key,
    args: unknown,
    options?: AskOptions,
  ): Promise<OperationSuccess<Key>> {
    const answer = await this.ask(operation, args, options);
    assert.ok(answer.success, `${operation}: ${JSON.stringify(answer)}`);
    // the schema of this operation has passed the answer
    return answer as OperationSuccess<Key>;
  }

  /** Runs one operation that must fail with a code; answers the message. */
  async fails(code: string, operation: OperationKey, args: unknown, options?: AskOptions): Promise<string> {
    const answer = await this.ask(operation, args, options);
    assert.ok(!answer.success, `${operation} succeeded: ${JSON.stringify(answer)}`);
    assert.equal(answer.code, code, answer.message);
    return answer.message ?? '';
  }

  /** Digest over names, kinds, modes, times and contents of the root. */
  treeDigest(): string {
    return treeDigest(this.rootPath);
  }

  async text(file: string, options?: AskOptions): Promise<string> {
    return (await this.done('file.read', { path: file, maxBytes: 262_144 }, options)).content;
  }

  async names(folder = '.', options?: AskOptions): Promise<string[]> {
    return (await this.done('file.list', { path: folder }, options)).entries.map(({ name }) => name);
  }
}

/** Digest over names, kinds, modes, times and contents of everything below a folder. */
export function treeDigest(top: string): string {
  const hash = createHash('sha256');
  const visit = (folder: Buffer): void => {
    const names = fs.readdirSync(folder, { encoding: 'buffer' }).toSorted((one, two) => Buffer.compare(one, two));
    for (const name of names) {
      const file = Buffer.concat([folder, Buffer.from('/'), name]);
      const status = fs.lstatSync(file, { bigint: true });
      hash.update(name).update(`|${status.mode}|${status.mtimeNs}|${status.ctimeNs}|${status.nlink}|${status.ino}|`);
      if (status.isSymbolicLink()) hash.update(fs.readlinkSync(file, { encoding: 'buffer' }));
      if (status.isFile()) hash.update(fs.readFileSync(file));
      if (status.isDirectory()) visit(file);
    }
  };
  visit(Buffer.from(top));
  return hash.digest('hex');
}

/** SHA-256 of bytes or text, 64 hexadecimal digits. */
export const sha256 = (content: string | Uint8Array): string => createHash('sha256').update(content).digest('hex');
