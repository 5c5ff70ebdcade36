import { spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { createInterface } from 'node:readline';

import type { PromoteReply } from '../../helpers/promote/protocol.ts';
import { promoteRequests } from '../../helpers/promote/protocol.ts';
import { attach } from './killer.ts';
import type { Call } from './killer.ts';
import type { PromotionScene } from './promotion-scene.ts';

const TOP = path.resolve(import.meta.dirname, '..', '..');

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

/** What an unconfined promote answered, or undefined where it refused or ended first, and the mutating calls of its apply. */
export interface PlainRun {
  readonly recovered: PromoteReply<'promote.recover'>;
  readonly applied: PromoteReply<'promote.apply'> | undefined;
  readonly calls: readonly Call[];
}

/** Recovers and applies in a child without confinement, with strace's inject expressions active during the apply alone. */
export async function applyPlainly(
  scene: PromotionScene,
  inject: readonly string[],
  also: readonly string[] = [],
  onStart: (pid: number) => void = () => undefined,
): Promise<PlainRun> {
  const folders = [scene.root, scene.draft, scene.own, scene.owner, scene.configuration].map((folder) =>
    fs.openSync(folder, 'r'),
  );
  const child = spawn(process.execPath, ['--import', 'tsx', 'test/fixtures/promote-plain.ts'], {
    cwd: TOP,
    stdio: ['pipe', 'pipe', 'inherit', 'ignore', ...folders],
  });
  const exited = new Promise<void>((resolve) => void child.once('exit', () => resolve()));
  if (child.stdin === null || child.stdout === null) throw new Error('a child without pipes');
  child.stdin.on('error', () => undefined);
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const next = async (): Promise<unknown> => {
    const { value, done } = await lines.next();
    return done === true ? undefined : JSON.parse(value);
  };
  const recovered = promoteRequests['promote.recover'].reply.parse(await next());
  const tracer = await attach(child.pid ?? 0, inject, also);
  onStart(child.pid ?? 0);
  const { payload, signature } = scene.approve();
  child.stdin.write(`${JSON.stringify({ payload: hex(payload), signature: hex(signature) })}\n`);
  const answer = await next();
  await tracer.detach();
  child.stdin.end();
  await exited;
  for (const descriptor of folders) fs.closeSync(descriptor);
  const applied =
    answer === undefined || answer === null ? undefined : promoteRequests['promote.apply'].reply.parse(answer);
  return { recovered, applied, calls: tracer.calls() };
}
