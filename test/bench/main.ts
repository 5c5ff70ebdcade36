/*
 * `npm run bench [-- --json] [--quick] [ROW …]`: every row of the budget table, measured in one run; `--json` prints one object.
 */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { restCpu, restPss, settled, statusCold } from './at-rest.ts';
import { pickups, prepareCalls, revocations, roundtrips, sustained } from './calls.ts';
import { draftFirstWriteRatio } from './drafts.ts';
import { sustainedHundred } from './hundred.ts';
import { promoteVsCp } from './promote.ts';
import { budgets, measured, quantile, unmeasured } from './rows.ts';
import type { Row, RowName } from './rows.ts';
import { sshCats } from './ssh.ts';
import { makeWorld } from './world.ts';
import type { World } from './world.ts';

const json = process.argv.includes('--json');
const quick = process.argv.includes('--quick');
const wanted = process.argv.slice(2).filter((word) => !word.startsWith('--'));
const wants = (name: RowName): boolean => wanted.length === 0 || wanted.includes(name);
const rows: Partial<Record<RowName, Row>> = {};

function tell(name: RowName, row: Row): void {
  rows[name] = row;
  if (json) return;
  const { budget, unit } = row;
  if (row.value === null) console.log(`  –  ${name.padEnd(28)} not measured: ${row.why}`);
  else
    console.log(
      `  ${row.ok ? '✓' : '✗'}  ${name.padEnd(28)} ${row.value} ${unit} (budget ${budget})${row.against ? `  ${JSON.stringify(row.against)}` : ''}`,
    );
}

/** ms of one fdatasync of 4 KiB in a folder, median: what the disk costs each durable step. */
function fdatasyncMs(folder: string): number {
  const file = path.join(folder, 'sync');
  const descriptor = fs.openSync(file, 'w');
  const samples = Array.from({ length: 100 }, () => {
    fs.writeSync(descriptor, Buffer.alloc(4096));
    const started = performance.now();
    fs.fdatasyncSync(descriptor);
    return performance.now() - started;
  });
  fs.closeSync(descriptor);
  fs.rmSync(file);
  return quantile(samples, 0.5);
}

async function callRows(world: World): Promise<void> {
  // A control plane that serves agents is warm: its code is compiled.
  await roundtrips(world, quick ? 50 : 1500);
  const samples = await roundtrips(world, quick ? 100 : 500);
  const syncMs = fdatasyncMs(world.folder);
  tell('roundtrip_p50_ms', measured('roundtrip_p50_ms', quantile(samples, 0.5), { fdatasync_ms: round(syncMs) }));
  tell('roundtrip_p99_ms', measured('roundtrip_p99_ms', quantile(samples, 0.99), { fdatasync_ms: round(syncMs) }));
  if (wants('roundtrip_vs_ssh')) await sshRow(world);
  if (wants('pickup_p50_ms')) tell('pickup_p50_ms', measured('pickup_p50_ms', quantile(await pickups(world), 0.5)));
  if (wants('sustained_per_s'))
    tell('sustained_per_s', measured('sustained_per_s', await sustained(world, 16, quick ? 3 : 10)));
}

async function sshRow(world: World): Promise<void> {
  const file = path.join(world.root, 'four-kib.txt');
  const cats = await sshCats(path.join(world.folder, 'ssh'), file, quick ? 10 : 40);
  if (!cats)
    return tell(
      'roundtrip_vs_ssh',
      unmeasured('roundtrip_vs_ssh', 'no openssh-server on this machine: apt-get install openssh-server'),
    );
  const ours = quantile(await roundtrips(world, quick ? 20 : 100), 0.5);
  const ssh = quantile(cats, 0.5);
  return tell(
    'roundtrip_vs_ssh',
    measured('roundtrip_vs_ssh', ours / ssh, { ours_ms: round(ours), ssh_ms: round(ssh) }),
  );
}

async function restRows(world: World): Promise<void> {
  if (!quick) await settled();
  tell('rest_pss_mib', measured('rest_pss_mib', restPss(world)));
  tell('rest_cpu_pct', measured('rest_cpu_pct', await restCpu(world, quick ? 5 : 20)));
  tell('status_cold_ms', measured('status_cold_ms', quantile(statusCold(world, quick ? 5 : 15), 0.5)));
}

async function inWorld(): Promise<void> {
  const world = await makeWorld((root) => {
    prepareCalls(root);
    for (let file = 0; file < 8000; file += 1)
      fs.writeFileSync(path.join(root, `filler-${file}.txt`), 'x'.repeat(20_000));
  });
  try {
    await restRows(world);
    await callRows(world);
    if (wants('revocation_p99_ms'))
      tell(
        'revocation_p99_ms',
        measured('revocation_p99_ms', quantile(await revocations(world, quick ? 10 : 100), 0.99)),
      );
  } finally {
    await world.end();
  }
}

const round = (value: number): number => Math.round(value * 1000) / 1000;

if (!json)
  console.log(
    `${os.cpus().length} cores, ${os.cpus()[0]?.model}, node ${process.version}, load ${os.loadavg()[0]?.toFixed(2)}`,
  );
await inWorld();
if (wants('sustained_100_per_s'))
  tell('sustained_100_per_s', measured('sustained_100_per_s', await sustainedHundred()));
if (wants('draft_first_write_ratio')) {
  const { value, against } = await draftFirstWriteRatio(quick ? 20_000 : 200_000);
  tell('draft_first_write_ratio', measured('draft_first_write_ratio', value, against));
}
if (wants('promote_vs_cp')) {
  const { value, against } = await promoteVsCp();
  tell('promote_vs_cp', measured('promote_vs_cp', value, against));
}
for (const name of [
  'gateway_vs_relay',
  'guest_cold_ms',
  'guest_fork_p50_ms',
  'guest_first_output_p50_ms',
  'guest_rest_mib',
] as const) {
  tell(name, unmeasured(name, 'this version has no guest and no gateway'));
}
const missed = Object.values(rows).filter((row) => row.ok === false).length;
if (json) console.log(JSON.stringify(rows));
else console.log(`${Object.keys(budgets).length} rows, ${missed} over budget`);
