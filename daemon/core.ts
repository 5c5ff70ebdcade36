/*
 * The daemon put together: its peers, what it knows of itself, and the parts that meet the machine's contracts. Only here do
 * machines meet actors.
 */
import type { Duplex } from 'node:stream';
import { connectKeyStore } from '../actors/key-store.ts';
import type { KeyStoreClient } from '../actors/key-store.ts';
import { connectLink } from '../actors/link.ts';
import type { LinkClient } from '../actors/link.ts';
import { connectPromote } from '../actors/promote.ts';
import type { PromoteClient } from '../actors/promote.ts';
import { connectWorkspace } from '../actors/workspace.ts';
import type { WorkspaceClient } from '../actors/workspace.ts';
import type { ExecutorId } from '../helpers/protocol/ids.ts';
import { ControlClock, systemTime } from './clock.ts';
import { isConfirmedHere } from './confirmations.ts';
import type { RootFacts } from './descriptor.ts';
import { Executions } from './executions.ts';
import type { GateFacts } from './gate.ts';
import { Ledger } from './ledger/ledger.ts';
import { LedgerDamaged } from './ledger/segment.ts';
import { Peer } from './peers.ts';
import { Promotions } from './promotions.ts';
import { Receipts } from './receipts.ts';
import { DaemonRecords } from './records.ts';
import { Results } from './results.ts';
import { commitRotation } from './rotate.ts';
import { Rows } from './rows.ts';
import type { Report } from '../helpers/supervisor/request.ts';
import { Sessions } from './session.ts';
import { Standing } from './standing.ts';

/** Descriptors that the daemon is born with (helpers/daemon/privileges.ts). */
export const DESCRIPTORS = {
  supervisor: 3,
  state: 4,
  configuration: 5,
  link: 6,
  keyStore: 7,
  workspace: 8,
  promote: 9,
  cli: 10,
} as const;

const ROOT_MS = 10_000;
/** How long a signature waits for a key-store that is being started again, in ms. */
const SIGNER_MS = 5000;
/** Endings after which nothing is accepted until a person ran repair (design section 2 rule 6). */
const VIOLATIONS: ReadonlySet<string> = new Set(['protocol violation', 'policy violation']);

/** What the core tells whoever runs the machine. */
export interface CoreEvents {
  /** A role broke the protocol or the kernel ended it for a forbidden call. */
  violated(row: string): void;
  /** The supervisor did not start a row that was asked for, or a row went down. */
  missing(row: string, reason: string): void;
  /** What a person may want to read in the log: a closed code and a sentence without content, paths or keys. */
  noted(code: string, sentence: string): void;
  /** The supervisor is gone: nothing may go on. */
  orphaned(): void;
}

/** Everything of one daemon but its machine. */
export class Core {
  readonly records: DaemonRecords;
  readonly standing: Standing;
  readonly link: Peer<LinkClient>;
  readonly keyStore: Peer<KeyStoreClient>;
  readonly workspace: Peer<WorkspaceClient>;
  readonly promote: Peer<PromoteClient>;
  readonly promotions: Promotions;
  readonly results: Results;
  readonly #folder: string;
  #ledger: Ledger | undefined;
  #clock = new ControlClock(systemTime, 0);
  #sessions: Sessions | undefined;

