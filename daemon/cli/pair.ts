/*
 * `pair`: sets up, starts a daemon for the length of the pairing where none runs, shows the code and both keys, and pins the
 * control plane's key after the person's answer.
 */
import os from 'node:os';
import { setTimeout as later } from 'node:timers/promises';
import { canonicalBytes } from '../../helpers/protocol/descriptor.ts';
import { sha256 } from '../../helpers/protocol/signed.ts';
import type { PairingState } from '../protocol.ts';
import { CliFailure } from './failure.ts';
import { askOver, connectOwner } from './owner-client.ts';
import type { OwnerClient } from './owner-client.ts';
import type { Places } from './places.ts';
import { ruleOfNewPin } from './promotion-rule.ts';
import { isPaired, readPin, readSetUp, requireSetUp, writePin, writeSetUp } from './set-up.ts';
import type { PairedState } from './set-up.ts';
import { installationFolder, withDaemon } from './supervised.ts';
import { columns, grouped, say, styled, typed, visible } from './terminal.ts';
import type { Terminal } from './terminal.ts';

/** What the owner said on the command line. */
export interface PairWish {
  readonly origin?: string | undefined;
  readonly root?: readonly string[] | undefined;
  readonly ca?: string | undefined;
  readonly machineName?: string | undefined;
  readonly request?: string | undefined;
  readonly challenge?: string | undefined;
  readonly wholeHome?: boolean | undefined;
  readonly qr?: boolean | undefined;
  readonly replace?: boolean | undefined;
}

const POLL_MS = 500;

/** Pairs this machine. Rejects with CliFailure: refused, failed, usage. */
export async function pair(terminal: Terminal, places: Places, wish: PairWish): Promise<void> {
  if (isPaired(places) && wish.replace !== true) {
    throw new CliFailure(
      'refused',
      'this machine is paired already; `nessie-executor forget` ends that, `pair --replace` pairs it anew in its place',
    );
  }
  const begin = beginning(wish);
  const isFirst = readSetUp(places) === undefined;
  setUp(places, wish);
  const before = readPin(places)?.executor;
  await withDaemon(places, async (isOwn) => {
    const client = await connectOwner(places.stateDir);
    try {
      const following = { terminal, places, client, before, withQr: wish.qr !== false };
      // Where nothing was ever set up, nothing can wait to be resumed.
      await follow(
        following,
        isFirst ? await askOver(client, 'daemon.pair', begin) : await firstState(following, begin),
      );
    } finally {
      client.close();
    }
    if (isOwn) say(terminal, `Start it with ${styled(terminal, 'bold', 'nessie-executor daemon')}.`);
  });
}

const UNFINISHED: ReadonlySet<PairingState['state']> = new Set(['sending', 'offered', 'claimed']);

// A pairing that this program did not see to its end, because it was cut off, is finished before another one can begin.
async function firstState({ terminal, client, before }: Following, begin: Beginning): Promise<PairingState> {
  const standing = await resumedState(client);
  if (standing.state === 'paired' && standing.executor !== before) return standing;
  if (!UNFINISHED.has(standing.state)) return askOver(client, 'daemon.pair', begin);
  say(terminal, 'An earlier pairing of this machine still waits; it is continued. `pair --cancel` ends it.');
  return standing;
}

/** Longest time in ms from a daemon's first answer until it has resumed what its records hold. */
const RESUME_MS = 3000;

async function resumedState(client: OwnerClient): Promise<PairingState> {
  const deadline = performance.now() + RESUME_MS;
  for (;;) {
    const standing = await askOver(client, 'daemon.pairing', {});
    if (standing.state !== 'none' || performance.now() > deadline) return standing;
    await later(POLL_MS / 5);
  }
}

/** Cancels a pairing that is not finished, on both sides. Rejects with CliFailure: refused where there is none. */
export async function cancelPairing(terminal: Terminal, places: Places): Promise<void> {
  requireSetUp(places);
  await withDaemon(places, async () => {
    const client = await connectOwner(places.stateDir);
    try {
      await resumedState(client);
      let standing = await askOver(client, 'daemon.pair-cancel', {});
      while (UNFINISHED.has(standing.state)) {
        await later(POLL_MS);
        standing = await askOver(client, 'daemon.pairing', {});
      }
    } finally {
      client.close();
    }
  });
  say(terminal, 'Cancelled; nothing was pinned.');
}

type Beginning = Parameters<typeof askOver<'daemon.pair'>>[2];

function beginning({ request, challenge, machineName = os.hostname(), replace = false }: PairWish): Beginning {
  const name = machineName.slice(0, 64);
  if (request === undefined && challenge === undefined) return { flow: 'code', machineName: name, replace };
  if (replace) {
    throw new CliFailure(
      'usage',
      'a pairing is replaced in the code flow, where the old key signs too; leave --request out',
    );
  }
  if (request === undefined || !/^req_[0-9a-f]{32}$/.test(request)) {
    throw new CliFailure('usage', '--request is not the request that the page showed: req_ and 32 hexadecimal digits');
  }
  const bytes = Buffer.from(challenge ?? '', 'base64url');
  if (bytes.length !== 32 || bytes.toString('base64url') !== challenge) {
    throw new CliFailure('usage', '--challenge is not the challenge that the page showed: 43 letters, digits, - and _');
  }
  return { flow: 'enrolment', machineName: name, requestId: request, challenge: bytes };
}

