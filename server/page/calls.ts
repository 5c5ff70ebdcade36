/*
 * Every call of the page, one line each; paths and answers are the server's.
 */
import type * as Answers from './answers.ts';
import type { Client } from './client.ts';

type Done = { readonly done: true };
type Id = string;

/** Which part of a review is read, as the operation `review.difference` names it. */
export type Part = { readonly of: 'manifest' } | { readonly of: 'before' | 'after'; readonly change: number };
/** What a person decides about a machine they pair: never changed afterwards, but the label is only a name. */
export interface Placement {
  readonly label: string;
  readonly scope: Answers.Scope;
  readonly team: Id;
  readonly project: Id | null;
}

const api = '/api/page';

const one = (executor: Id): string => `${api}/executors/${executor}`;

function query(values: Readonly<Record<string, string | number | undefined>>): string {
  const given = Object.entries(values).flatMap(([name, value]) => (value === undefined ? [] : [[name, String(value)]]));
  return given.length === 0 ? '' : `?${new URLSearchParams(given).toString()}`;
}

function accountCalls(client: Client) {
  return {
    session: () => client.get<Answers.SessionAnswer>(`${api}/session`),
    setUp: (
      first: Readonly<Record<'token' | 'organisation' | 'team' | 'project' | 'login' | 'name' | 'password', string>>,
    ) => client.send<Done>('POST', `${api}/setup`, first),
    signIn: (login: string, password: string) => client.send<Done>('POST', `${api}/sign-in`, { login, password }),
    signInByLink: (token: string) => client.send<Done>('POST', `${api}/sign-in-by-link`, { token }),
    signOut: () => client.send<Done>('POST', `${api}/sign-out`),
    setPassword: (change: { readonly current?: string; readonly next: string }) =>
      client.send<Done>('POST', `${api}/password`, change),
    organisation: () => client.get<Answers.OrganisationAnswer>(`${api}/organisation`),
    invite: (wish: {
      readonly login: string;
      readonly name: string;
      readonly role: 'admin' | 'member';
      readonly team: Id;
    }) => client.send<{ readonly person: Id; readonly address: string }>('POST', `${api}/people`, wish),
    linkFor: (person: Id) => client.send<{ readonly address: string }>('POST', `${api}/people/${person}/link`),
    offboard: (person: Id) => client.send<Done>('POST', `${api}/people/${person}/offboard`),
    makeTeam: (name: string) => client.send<{ readonly team: Id }>('POST', `${api}/teams`, { name }),
    makeProject: (team: Id, name: string) =>
      client.send<{ readonly project: Id }>('POST', `${api}/projects`, { team, name }),
    setTeamMember: (team: Id, person: Id, role: 'admin' | 'member' | null) =>
      client.send<Done>('PUT', `${api}/teams/${team}/members/${person}`, { role }),
    setProjectMember: (project: Id, person: Id, role: Answers.Role | null) =>
      client.send<Done>('PUT', `${api}/projects/${project}/members/${person}`, { role }),
    audit: (before?: number) =>
      client.get<Answers.AuditAnswer>(`${api}/audit${before === undefined ? '' : `?before=${before}`}`),
  };
}

function pairingCalls(client: Client) {
  return {
    lookUp: (code: string) => client.send<Answers.ShownPairing>('POST', `${api}/pairings/lookup`, { code }),
    claim: (pairing: Id, claim: Placement & { readonly fingerprint: string }) =>
      client.send<Answers.ShownPairing>('POST', `${api}/pairings/${pairing}/claim`, claim),
    pairing: (pairing: Id) => client.get<Answers.ShownPairing>(`${api}/pairings/${pairing}`),
    cancelPairing: (pairing: Id) => client.send<Answers.ShownPairing>('POST', `${api}/pairings/${pairing}/cancel`),
    enrol: (wish: Placement) => client.send<Answers.EnrolmentAnswer>('POST', `${api}/enrolments`, wish),
    confirmEnrolment: (pairing: Id, fingerprint: string) =>
      client.send<Answers.ShownPairing>('POST', `${api}/pairings/${pairing}/confirm`, { fingerprint }),
  };
}

