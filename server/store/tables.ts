/*
 * Every table of the control plane as Kysely sees it. Ids and states are text, times are ms since the Unix epoch, digests and
 * keys are bytes, yes and no are 1 and 0. What may be stored is this list and nothing else (N-183).
 */
import type { Generated } from 'kysely';
import type { WorkTables } from '../commands/tables.ts';
import type {
  AgentId,
  ExecutorId,
  OrganisationId,
  PairingId,
  PersonId,
  ProjectId,
  TeamId,
} from '../../helpers/protocol/ids.ts';

/** Yes and no as both dialects keep them. */
export type Flag = 0 | 1;

/** Who an organisation's member is to the organisation. */
export type OrganisationRole = 'owner' | 'admin' | 'member';
/** Who an executor may be used by and administered by at the start; never changes (N-012, N-013). */
export type Scope = 'private' | 'project' | 'organization';

/** The six states of an executor (N-198). */
export type ExecutorState = 'pending_pairing' | 'online' | 'offline' | 'draining' | 'revoked' | 'error';

interface AccountTables {
  organisations: { id: OrganisationId; name: string; createdAt: number };
  teams: { id: TeamId; organisation: OrganisationId; name: string; createdAt: number };
  projects: { id: ProjectId; organisation: OrganisationId; team: TeamId; name: string; createdAt: number };
  people: {
    id: PersonId;
    organisation: OrganisationId;
    login: string;
    name: string;
    role: OrganisationRole;
    active: Flag;
    /** `scrypt$N$r$p$salt$hash`, base64; null where none was set yet. */
    password: string | null;
    /** First sign-in; until then whoever invited may be given another link. */
    enteredAt: number | null;
    createdAt: number;
  };
  teamMembers: { team: TeamId; person: PersonId; role: 'admin' | 'member' };
  projectMembers: { project: ProjectId; person: PersonId; role: 'owner' | 'admin' | 'member' };
  sessions: {
    id: string;
    person: PersonId;
    tokenDigest: Buffer;
    previousDigest: Buffer | null;
    previousUntil: number | null;
    createdAt: number;
    rotatedAt: number;
    seenAt: number;
    /** 1 when it began with a one-time link, which may set a first password. */
    byLink: Flag;
  };
  links: {
    digest: Buffer;
    purpose: 'setup' | 'sign-in';
    person: PersonId | null;
    expiresAt: number;
    usedAt: number | null;
  };
  /** Times of what a limit counted, 8 bytes each; the bucket is a keyed digest, so that no address is stored (N-052). */
  limits: { bucket: Buffer; hits: Buffer; expiresAt: number };
}

interface AgentTables {
  agents: {
    id: AgentId;
    organisation: OrganisationId;
    owner: PersonId;
    name: string;
    createdAt: number;
    endedAt: number | null;
  };
  agentTokens: {
    id: string;
    digest: Buffer;
    agent: AgentId;
    person: PersonId;
    project: ProjectId;
    mayOpenRuns: Flag;
    createdAt: number;
    endedAt: number | null;
  };
  /** The ordinary grant of a logical operation to an agent, whatever the machine (N-092). */
  toolGrants: { agent: AgentId; operation: string; grantedAt: number; grantedBy: PersonId };
}

interface ExecutorTables {
  executors: {
    id: ExecutorId;
    organisation: OrganisationId;
    team: TeamId;
    /** The project of a project executor, null otherwise. */
    project: ProjectId | null;
    scope: Scope;
    label: string;
    /** JSON of the lifecycle as machines/step.ts stores it; the columns below repeat what queries need. */
    stored: string;
    state: ExecutorState;
    epoch: number;
    accepting: Flag;
    listed: Flag;
    publicKey: Buffer | null;
    fingerprint: string | null;
    rotation: number;
    /** Grows with every grant, share and assignment that changes and with every revision that is confirmed (N-146). */
    authorizationRevision: number;
    lastSeenAt: number | null;
    createdAt: number;
    createdBy: PersonId;
  };
  assignments: {
    executor: ExecutorId;
    kind: 'person' | 'agent';
    subject: PersonId | AgentId;
    role: 'use' | 'admin';
    createdAt: number;
    createdBy: PersonId;
  };
  shares: {
    executor: ExecutorId;
    kind: 'project' | 'team';
    subject: ProjectId | TeamId;
    createdAt: number;
    createdBy: PersonId;
  };
  /** Leave of one agent for one operation of one executor (N-091). */
  grants: { executor: ExecutorId; agent: AgentId; operation: string; createdAt: number; createdBy: PersonId };
  descriptors: {
    executor: ExecutorId;
    revision: number;
    digest: Buffer;
    /** Canonical JSON: structural facts only. */
    document: string;
    signedPayload: Buffer;
    signature: Buffer;
    /** JSON of the review as machines/step.ts stores it. */
    stored: string;
    state: 'pending' | 'confirmed' | 'refused' | 'superseded';
    arrivedAt: number;
    decidedAt: number | null;
    decidedBy: PersonId | null;
  };
}

interface PairingTables {
  pairings: {
    id: PairingId;
    flow: 'enrolment' | 'code';
    requestId: string;
    /** Digest over everything the machine stated with its first request. */
    factsDigest: Buffer | null;
    /** JSON of the pairing as machines/step.ts stores it. */
    stored: string;
    state: string;
    codeVerifier: Buffer | null;
    codeAttempt: number;
    challengeVerifier: Buffer | null;
    machineName: string | null;
    publicKey: Buffer | null;
    fingerprint: string | null;
    descriptor: string | null;
    descriptorPayload: Buffer | null;
    descriptorSignature: Buffer | null;
    executor: ExecutorId | null;
    claimedBy: PersonId | null;
    claimedAt: number | null;
    replaces: ExecutorId | null;
    /** Highest guard of its machine's statements; null before the first. */
    guard: number | null;
    createdAt: number;
    expiresAt: number;
  };
}

interface AuditTables {
  audit: {
    sequence: number;
    at: number;
    action: string;
    organisation: string | null;
    person: string | null;
    agent: string | null;
    assistant: string | null;
    executor: string | null;
    run: string | null;
    command: string | null;
    outcome: string;
    reason: string | null;
    /** Canonical JSON of names to strings and numbers. */
    facts: string;
    previous: Buffer;
    digest: Buffer;
  };
  /** One row: length and head of the chain, so that a cut tail is seen too. */
  auditHead: { id: Generated<number>; sequence: number; digest: Buffer };
}

/** Tables of accounts, agents, executors, pairing, descriptors, grants and audit. */
export type GovernanceTables = AccountTables & AgentTables & ExecutorTables & PairingTables & AuditTables;

/** All tables. */
export type Tables = GovernanceTables & WorkTables;
