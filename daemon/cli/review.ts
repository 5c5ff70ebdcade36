/*
 * `review RUN`: the content difference of a draft, on this machine; with --approve the owner confirms exactly what was shown,
 * with --withdraw takes that back.
 *
 * INVARIANT 1  A confirmation names one manifest, all of whose changes were printed in this very command.
 * INVARIANT 2  Nothing of a draft reaches the terminal unescaped.
 */
import { createInterface } from 'node:readline/promises';
import type { RunId } from '../../helpers/protocol/ids.ts';
import { guardOf, guardsOf } from '../../helpers/protocol/guarded.ts';
import { fromPathText } from '../../helpers/protocol/path-text.ts';
import type { DaemonReply } from '../protocol.ts';
import { withdrawConfirmations, writeConfirmation } from './confirmations.ts';
import { readRun } from './drafts.ts';
import { CliFailure } from './failure.ts';
import { askOver, connectOwner } from './owner-client.ts';
import type { OwnerClient } from './owner-client.ts';
import type { Places } from './places.ts';
import { say, sayJson, styled, typed, visible } from './terminal.ts';
import type { Terminal } from './terminal.ts';

type Change = DaemonReply<'daemon.difference'>;

/** How a review is shown. */
export interface ReviewWish {
  readonly approve: boolean;
  readonly isJson: boolean;
  readonly isPaged: boolean;
}

/** Shows a draft and, where wanted, confirms it. Rejects with CliFailure. */
export async function review(terminal: Terminal, places: Places, text: string, wish: ReviewWish): Promise<void> {
  const run = readRun(text);
  const client = await connectOwner(places.stateDir);
  try {
    const changes: Change[] = [];
    const pager = new Pager(terminal, wish.isPaged && !wish.isJson);
    for await (const change of changesOf(client, run)) {
      changes.push(change);
      if (!wish.isJson) await pager.show(linesOf(terminal, change, changes.length));
    }
    const guards = guardsOf(changes.map((change) => fromPathText(change.path)));
    if (wish.isJson)
      sayJson(terminal, {
        run,
        changes: changes.map((change, index) => ({ ...change, guarded: guards[index] ?? null })),
      });
    else sayGuardedByOthers(terminal, changes, guards);
    if (!wish.approve) return;
    if (pager.wasCut) throw new CliFailure('refused', 'the difference was not read to its end; nothing was confirmed');
    await approve({ terminal, places, client, run }, changes);
  } finally {
    client.close();
  }
}

async function* changesOf(client: OwnerClient, run: RunId): AsyncGenerator<Change> {
  let manifest: string | undefined;
  for (let change = 0, count = 1; change < count; change += 1) {
    const shown = await askOver(client, 'daemon.difference', { run, change });
    manifest ??= shown.manifestDigest;
    if (shown.manifestDigest !== manifest) {
      throw new CliFailure('refused', 'the draft changed while it was shown; look at it again');
    }
    count = shown.changeCount;
    yield shown;
  }
}

const guardedBy = (change: Change): string | undefined => guardOf(fromPathText(change.path));

// What is guarded only beside other changes is known when all of them are.
function sayGuardedByOthers(
  terminal: Terminal,
  changes: readonly Change[],
  guards: readonly (string | undefined)[],
): void {
  for (const [index, change] of changes.entries()) {
    const guard = guards[index];
    if (guard === undefined || guardedBy(change) !== undefined) continue;
    say(
      terminal,
      styled(terminal, 'magenta', `runs by itself or decides what runs: ${visible(change.path)}, ${guard}`),
    );
  }
}

/** What holds for every change, said before the answer (S-172). */
const BELONGINGS =
  'A changed file keeps its mode, owner, group, access list and user attributes, but for what is named above; its time is that of the promotion. A renamed file is a new one.';

const SIGNS = { created: ['+', 'green'], modified: ['~', 'yellow'], deleted: ['-', 'red'] } as const;
const REASONS = {
  binary: 'binary content; compare the files themselves',
  'too-large': 'too large to be shown line by line',
  directory: 'a folder',
  'mode-only': 'the content is the same',
} as const;

function linesOf(terminal: Terminal, change: Change, number: number): string[] {
  const [sign, style] = SIGNS[change.kind];
  const guard = guardedBy(change);
  const head = `${number}/${change.changeCount} ${sign} ${visible(change.path)}${change.type === 'directory' ? '/' : ''}`;
  const lines = ['', styled(terminal, ['bold', style], head)];
  if (guard !== undefined)
    lines.push(styled(terminal, ['bold', 'magenta'], `  runs by itself or decides what runs: ${guard}`));
  const { modeBefore, modeAfter, difference, lost } = change;
  if (modeBefore !== modeAfter) lines.push(`  mode ${modeBefore ?? 'none'} -> ${modeAfter ?? 'none'}`);
  if (lost !== undefined)
    lines.push(styled(terminal, 'magenta', `  the new file will not have: ${visible(lost.join(', '))}`));
  if (difference.shown === 'nothing') return [...lines, `  ${REASONS[difference.reason]}`];
  lines.push(...hunksOf(difference.text).map((line) => colouredLine(terminal, visible(line))));
  if (difference.truncated) lines.push(styled(terminal, 'magenta', '  … the rest is too long to be shown'));
  return lines;
}

