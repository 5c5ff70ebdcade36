/*
 * `history` and `undo ID`: the promotions that are kept on this machine, and taking one back. What the owner confirms here is
 * written where `promote` reads it; the daemon only carries the wish.
 */
import { promotionIdSchema } from '../../helpers/protocol/ids.ts';
import type { PromotionId } from '../../helpers/protocol/ids.ts';
import type { Past, UndoPlan, UndoRefusal } from '../../helpers/protocol/history-facts.ts';
import type { Policy } from '../../helpers/protocol/policy.ts';
import { PolicyInvalid } from '../config.ts';
import type { DaemonReply } from '../protocol.ts';
import { removeConfirmation, writeUndoConfirmation } from './confirmations.ts';
import { CliFailure } from './failure.ts';
import { askDaemon, askOver, connectOwner } from './owner-client.ts';
import type { OwnerClient } from './owner-client.ts';
import type { Places } from './places.ts';
import { historyRule } from './policy.ts';
import { readPolicy } from './set-up.ts';
import { columns, counted, say, sayJson, styled, typed, visible, withProgress } from './terminal.ts';
import type { Terminal } from './terminal.ts';

/** Whole files are read and written: nobody can say how long that takes. */
const WORK_MS = 3_600_000;

/** Why a promotion cannot be undone, and what may be done about it; the codes are in docs/codes.md. */
const REASONS: Partial<Record<UndoRefusal['code'], readonly [why: string, remedy: string]>> = {
  PROMOTION_CONFLICT: [
    'changed since',
    'make it again what the promotion left, undo what changed it, or change the files by hand',
  ],
  PROMOTION_UNSAFE_PATH: [
    'not safe to change',
    'see that it is of the kind that the promotion left, yours, under one name and writable',
  ],
  PROMOTION_UNSAFE_ROOT: ['made in another root', 'choose that root again: `nessie-executor policy root FOLDER`'],
  PROMOTION_IN_USE: ['open for writing', 'close the program that writes it, and run this again'],
  PROMOTION_JOURNAL_INVALID: ['what is kept of it is damaged', 'take the files from a backup'],
  PROMOTION_RECOVERY_REQUIRED: ['an earlier promotion waits for a person', 'run `nessie-executor repair`'],
  PROMOTION_IO_FAILURE: ['the disk refused', 'make room or look at the disk, and run this again'],
  PROMOTION_CONFIRMATION_REQUIRED: ['not confirmed here, or too long ago', 'run this again'],
  UNDO_UNKNOWN: ['not kept', '`nessie-executor history` lists what is'],
  UNDO_WAITING: ['an old file may still be written to', 'close the program that has it open, and try again later'],
  UNDO_DONE: ['undone already', '`nessie-executor history` shows the undo, which can be undone itself'],
  UNDO_NOT_KEPT: ['its old files were not kept', 'take the files from a backup'],
};

function reasonOf({ code, detail }: UndoRefusal): readonly [why: string, remedy: string] {
  const [why, remedy] = REASONS[code] ?? [`refused as ${code}`, 'docs/codes.md says what that means'];
  return [detail === undefined ? why : `${why}: ${detail}`, remedy];
}

/** Lists the kept promotions, newest first, each with whether it can be undone now. */
export async function listHistory(terminal: Terminal, places: Places, isJson: boolean): Promise<void> {
  const asked = askDaemon(places.stateDir, 'daemon.history', {}, WORK_MS);
  const { promotions } = await withProgress(terminal, 'looking at the history', asked);
  const limits = limitsIn(places);
  if (isJson) return sayJson(terminal, { limits: limits ?? null, promotions });
  if (promotions.length === 0) say(terminal, 'No promotion is kept on this machine.');
  else for (const line of columns([TITLES, ...promotions.map(rowOf)])) say(terminal, line);
  const rule = limits ? historyRule(limits) : 'nothing is forgotten while policy.json cannot be used';
  return say(terminal, `By "history" in policy.json ${rule}.`);
}

const TITLES = ['ID', 'WHEN', 'RUN', 'CHANGES', 'KEPT', 'UNDO'];

function rowOf({ promotion, facts, fileCount, byteCount, refusal }: Past): string[] {
  const kept = `${counted(fileCount, 'file')}, ${counted(byteCount, 'byte')}`;
  const path = refusal?.path === undefined ? '' : `: ${visible(refusal.path)}`;
  const verdict = refusal === null ? 'can be undone' : `no, ${reasonOf(refusal)[0]}${path}`;
  if (facts === null) return [promotion, '?', '?', '?', kept, verdict];
  const undoes = facts.undoes === null ? '' : `, undo of ${facts.undoes}`;
  return [promotion, localTime(facts.at), visible(facts.run), `${facts.changeCount}${undoes}`, kept, verdict];
}

/** Date and time as the clock of this machine shows them, largest unit first. */
function localTime(at: number): string {
  return new Intl.DateTimeFormat('sv-SE', { dateStyle: 'short', timeStyle: 'medium' }).format(at);
}

function limitsIn(places: Places): Policy['history'] | undefined {
  try {
    return readPolicy(places).history;
  } catch (error) {
    if (error instanceof PolicyInvalid || error instanceof CliFailure) return undefined;
    throw error;
  }
}

/** How an undo is asked for. */
export interface UndoWish {
  readonly isJson: boolean;
  readonly isConfirmed: boolean;
}

