/*
 * What the first write of a run costs in a large tree against a small one, through the real confined program: the time from
 * request to reply, in which the draft is made and brought to the disk. Pairs alternate which of the two comes first.
 */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

import { connectWorkspace, operate, type WorkspaceClient } from '../../actors/workspace.ts';
import { startRealRow, uidOf, type RealInstallation } from '../fakes/real-row.ts';
import { installForTest } from '../fixtures/start-role.ts';
import { newRun } from '../helpers/workspace/bench.ts';
import { quantile } from './rows.ts';

const PAIRS = 101;
const WARM_UP = 10;
const FILES_A_FOLDER = 200;
const SMALL_FILES = 10;
const WITHIN_MS = 20_000;

/** Measures row `draft_first_write_ratio`: the median ratio of pairs, and the median of each side in ms. */
export async function draftFirstWriteRatio(
  files = 200_000,
): Promise<{ value: number; against: Record<string, number> }> {
  const { installation, remove } = await installForTest({
    workspace: 'helpers/workspace/main.ts',
    'workspace-worker': 'helpers/workspace/worker.ts',
  });
  const program = { folder: installation.folder, remove };
  const places: Place[] = [];
  try {
    const small = makePlace(program, SMALL_FILES);
    places.push(small);
    const large = makePlace(program, files);
    places.push(large);
    const smallMs: number[] = [];
    const largeMs: number[] = [];
    for (let pair = -WARM_UP; pair < PAIRS; pair += 1) {
      const first = pair % 2 === 0 ? small : large;
      const second = first === small ? large : small;
      const [one, two] = [await firstWrite(first), await firstWrite(second)];
      if (pair < 0) continue;
      smallMs.push(first === small ? one : two);
      largeMs.push(first === small ? two : one);
    }
    const ratios = largeMs.map((ms, index) => ms / (smallMs[index] ?? Number.NaN));
    const against = { small_ms: quantile(smallMs, 0.5), large_ms: quantile(largeMs, 0.5), files };
    return { value: quantile(ratios, 0.5), against };
  } finally {
    for (const place of places) await place.remove();
    remove();
  }
}

interface Place {
  readonly client: WorkspaceClient;
  remove(): Promise<void>;
}

function makePlace(program: RealInstallation, files: number): Place {
  const base = fs.mkdtempSync(path.join(os.tmpdir(), 'drafts-bench-'));
  fs.chmodSync(base, 0o755);
  const [root, drafts] = [path.join(base, 'project'), path.join(base, 'drafts')];
  fs.mkdirSync(root, { mode: 0o755 });
  fs.mkdirSync(drafts, { mode: 0o700 });
  plant(root, files);
  const uid = uidOf(7);
  if (uid !== undefined) fs.chownSync(drafts, uid, uid);
  const descriptors = [root, drafts].map((folder) =>
    fs.openSync(folder, fs.constants.O_RDONLY | fs.constants.O_DIRECTORY),
  );
  const [rootDescriptor = -1, draftsDescriptor = -1] = descriptors;
  const started = startRealRow(
    program,
    { row: 'workspace', descriptors: { 4: rootDescriptor, 5: draftsDescriptor } },
    uid,
  );
  for (const descriptor of descriptors) fs.closeSync(descriptor);
  const client = connectWorkspace(started.channel);
  return {
    client,
    remove: async () => {
      client.close();
      await started.exited;
      fs.rmSync(base, { recursive: true });
    },
  };
}

function plant(root: string, files: number): void {
  for (let index = 0; index < files; index += 1) {
    const folder = path.join(root, 'tree', String(Math.floor(index / FILES_A_FOLDER)));
    if (index % FILES_A_FOLDER === 0) fs.mkdirSync(folder, { recursive: true });
    fs.writeFileSync(path.join(folder, `file${index}`), `content of ${index}`);
  }
}

async function firstWrite({ client }: Place): Promise<number> {
  const run = newRun();
  const began = performance.now();
  const result = await operate(client, {
    call: run,
    run,
    operation: 'file.write',
    arguments: { path: 'tree/0/file0', content: 'changed', overwrite: true },
    withinMs: WITHIN_MS,
    ignore: [],
  });
  const took = performance.now() - began;
  if (!result.success) throw new Error(`the first write of the bench ended ${JSON.stringify(result)}`);
  await client.request('workspace.discard', { run }, { withinMs: WITHIN_MS });
  return took;
}
