/*
 * The daemon: runs the machines, keeps the ledger, asks the helpers and answers the owner. Started confined by runtime/launch;
 * its descriptors are named in helpers/daemon/privileges.ts.
 */
import net from 'node:net';
import { pino } from 'pino';
import { Core, DESCRIPTORS } from './core.ts';
import type { Note } from './executor.ts';
import { Home } from './home.ts';
import { serveOwner } from './owner.ts';
import { ownerTable } from './owner-table.ts';
import { watchPolicy } from './policy-watch.ts';
import { TraceLog } from './trace.ts';

/** Exit code of a start that could not be: state that nobody may trust. */
const EXIT_STATE = 78;
const KEY_MS = 10_000;

const log = pino({ base: null, timestamp: pino.stdTimeFunctions.isoTime }, pino.destination({ dest: 2, sync: true }));

async function main(): Promise<void> {
  const supervisor = new net.Socket({ fd: DESCRIPTORS.supervisor, readable: true, writable: true });
  const trace = new TraceLog(`/proc/self/fd/${DESCRIPTORS.state}`);
  const note: Note = (code, sentence) => log.info({ code }, sentence);
  const core = await Core.open(supervisor, {
    violated: (row) => {
      log.error(
        { code: 'ROLE_VIOLATED', row },
        'a role broke the protocol or met its filter; nothing is accepted until `nessie-executor repair`',
      );
      home?.executor?.actor.send({ type: 'role.violated', role: row });
    },
    missing: (row, reason) =>
      log.warn({ code: 'ROW_MISSING', row, reason }, 'a role is not there; what needs it fails until it is'),
    noted: note,
    // Without the supervisor nobody could start or end a role: the daemon does not outlive it.
    orphaned: () => process.exit(0),
  });
  const home: Home = new Home(core, trace.inspect, note);
  const stop = (): void => {
    if (home.executor) home.executor.actor.send({ type: 'daemon.stop' });
    else process.exit(0);
  };
  home.ended = () => process.exit(0);
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, stop);
  await watchPolicy(`/proc/self/fd/${DESCRIPTORS.configuration}`, (text) => {
    core.standing.readPolicy(text);
    const { reading } = core.standing;
    if (reading.state === 'invalid') log.error({ code: 'POLICY_INVALID' }, reading.message);
    else log.info({ code: 'POLICY_READ' }, 'policy.json was read');
    void home.executor
      ?.policyChanged()
      .catch((error: unknown) => log.warn({ code: 'POLICY_NOT_STATED' }, messageOf(error)));
  });
  await refuseUnsafeKey(core);
  home.start();
  serveOwner(DESCRIPTORS.cli, ownerTable(core, home, trace), { 'daemon.stop': stop, 'daemon.forget': stop });
  await core.root().catch((error: unknown) => log.error({ code: 'ROOT_UNAVAILABLE' }, messageOf(error)));
  log.info({ code: 'STARTED', state: home.executor ? 'paired' : 'unpaired' }, 'daemon is up');
}

/** A key that others could read, or a folder that is not ours, stops the start (N-061); `doctor` names what to mend. */
async function refuseUnsafeKey(core: Core): Promise<void> {
  const keyStore = await core.keyStore.connected(KEY_MS);
  await keyStore.request('keystore.status', {}, { withinMs: KEY_MS });
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : 'unknown failure';
}

main().catch((error: unknown) => {
  log.fatal({ code: 'START_FAILED' }, messageOf(error));
  process.exit(EXIT_STATE);
});
