/*
 * From two started programs to an agent at work: both people's parts of the pairing, the review of what the machine states,
 * and access for one agent. Each step goes through the route or the request that the page and the command line use.
 */
import type { Places } from '../cli/places.ts';
import { askDaemon } from '../cli/owner-client.ts';
import { readPolicy, writePin } from '../cli/set-up.ts';
import type { PairingState } from '../protocol.ts';
import { until } from './children.ts';
import type { Person } from './person.ts';

const PERSON_MS = 20_000;

/** A machine and an agent that may use it. */
export interface Settled {
  readonly executor: string;
  readonly agent: string;
  readonly endpoint: string;
  readonly token: string;
}

/** What a pairing shows to both people; equal on both sides or somebody lies. */
export interface Compared {
  readonly fingerprint: string;
  readonly commandKeyFingerprint: string;
}

/** Pairs by eight digits. Rejects when what the two sides show is not the same. */
export async function pair(
  person: Person,
  places: Places,
  machineName: string,
): Promise<{ executor: string; compared: Compared }> {
  await askDaemon(places.stateDir, 'daemon.pair', { flow: 'code', machineName });
  const offered = await pairingState(places, 'offered');
  const shown = await person.post<{ pairing: string; fingerprint: string }>('/api/page/pairings/lookup', {
    code: offered.code,
  });
  const { server } = await person.get<{ server: { commandKeyFingerprint: string } }>('/api/page/session');
  if (shown.fingerprint !== offered.fingerprint)
    throw new Error('the machine and the page show different machine keys');
  if (server.commandKeyFingerprint !== offered.commandKeyFingerprint)
    throw new Error('the machine and the page show different command keys');
  const { teams } = await person.get<{ teams: { id: string }[] }>('/api/page/organisation');
  const destination = { label: machineName, scope: 'private', team: teams[0]?.id, fingerprint: shown.fingerprint };
  await person.post(`/api/page/pairings/${shown.pairing}/claim`, destination);
  const claimed = await pairingState(places, 'claimed');
  await askDaemon(places.stateDir, 'daemon.pair-answer', { answer: 'confirm', claimDigest: claimed.claimDigest });
  const paired = await pairingState(places, 'paired');
  writePin({ places, paired, confirm: readPolicy(places).promotion.confirm });
  return {
    executor: paired.executor,
    compared: { fingerprint: offered.fingerprint, commandKeyFingerprint: offered.commandKeyFingerprint },
  };
}

/** Reviews what the machine states now and confirms it with the password; resolves once the machine has heard of it. */
export async function confirmDescriptor(
  person: Person,
  places: Places,
  executor: string,
  password: string,
): Promise<{ facts: number }> {
  const path = `/api/page/executors/${executor}/descriptor`;
  const pending = await until('a descriptor to review', PERSON_MS, async () => {
    const review = await person.get<{ pending: { revision: number; digest: string; differences: unknown[] } | null }>(
      path,
    );
    const { revision } = await askDaemon(places.stateDir, 'daemon.status', {});
    // One that the machine has replaced by now is refused as soon as its successor arrives.
    return review.pending?.revision === revision.stated ? review.pending : undefined;
  });
  await person.post(path, { revision: pending.revision, digest: pending.digest, answer: 'confirm', password });
  await until('the machine to hear of the confirmation', PERSON_MS, async () => {
    const { state, revision } = await askDaemon(places.stateDir, 'daemon.status', {});
    return state === 'online' && revision.confirmed === pending.revision;
  });
  return { facts: pending.differences.length };
}

/** Makes an agent with a token and switches its access to the machine on. */
export async function giveAccess(person: Person, executor: string, name: string): Promise<Omit<Settled, 'executor'>> {
  const { projects } = await person.get<{ projects: { id: string }[] }>('/api/page/organisation');
  const { agent } = await person.post<{ agent: string }>('/api/page/agents', { name });
  const issued = await person.post<{ token: string; endpoint: string }>(`/api/page/agents/${agent}/tokens`, {
    project: projects[0]?.id,
    mayOpenRuns: true,
  });
  await person.put(`/api/page/executors/${executor}/agents/${agent}`, { access: 'on' });
  return { agent, token: issued.token, endpoint: issued.endpoint };
}

/** Waits for a state of the machine's pairing; an ended one is a failure with its code. */
async function pairingState<State extends PairingState['state']>(
  places: Places,
  state: State,
): Promise<Extract<PairingState, { state: State }>> {
  return until(`the pairing to be ${state}`, PERSON_MS, async () => {
    const standing = await askDaemon(places.stateDir, 'daemon.pairing', {});
    if (standing.state === 'ended') throw new Error(`the pairing ended: ${standing.code}`);
    // The state was just compared.
    return standing.state === state && (standing as Extract<PairingState, { state: State }>);
  });
}
