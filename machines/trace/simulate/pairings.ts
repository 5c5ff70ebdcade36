/*
 * The control plane's side of a simulated pairing, as server/pairing keeps it: the machine's request, a person's claim on the page, the
 * machine's confirmation of exactly that claim, and the executor that comes of it, each in one transaction with its audit entry.
 */
import type { Offer, PairingEvent, PreparedRequest, Standing } from '../../pairing/types.ts';
import { begin, step } from '../../step.ts';
import type { Refused } from '../../values.ts';
import { stateName } from '../../../server/commands/rules.ts';
import { newExecutor } from './decisions.ts';
import { digestOf } from './digests.ts';
import { stepExecutor } from './server-steps.ts';
import { Transaction } from './database.ts';
import type { Database } from './database.ts';
import type { Setting } from './setting.ts';
import type { PairingRow } from './tables.ts';

/** How long an offer lives, in ms (N-073), and until a person claims it on the page. */
const TIMES = { offer: 600_000, claim: { least: 3000, most: 60_000 } };
const COMMAND_KEY = 'command key';

/** Everything of the control plane that a joining machine can ask. A call that no process can answer comes to undefined. */
export class PairingDesk {
  readonly #setting: Setting;
  readonly #database: Database;
  readonly #isServed: () => boolean;
  readonly #byRequest = new Map<string, string>();

  constructor(setting: Setting, database: Database, isServed: () => boolean) {
    this.#setting = setting;
    this.#database = database;
    this.#isServed = isServed;
  }

  /** The machine's request; the same bytes get the same answer. */
  request(prepared: PreparedRequest | null): Offer | undefined {
    if (!this.#isServed() || !prepared) return undefined;
    const { requestId, requestDigest, fingerprint } = prepared;
    const known = this.#database.get('pairings', this.#byRequest.get(requestId) ?? '');
    if (known) {
      this.#step(known.id, { type: 'pairing.repeated', requestDigest });
      return this.#offer(known);
    }
    const id = this.#setting.fresh('pairing');
    const input = { pairingId: id, flow: 'code', requestDigest, fingerprint, replaces: null } as const;
    const stored = begin(this.#setting.rules.pairingMachine, input).stored;
    const row: PairingRow = { id, stored, executor: undefined, expiresAt: this.#setting.timeline.now + TIMES.offer };
    this.#commit((tx) => {
      tx.put('pairings', row);
      tx.told.push({ machine: 'pairing', actor: id, event: { type: 'xstate.init', input } });
    });
    this.#byRequest.set(requestId, id);
    this.#setting.timeline.after(TIMES.offer, () => this.#step(id, { type: 'pairing.expired' }));
    const { timeline, random } = this.#setting;
    timeline.after(random.between(TIMES.claim.least, TIMES.claim.most), () => this.#claim(id, fingerprint));
    return this.#offer(row);
  }

  /** Where a pairing stands. */
  standing(id: string): Standing | undefined {
    const row = this.#database.get('pairings', id);
    if (!this.#isServed() || !row) return undefined;
    switch (stateName(row.stored.value)) {
      case 'claimed':
        return { standing: 'claimed', claim: { claimDigest: row.stored.context.claimDigest ?? '', facts: {} } };
      case 'confirmed':
        return { standing: 'confirmed', executorId: row.executor ?? '', commandKeyFingerprint: digestOf(COMMAND_KEY) };
      case 'refused':
      case 'cancelled':
        return {
          standing: stateName(row.stored.value) === 'refused' ? 'refused' : 'cancelled',
          by: row.stored.context.endedBy ?? 'person',
        };
      case 'expired':
        return { standing: 'expired' };
      default:
        return { standing: 'waiting' };
    }
  }

  /** The machine confirms what a person there was shown; the executor is made with its key in the same transaction. */
  confirm(id: string, claimDigest: string, fingerprint: string): Standing | Refused | undefined {
    const row = this.#database.get('pairings', id);
    if (!this.#isServed() || !row) return undefined;
    const currentClaimDigest = row.stored.context.claimDigest ?? '';
    this.#step(id, { type: 'pairing.confirmed-by-machine', fingerprint, claimDigest, currentClaimDigest });
    return this.standing(id);
  }

  /** The machine gives it up. */
  end(id: string, ending: 'cancel' | 'reject'): { readonly told: true } | undefined {
    if (!this.#isServed()) return undefined;
    this.#step(id, { type: ending === 'cancel' ? 'pairing.cancel' : 'pairing.reject', by: 'machine' });
    return { told: true };
  }

  #claim(id: string, fingerprint: string): void {
    const claimDigest = digestOf(`claim ${id}`);
    this.#setting.watch.claims(id, fingerprint, claimDigest);
    this.#step(id, { type: 'pairing.claimed', fingerprint, claimDigest });
  }

  #offer({ id, expiresAt }: PairingRow): Offer {
    const remainingMs = Math.max(0, expiresAt - this.#setting.timeline.now);
    return { pairingId: id, digits: null, commandKeyFingerprint: digestOf(COMMAND_KEY), remainingMs };
  }

  #step(id: string, event: PairingEvent): void {
    const row = this.#database.get('pairings', id);
    const stepped = row && step(this.#setting.rules.pairingMachine, row.stored, event);
    if (!row || !stepped?.ok) return;
    this.#commit((tx) => {
      let after: PairingRow = { ...row, stored: stepped.stored };
      tx.told.push({ machine: 'pairing', actor: id, event });
      tx.audit.push(event.type);
      const activates = stepped.actions.some(({ type }) => type === 'activateExecutor');
      if (activates && event.type === 'pairing.confirmed-by-machine')
        after = this.#activate(tx, after, event.fingerprint);
      tx.put('pairings', after);
    });
  }

  #activate(tx: Transaction, row: PairingRow, fingerprint: string): PairingRow {
    const executor = this.#setting.fresh('executor');
    this.#setting.watch.pairs(row.id, executor, fingerprint);
    const input = { executorId: executor };
    tx.put('executors', newExecutor(executor, begin(this.#setting.rules.executorMachine, input).stored));
    tx.told.push({ machine: 'executor', actor: executor, event: { type: 'xstate.init', input } });
    stepExecutor(this.#setting, tx, executor, { type: 'pairing.confirmed', fingerprint });
    return { ...row, executor };
  }

  #commit(body: (tx: Transaction) => void): void {
    const tx = new Transaction(this.#database);
    body(tx);
    this.#database.commit(tx);
  }
}