/** Shows what taking a promotion back would change, and does it once the owner said so. Rejects with CliFailure. */
export async function undo(terminal: Terminal, places: Places, text: string, wish: UndoWish): Promise<void> {
  const promotion = readPromotion(text);
  if (wish.isJson && !wish.isConfirmed) throw new CliFailure('usage', '--json asks nobody; say --yes as well');
  const client = await connectOwner(places.stateDir);
  try {
    const plan = await withProgress(terminal, 'looking at the files', planOf(client, promotion));
    if (plan.outcome === 'refused') return refuse({ terminal, promotion, wish }, plan);
    if (!wish.isJson) sayPlan(terminal, plan);
    if (!wish.isConfirmed) await askPerson(terminal, promotion);
    const { journalDigest, rootIdentity } = plan;
    writeUndoConfirmation(places, { version: 1, undo: promotion, journalDigest, rootIdentity, at: Date.now() });
    try {
      const asked = askOver(client, 'daemon.undo', { promotion }, WORK_MS);
      tell({ terminal, promotion, wish }, plan, await withProgress(terminal, 'undoing', asked));
    } finally {
      removeConfirmation(places, journalDigest);
    }
  } finally {
    client.close();
  }
}

function readPromotion(text: string): PromotionId {
  const promotion = promotionIdSchema.safeParse(text);
  if (promotion.success) return promotion.data;
  const sentence = 'that is no promotion; `nessie-executor history` lists them (prm_ and 32 hexadecimal digits)';
  throw new CliFailure('usage', sentence);
}

type Possible = Extract<UndoPlan, { outcome: 'possible' }>;
type Refused = Extract<UndoPlan, { outcome: 'refused' }>;

/** The whole plan, which comes in pieces. */
async function planOf(client: OwnerClient, promotion: PromotionId): Promise<Possible | Refused> {
  const ask = (from: number): Promise<UndoPlan> => askOver(client, 'daemon.undo-plan', { promotion, from }, WORK_MS);
  const first = await ask(0);
  if (first.outcome === 'refused') return first;
  const changes = [...first.changes];
  while (changes.length < first.changeCount) {
    const next = await ask(changes.length);
    if (next.outcome === 'refused') return next;
    if (next.journalDigest !== first.journalDigest || next.changes.length === 0)
      throw new CliFailure('refused', 'the history changed while it was shown; look at it again');
    changes.push(...next.changes);
  }
  return { ...first, changes };
}

const SIGNS = {
  created: ['+', 'green', 'comes back'],
  modified: ['~', 'yellow', 'gets its old content and mode back'],
  deleted: ['-', 'red', 'goes away'],
} as const;

function sayPlan(terminal: Terminal, { changes }: Possible): void {
  for (const { path, kind, type } of changes) {
    const [sign, style, means] = SIGNS[kind];
    const name = `${visible(path)}${type === 'directory' ? '/' : ''}`;
    say(terminal, `${styled(terminal, style, `${sign} ${name}`)}  ${means}`);
  }
  if (changes.some(({ kind, type }) => kind === 'created' && type === 'file'))
    say(
      terminal,
      'A file that comes back has its bytes, mode and time; its group is yours, other attributes are not kept.',
    );
}

async function askPerson(terminal: Terminal, promotion: PromotionId): Promise<void> {
  if (!terminal.input.isTTY || !terminal.out.isTTY)
    throw new CliFailure('refused', 'a person must answer this at a terminal; where none sits, say --yes');
  const digits = promotion.slice(-8);
  if (!(await typed(terminal, `Type ${digits} to undo this promotion:`, digits)))
    throw new CliFailure('refused', 'nothing was undone');
}

interface Asked {
  readonly terminal: Terminal;
  readonly promotion: PromotionId;
  readonly wish: UndoWish;
}

function tell(asked: Asked, { changes }: Possible, ended: DaemonReply<'daemon.undo'>): void {
  const { terminal, promotion, wish } = asked;
  if (ended.outcome === 'refused') return refuse(asked, ended);
  if (wish.isJson) sayJson(terminal, { promotion, ...ended, changes });
  if (ended.outcome === 'unknown') {
    const sentence = 'nobody can say yet how the undo ended; `nessie-executor history` does once it is settled';
    throw new CliFailure('failed', sentence);
  }
  if (!wish.isJson) for (const path of ended.kept) say(terminal, `kept beside: ${visible(path)}`);
  if (ended.outcome === 'rolled-back') {
    if (!wish.isJson) sayPath(terminal, ended);
    const [why, remedy] = reasonOf(ended);
    throw new CliFailure('failed', `the undo was begun and taken back whole (${why}); ${remedy}`);
  }
  if (wish.isJson) return;
  if (ended.notKept === undefined)
    return say(terminal, 'Undone. `nessie-executor history` shows the undo, which can be undone itself.');
  return say(
    terminal,
    `Undone. The disk was full: ${counted(ended.notKept, 'old file')} could not be kept, so this undo cannot be undone itself.`,
  );
}

function refuse({ terminal, promotion, wish }: Asked, refusal: UndoRefusal): never {
  const { code, path, detail } = refusal;
  if (wish.isJson) sayJson(terminal, { promotion, outcome: 'refused', code, path, detail });
  else sayPath(terminal, refusal);
  const [why, remedy] = reasonOf(refusal);
  throw new CliFailure('refused', `it cannot be undone (${why}); ${remedy}`);
}

// On standard output: the sentence of a failure names no path.
function sayPath(terminal: Terminal, { code, path }: UndoRefusal): void {
  if (path !== undefined) say(terminal, `${reasonOf({ code })[0]}: ${visible(path)}`);
}