function executorCalls(client: Client) {
  return {
    executors: () => client.get<{ readonly executors: readonly Answers.ExecutorSummary[] }>(`${api}/executors`),
    executor: (executor: Id) => client.get<Answers.ExecutorDetail>(one(executor)),
    emergency: () => client.get<Answers.EmergencyAnswer>(`${api}/emergency`),
    act: (executor: Id, action: Answers.ExecutorAction) => client.send<unknown>('POST', `${one(executor)}/${action}`),
    descriptor: (executor: Id) => client.get<Answers.DescriptorReviewAnswer>(`${one(executor)}/descriptor`),
    decide: (
      executor: Id,
      decision: {
        readonly revision: number;
        readonly digest: string;
        readonly answer: 'confirm' | 'refuse';
        readonly password?: string;
      },
    ) => client.send<Done>('POST', `${one(executor)}/descriptor`, decision),
    access: (executor: Id) => client.get<Answers.AgentAccessAnswer>(`${one(executor)}/agents`),
    setAccess: (executor: Id, agent: Id, access: 'on' | 'off') =>
      client.send<Done>('PUT', `${one(executor)}/agents/${agent}`, { access }),
    sharing: (executor: Id) => client.get<Answers.SharingAnswer>(`${one(executor)}/sharing`),
    assign: (executor: Id, person: Id, role: 'use' | 'admin') =>
      client.send<Done>('PUT', `${one(executor)}/people/${person}`, { role }),
    unassign: (executor: Id, person: Id) => client.send<Done>('DELETE', `${one(executor)}/people/${person}`),
    share: (executor: Id, kind: 'project' | 'team', subject: Id) =>
      client.send<Done>('PUT', `${one(executor)}/shares/${kind}/${subject}`, {}),
    unshare: (executor: Id, kind: 'project' | 'team', subject: Id) =>
      client.send<Done>('DELETE', `${one(executor)}/shares/${kind}/${subject}`),
  };
}

function agentCalls(client: Client) {
  return {
    agents: () => client.get<Answers.AgentsAnswer>(`${api}/agents`),
    makeAgent: (name: string) => client.send<{ readonly agent: Id }>('POST', `${api}/agents`, { name }),
    setTools: (agent: Id, operations: readonly string[]) =>
      client.send<Done>('PUT', `${api}/agents/${agent}/tools`, { operations }),
    endAgent: (agent: Id) => client.send<Done>('POST', `${api}/agents/${agent}/end`),
    issueToken: (agent: Id, wish: { readonly project: Id; readonly mayOpenRuns: boolean }) =>
      client.send<Answers.IssuedToken>('POST', `${api}/agents/${agent}/tokens`, wish),
    endToken: (agent: Id, token: Id) => client.send<Done>('DELETE', `${api}/agents/${agent}/tokens/${token}`),
  };
}

function workCalls(client: Client) {
  return {
    runs: (wanted: { readonly executor?: Id; readonly before?: number } = {}) =>
      client.get<{ readonly runs: readonly Answers.RunSummary[]; readonly more: boolean }>(
        `${api}/runs${query(wanted)}`,
      ),
    launch: (wish: { readonly agent: Id; readonly project: Id; readonly executor: Id | null }) =>
      client.send<Answers.RunSummary>('POST', `${api}/runs`, wish),
    run: (run: Id) => client.get<Answers.RunDetail>(`${api}/runs/${run}`),
    stopRun: (run: Id) => client.send<Done>('POST', `${api}/runs/${run}/stop`),
    cancelCommand: (command: Id) => client.send<Done>('POST', `${api}/commands/${command}/cancel`),
    makeReview: (run: Id) => client.send<{ readonly review: Id }>('POST', `${api}/runs/${run}/review`),
    reviews: () => client.get<{ readonly reviews: readonly Answers.ReviewSummary[] }>(`${api}/reviews`),
    review: (review: Id, offset: number) =>
      client.get<Answers.ReviewDetail>(`${api}/reviews/${review}${query({ offset })}`),
    difference: (review: Id, wanted: { readonly recipientKey: string; readonly part: Part; readonly offset: number }) =>
      client.send<Answers.SealedPiece>('POST', `${api}/reviews/${review}/difference`, wanted),
    preparePromotion: (review: Id) =>
      client.send<Answers.PromotionSummary>('POST', `${api}/reviews/${review}/promotion`),
    promotion: (promotion: Id) => client.get<Answers.PromotionSummary>(`${api}/promotions/${promotion}`),
    approve: (promotion: Id, password: string) =>
      client.send<Answers.PromotionSummary>('POST', `${api}/promotions/${promotion}/approve`, { password }),
    cancelPromotion: (promotion: Id) => client.send<Done>('POST', `${api}/promotions/${promotion}/cancel`),
  };
}

/** All calls over one client; each rejects with CallRefused. */
export function createCalls(client: Client) {
  return {
    ...accountCalls(client),
    ...pairingCalls(client),
    ...executorCalls(client),
    ...agentCalls(client),
    ...workCalls(client),
  };
}
/** All calls of the page. */
export type Calls = ReturnType<typeof createCalls>;