  private constructor(folder: string, records: DaemonRecords, supervisor: Duplex, events: CoreEvents) {
    this.#folder = folder;
    this.records = records;
    this.standing = new Standing(records);
    this.results = new Results(`${folder}/results`);
    const rows = new Rows(
      supervisor,
      (report) => tell(events, report),
      () => events.orphaned(),
    );
    const violated = (row: string): void => events.violated(row);
    this.link = new Peer('link', (socket) => connectLink(socket, (told) => this.#sessions?.deliver(told)), violated);
    this.keyStore = new Peer('key-store', connectKeyStore, violated);
    this.workspace = new Peer('workspace', (socket) => this.#workspaceCame(socket), violated);
    this.promote = new Peer('promote', (socket) => connectPromote(socket, () => undefined), violated);
    this.promotions = new Promotions({
      workspace: () => this.workspace.client,
      peer: this.promote,
      start: (slot) => rows.startPromote(slot),
      note: (code, sentence) => events.noted(code, sentence),
    });
  }

  #workspaceCame(socket: Duplex): WorkspaceClient {
    // It is spoken to in a turn of its own, when the peer has this client.
    this.promotions.workspaceCame();
    return connectWorkspace(socket);
  }

  /** Opens the records and listens for the helpers. Rejects with RecordsInvalid. */
  static async open(supervisor: Duplex, events: CoreEvents): Promise<Core> {
    const folder = `/proc/self/fd/${DESCRIPTORS.state}`;
    const core = new Core(folder, new DaemonRecords(folder), supervisor, events);
    await Promise.all([
      core.link.listen(DESCRIPTORS.link),
      core.keyStore.listen(DESCRIPTORS.keyStore),
      core.workspace.listen(DESCRIPTORS.workspace),
      core.promote.listen(DESCRIPTORS.promote),
    ]);
    return core;
  }

  /** The open ledger. Throws LedgerDamaged where none could be opened. */
  get ledger(): Ledger {
    if (!this.#ledger) throw new LedgerDamaged('LEDGER_UNWRITABLE', 'the ledger is not open');
    return this.#ledger;
  }

  get clock(): ControlClock {
    return this.#clock;
  }

  /** Reads the ledger anew; what an earlier reading held is closed first. `damaged` hears when it takes nothing more. Rejects with LedgerDamaged. */
  async openLedger(damaged: () => void): Promise<Ledger> {
    await this.closeLedger();
    const ledger = Ledger.open(`${this.#folder}/ledger`, damaged);
    this.#ledger = ledger;
    this.#clock = new ControlClock(systemTime, ledger.memory.highAt);
    return ledger;
  }

  /** Closes the ledger, if it is open, after what was appended is durable. */
  async closeLedger(): Promise<void> {
    await this.#ledger?.close();
    this.#ledger = undefined;
  }

  /** Root as `workspace` sees it now; the standing remembers its identity. Rejects where there is none to be seen. */
  async root(): Promise<RootFacts> {
    const workspace = await this.workspace.connected(ROOT_MS);
    const root = await workspace.request('workspace.root', {}, { withinMs: ROOT_MS });
    this.standing.rootIdentity = Buffer.from(root.rootIdentity).toString('hex');
    return root;
  }

  /** Sessions, receipts and executions of a paired executor. */
  forExecutor(executor: ExecutorId): { sessions: Sessions; executions: Executions; receipts: Receipts } {
    const parts = {
      executor,
      commandKey: () => this.standing.commandKey,
      keyStore: () => this.keyStore.client,
      signer: () => this.keyStore.connected(SIGNER_MS),
      link: () => this.link.client,
      capabilityRevision: () => this.standing.stated?.revision ?? 1,
      standing: this.standing,
      rotated: () => commitRotation(this).then(() => undefined),
      // Asked each time: the ledger is read anew after a repair, and the clock with it.
      ledger: () => this.ledger,
      clock: () => this.clock,
    };
    const sessions = new Sessions(parts);
    this.#sessions = sessions;
    const receipts = new Receipts(parts);
    const executions = new Executions({
      receipts,
      sessions,
      results: this.results,
      gateFacts: () => this.gateFacts(executor),
      workers: {
        workspace: () => this.workspace.client,
        promotions: this.promotions,
        ignore: () => this.standing.policy?.ignore.patterns ?? [],
        differenceShown: () => this.standing.policy?.difference.shown ?? 'machine',
      },
      ledger: () => this.ledger,
    });
    return { sessions, executions, receipts };
  }

  /** Facts for the gate at this moment. */
  gateFacts(executor: ExecutorId): GateFacts {
    return {
      executor,
      ...this.standing.facts(),
      epoch: this.#sessions?.channel?.epoch ?? 0,
      isConfirmedHere: (run, manifestDigest) => {
        const { rootIdentity } = this.standing;
        const unconfirmed = { run, manifestDigest, rootIdentity, now: Date.now() };
        return isConfirmedHere(`/proc/self/fd/${DESCRIPTORS.configuration}`, unconfirmed);
      },
      memory: this.ledger.memory,
      anchored: this.clock.isAnchored,
      now: this.clock.now(),
    };
  }
}

function tell(events: CoreEvents, report: Report): void {
  if (report.report === 'refused') events.missing(report.row, report.reason);
  if (report.report !== 'ended') return;
  if (VIOLATIONS.has(report.meaning)) events.violated(report.row);
  else if (report.next !== 'ended') events.missing(report.row, `${report.meaning}, ${report.next}`);
}
