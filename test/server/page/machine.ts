import fs from 'node:fs';
import path from 'node:path';
import type { ChildProcess } from 'node:child_process';

import { askDaemon, isDaemonUp } from '../../../daemon/cli/owner-client.ts';
import { placesIn } from '../../../daemon/cli/places.ts';
import type { Places } from '../../../daemon/cli/places.ts';
import { readPolicy, writePin, writeSetUp } from '../../../daemon/cli/set-up.ts';
import { startExecutor, stopChild, until } from '../../../daemon/demo/children.ts';
import type { PairingState } from '../../../daemon/protocol.ts';
import { endWithTests } from './world.ts';
import type { World } from './world.ts';

const WAIT_MS = 20_000;

/** Plain http to this machine must be permitted by name; for other tests it stays as it was. */
function setUpOnLoopback(wish: Parameters<typeof writeSetUp>[0]): void {
  const name = 'NESSIE_ALLOW_LOOPBACK_HTTP';
  const before = process.env[name];
  process.env[name] = '1';
  try {
    writeSetUp(wish);
  } finally {
    if (before === undefined) delete process.env[name];
    else process.env[name] = before;
  }
}

/** A real machine: the whole process tree of an executor over a folder with a small project. */
export class Machine {
  readonly name: string;
  readonly root: string;
  readonly places: Places;
  readonly #child: ChildProcess;

  private constructor(name: string, root: string, places: Places, child: ChildProcess) {
    this.name = name;
    this.root = root;
    this.places = places;
    this.#child = child;
  }

  static async start(world: World, name: string, files: Readonly<Record<string, string>>): Promise<Machine> {
    const folder = path.join(world.folder, name);
    const root = path.join(folder, 'harbour-survey');
    for (const [file, content] of Object.entries(files)) {
      fs.mkdirSync(path.dirname(path.join(root, file)), { recursive: true });
      fs.writeFileSync(path.join(root, file), content);
    }
    const places = placesIn(path.join(folder, 'executor'));
    setUpOnLoopback({ places, origin: world.origin, root });
    const child = startExecutor(world.dist, places.stateDir, folder);
    endWithTests(child);
    await until('the executor to answer', WAIT_MS, () => isDaemonUp(places.stateDir));
    return new Machine(name, root, places, child);
  }

  /** The person at the machine asks for a code; answers its eight digits. */
  async offer(): Promise<string> {
    await askDaemon(this.places.stateDir, 'daemon.pair', { flow: 'code', machineName: this.name });
    const { code } = await this.pairing('offered');
    if (code === null) throw new Error('no code was offered');
    return code;
  }

  /** The person at the machine operates an enrolment: request and challenge as the page printed them. */
  async enrol(requestId: string, challenge: Uint8Array): Promise<void> {
    const wish = { flow: 'enrolment', machineName: this.name, requestId, challenge } as const;
    await askDaemon(this.places.stateDir, 'daemon.pair', wish);
  }

  /** The person at the machine says yes to the claim that is shown there; answers the executor's id. */
  async confirm(): Promise<string> {
    const claimed = await this.pairing('claimed');
    await askDaemon(this.places.stateDir, 'daemon.pair-answer', {
      answer: 'confirm',
      claimDigest: claimed.claimDigest,
    });
    const paired = await this.pairing('paired');
    writePin({ places: this.places, paired, confirm: readPolicy(this.places).promotion.confirm });
    return paired.executor;
  }

  /** Waits for a state of the machine's pairing. */
  async pairing<State extends PairingState['state']>(state: State): Promise<Extract<PairingState, { state: State }>> {
    return until(`the pairing to be ${state}`, WAIT_MS, async () => {
      const standing = await askDaemon(this.places.stateDir, 'daemon.pairing', {});
      if (standing.state === 'ended') throw new Error(`the pairing ended: ${standing.code}`);
      // The state was just compared.
      return standing.state === state && (standing as Extract<PairingState, { state: State }>);
    });
  }

  async stop(): Promise<void> {
    await stopChild(this.#child);
  }
}