// The lines from the first hunk on: the path stands above, and what follows is told apart by its first character alone.
function hunksOf(text: string): string[] {
  const lines = text.trimEnd().split('\n');
  const first = lines.findIndex((line) => line.startsWith('@@'));
  return first === -1 ? [] : lines.slice(first);
}

const LINE_STYLES: ReadonlyMap<string, 'green' | 'red' | 'cyan'> = new Map([
  ['+', 'green'],
  ['-', 'red'],
  ['@', 'cyan'],
]);

function colouredLine(terminal: Terminal, line: string): string {
  const style = LINE_STYLES.get(line.slice(0, 1));
  return style === undefined ? line : styled(terminal, style, line);
}

/** Prints lines a screen at a time; no other program is started to show what an agent wrote. */
class Pager {
  readonly #terminal: Terminal;
  readonly #isPaged: boolean;
  #printed = 0;
  wasCut = false;

  constructor(terminal: Terminal, isPaged: boolean) {
    this.#terminal = terminal;
    this.#isPaged = isPaged && terminal.out.isTTY && terminal.input.isTTY;
  }

  async show(lines: readonly string[]): Promise<void> {
    if (this.wasCut) return;
    for (const line of lines) {
      if (this.#isPaged && !(await this.#fits(line))) return;
      say(this.#terminal, line);
    }
  }

  async #fits(line: string): Promise<boolean> {
    // A terminal that states no size has none; most are at least this large.
    const [rows, columns] = [this.#terminal.out.rows || 24, this.#terminal.out.columns || 80];
    const height = Math.max(1, Math.ceil(line.length / columns));
    if (this.#printed + height > rows - 1 && !(await this.#goOn())) return false;
    this.#printed += height;
    return true;
  }

  async #goOn(): Promise<boolean> {
    this.#printed = 0;
    const asked = createInterface({ input: this.#terminal.input, output: this.#terminal.out });
    try {
      this.wasCut = (await asked.question('-- Enter for more, q to stop --')).trim() === 'q';
      return !this.wasCut;
    } finally {
      asked.close();
    }
  }
}

interface Approving {
  readonly terminal: Terminal;
  readonly places: Places;
  readonly client: OwnerClient;
  readonly run: RunId;
}

async function approve({ terminal, places, client, run }: Approving, changes: readonly Change[]): Promise<void> {
  const [first] = changes;
  if (!first) throw new CliFailure('refused', 'there is nothing to confirm in this draft');
  const { manifestDigest } = first;
  const guards = guardsOf(changes.map((change) => fromPathText(change.path)));
  const guarded = changes.filter((_, index) => guards[index] !== undefined).map((change) => change.path);
  say(terminal, '');
  say(terminal, `${changes.length} changes, manifest ${manifestDigest}`);
  say(terminal, BELONGINGS);
  for (const name of guarded) say(terminal, styled(terminal, 'magenta', `  guarded: ${visible(name)}`));
  const digits = manifestDigest.slice(0, 8);
  if (!(await typed(terminal, `Type ${digits} to confirm exactly these changes on this machine:`, digits))) {
    throw new CliFailure('refused', 'nothing was confirmed');
  }
  const { rootIdentity } = await askOver(client, 'daemon.root', {});
  writeConfirmation(places, {
    version: 1,
    run,
    manifestDigest,
    rootIdentity: Buffer.from(rootIdentity).toString('hex'),
    guarded,
    at: Date.now(),
  });
  say(
    terminal,
    'Confirmed on this machine, for one promotion within an hour. The person on the page approves it there.',
  );
  say(terminal, 'To take it back before that: `nessie-executor review RUN --withdraw`.');
}

/** Takes back what was confirmed of a draft; no daemon is needed. A promotion that has begun is not stopped by it. Throws CliFailure: refused where nothing was confirmed. */
export function withdraw(terminal: Terminal, places: Places, text: string): void {
  if (withdrawConfirmations(places, readRun(text)) === 0)
    throw new CliFailure('refused', 'nothing is confirmed of that run');
  say(terminal, 'Taken back. Nothing of that run is applied before it is confirmed here again.');
}