function setUp(places: Places, { origin, root = [], ca, wholeHome = false }: PairWish): void {
  const before = readSetUp(places);
  const [folder = before?.root, second] = root;
  if (second !== undefined) {
    throw new CliFailure(
      'usage',
      'an executor has one root; name one folder, and pair again under another --name for the other',
    );
  }
  if (folder === undefined)
    throw new CliFailure('usage', 'say --root FOLDER: the one folder that agents may read and draft changes for');
  const chosen = origin ?? before?.origin;
  if (chosen === undefined)
    throw new CliFailure('usage', 'say --origin https://NAME: the address of your control plane');
  const caFile = ca ?? before?.caFile;
  const installation = installationFolder();
  writeSetUp({
    places,
    origin: chosen,
    root: folder,
    wholeHome,
    installation,
    ...(caFile !== undefined && { caFile }),
  });
}

interface Following {
  readonly terminal: Terminal;
  readonly places: Places;
  readonly client: OwnerClient;
  /** Executor of the pin before this, which a replacement ends. */
  readonly before: string | undefined;
  readonly withQr: boolean;
}

// Follows the pairing from state to state; a state is shown when it is new.
async function follow(following: Following, first: PairingState): Promise<void> {
  const { terminal, client } = following;
  let shown = '';
  let confirmed: string | undefined;
  for (let state = first; ; state = await askOver(client, 'daemon.pairing', {})) {
    if (state.state === 'paired' && state.executor === following.before) {
      throw new CliFailure('refused', 'the pairing was not replaced; the one before stands as it was');
    }
    if (state.state === 'paired') return finish(following, state, confirmed);
    if (state.state === 'ended') throw ending(state);
    const key = JSON.stringify(state);
    if (key !== shown) {
      shown = key;
      if (state.state === 'sending') say(terminal, sendingLine(state));
      if (state.state === 'offered') await showOffer(following, state);
      if (state.state === 'claimed' && (await confirmClaim(following, state))) confirmed = state.commandKeyFingerprint;
    }
    await later(POLL_MS);
  }
}

type Named<State extends PairingState['state']> = Extract<PairingState, { readonly state: State }>;

function sendingLine({ attempt, problem }: Named<'sending'>): string {
  if (problem === null) return 'Asking the control plane …';
  return `No answer yet (${problem}), attempt ${attempt}; the same request is sent again.`;
}

async function showOffer({ terminal, places, withQr }: Following, offer: Named<'offered'>): Promise<void> {
  const origin = readSetUp(places)?.origin ?? '';
  const rows = [
    ['this machine', grouped(offer.fingerprint)],
    ['control plane', grouped(offer.commandKeyFingerprint)],
    ['valid until', new Date(offer.expiresAt).toLocaleTimeString()],
  ];
  if (offer.code === null) {
    say(terminal, `On the page, compare and confirm the key of this machine:`);
  } else {
    const page = `${origin}/machines/pair`;
    if (withQr && terminal.out.isTTY) say(terminal, (await import('uqr')).renderUnicodeCompact(page));
    say(
      terminal,
      `Open ${page} and type  ${styled(terminal, 'bold', `${offer.code.slice(0, 4)} ${offer.code.slice(4)}`)}`,
    );
  }
  for (const line of columns(rows)) say(terminal, `  ${line}`);
}

async function confirmClaim({ terminal, client }: Following, state: Named<'claimed'>): Promise<boolean> {
  const { claim, claimDigest } = state;
  say(terminal, 'Somebody signed in on the page wants this machine:');
  const rows = [
    ['label', visible(claim.label)],
    ['organisation', visible(claim.organisationName)],
    ['team', visible(claim.teamName)],
    ['who may use it', claim.scope],
    ['executor', claim.executor],
    ['this machine', grouped(state.fingerprint)],
    ['control plane', grouped(state.commandKeyFingerprint)],
  ];
  for (const line of columns(rows)) say(terminal, `  ${line}`);
  const isYes = await typed(
    terminal,
    'Both keys are shown on the page too. Type "yes" if all of this is right:',
    'yes',
  );
  await askOver(client, 'daemon.pair-answer', { answer: isYes ? 'confirm' : 'reject', claimDigest });
  return isYes;
}

async function finish(
  { terminal, places, client }: Following,
  paired: PairedState,
  confirmed: string | undefined,
): Promise<void> {
  const fingerprint = sha256(paired.commandKey).toString('hex');
  // THREAT: a daemon that was taken over between answer and pin offers another command key; the person confirmed this one.
  if (confirmed !== undefined && confirmed !== fingerprint) {
    throw new CliFailure('violation', 'the control plane’s key is not the one that you confirmed; nothing was pinned');
  }
  if (confirmed === undefined) {
    say(terminal, `The control plane’s key is ${grouped(fingerprint)}.`);
    const isYes = await typed(terminal, 'Type "yes" if the page shows the same key:', 'yes');
    if (!isYes) throw new CliFailure('refused', 'nothing was pinned; `nessie-executor forget` ends this pairing');
  }
  writePin({ places, paired, confirm: ruleOfNewPin(places) });
  const claimDigest = sha256(canonicalBytes(paired.claim)).toString('hex');
  await askOver(client, 'daemon.pair-answer', { answer: 'confirm', claimDigest });
  say(
    terminal,
    `${styled(terminal, 'green', 'Paired')} as ${paired.executor}. File operations wait until a person confirms the description of this machine on the page.`,
  );
}

function ending({ outcome, code }: Named<'ended'>): CliFailure {
  if (outcome === 'failed') return new CliFailure('failed', `the pairing failed (${code}); nothing was pinned`);
  return new CliFailure('refused', `the pairing was ${outcome} (${code}); nothing was pinned`);
}
