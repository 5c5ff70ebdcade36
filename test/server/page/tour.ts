/*
 * A furnished world: a real machine with a draft under review, and machines in each other state, so that every view has something
 * to show. Used by the tests of all views and by the screenshots of the documentation.
 */
import { Agent } from '../../../daemon/demo/agent.ts';
import type { Person } from '../../../daemon/demo/person.ts';
import { confirmDescriptor, giveAccess, pair } from '../../../daemon/demo/settle.ts';
import { machineDescriptor } from '../../fakes/fake-machine.ts';
import { digestOfClaim, PairingMachine } from '../governance.ts';
import { Machine } from './machine.ts';
import { OWNER, World } from './world.ts';

/** The project of the real machine. */
export const FILES = {
  'README.md': '# Harbour survey\n\nDepths of the north basin, one line a sounding.\n',
  'src/soundings.ts': [
    'export interface Sounding {',
    '  readonly at: string;',
    '  readonly metres: number;',
    '}',
    '',
    'export function mean(soundings: readonly Sounding[]): number {',
    '  let sum = 0;',
    '  for (const sounding of soundings) sum += sounding.metres;',
    '  return sum / soundings.length;',
    '}',
    '',
  ].join('\n'),
  'data/north-basin.csv': 'at,metres\n09:00,4.2\n09:10,4.4\n',
  'notes.txt': 'old notes\n',
} as const;

/** What the tour's addresses are made of. */
export interface Tour {
  readonly world: World;
  readonly owner: Person;
  readonly machine: Machine;
  readonly agent: Agent;
  readonly executor: string;
  readonly agentId: string;
  readonly run: string;
  readonly review: string;
  readonly pairing: string;
  readonly enrolment: string;
  /** Name of each view with its address. */
  readonly views: Readonly<Record<string, string>>;
  stop(): Promise<void>;
}

/** Furnishes a world; everything goes through the routes that people and machines use. */
export async function furnish(): Promise<Tour> {
  const world = await World.start();
  const owner = await world.setUp();
  const machine = await Machine.start(world, 'workshop-desk', FILES);
  const { executor } = await pair(owner, machine.places, machine.name);
  await confirmDescriptor(owner, machine.places, executor, OWNER.password);
  const access = await giveAccess(owner, executor, 'Claude');
  const agent = new Agent(access.endpoint, access.token);
  await agent.connect();
  await draft(agent);
  const { runs } = await owner.get<{ runs: { run: string }[] }>('/api/page/runs');
  const run = runs[0]?.run ?? '';
  const { review } = await owner.post<{ review: string }>(`/api/page/runs/${run}/review`);
  const team = (await owner.get<{ teams: { id: string }[] }>('/api/page/organisation')).teams[0]?.id ?? '';
  await pairBare(world, owner, team, 'Build server', 'organization');
  const pairing = await pairBare(world, owner, team, 'Ferry laptop', 'private', 'claim');
  const wish = { label: 'Rack 4', scope: 'organization', team, project: null };
  const { pairing: enrolment } = await owner.post<{ pairing: string }>('/api/page/enrolments', wish);
  await owner.post('/api/page/people', { login: 'isla', name: 'Isla Grant', role: 'member', team });
  await owner.post('/api/page/agents', { name: 'Night shift' });
  return {
    world,
    owner,
    machine,
    agent,
    executor,
    agentId: access.agent,
    run,
    review,
    pairing,
    enrolment,
    views: viewsOf({ executor, run, review, pairing, agent: access.agent }),
    stop: async () => {
      await agent.close().catch(() => undefined);
      await machine.stop();
      await world.stop();
    },
  };
}

function viewsOf(ids: Readonly<Record<'executor' | 'run' | 'review' | 'pairing' | 'agent', string>>) {
  const machine = `/machines/${ids.executor}`;
  return {
    machines: '/',
    machine,
    'machine-agents': `${machine}/agents`,
    'machine-sharing': `${machine}/sharing`,
    'machine-runs': `${machine}/runs`,
    descriptor: `${machine}/review`,
    pair: '/machines/pair',
    enrol: '/machines/enrol',
    pairing: `/pairings/${ids.pairing}`,
    runs: '/runs',
    launch: '/runs/launch',
    run: `/runs/${ids.run}`,
    reviews: '/reviews',
    review: `/reviews/${ids.review}`,
    agents: '/agents',
    agent: `/agents/${ids.agent}`,
    people: '/people',
    history: '/history',
    account: '/account',
    unknown: '/nowhere',
  };
}

/** What the agent of the tour writes. */
async function draft(agent: Agent): Promise<void> {
  const does = async (name: string, input: Record<string, unknown>): Promise<void> => {
    const answer = await agent.call(name, input);
    if (answer.failed) throw new Error(`${name}: ${answer.text}`);
  };
  await does('file_list', {});
  await does('file_read', { path: 'src/soundings.ts' });
  const content = FILES['src/soundings.ts'].replace(
    '  let sum = 0;\n',
    '  if (soundings.length === 0) return Number.NaN;\n  let sum = 0;\n',
  );
  await does('file_write', { path: 'src/soundings.ts', content, overwrite: true });
  await does('file_write', { path: 'check.sh', content: '#!/bin/sh\nset -eu\nnode --test\n' });
  await does('file_chmod', { path: 'check.sh', executable: true });
  await does('file_delete', { path: 'notes.txt' });
  await agent.call('file_read', { path: '../outside' });
}

/** A machine that is nothing but its key: paired and never seen again, or claimed and not confirmed. */
async function pairBare(
  world: World,
  owner: Person,
  team: string,
  label: string,
  scope: string,
  until: 'confirm' | 'claim' = 'confirm',
): Promise<string> {
  const bare = new PairingMachine(world.origin, Date);
  bare.descriptor = machineDescriptor({ rootName: 'work' });
  const { body } = await bare.start();
  const { pairing } = await owner.post<{ pairing: string }>('/api/page/pairings/lookup', { code: body.code });
  await owner.post(`/api/page/pairings/${pairing}/claim`, {
    label,
    scope,
    team,
    project: null,
    fingerprint: bare.fingerprint,
  });
  if (until === 'claim') return pairing;
  const claimed = await bare.poll(pairing);
  await bare.confirm(pairing, digestOfClaim(claimed.body.claim));
  return pairing;
}
