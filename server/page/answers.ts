/*
 * What the server answers to the page: the types of its own schemas.
 */
import type { OrganisationAnswer, SessionAnswer } from '../accounts/answers.ts';
import type { AgentAccessAnswer, SharingAnswer } from '../grants/answers.ts';
import type { AgentsAnswer } from '../accounts/answers.ts';
import type { DescriptorReviewAnswer } from '../descriptors/answers.ts';

export type { AgentsAnswer, IssuedToken, OrganisationAnswer, SessionAnswer } from '../accounts/answers.ts';
export type { AuditAnswer } from '../audit/routes.ts';
export type { DescriptorReviewAnswer } from '../descriptors/answers.ts';
export type { EmergencyAnswer, ExecutorAction, ExecutorDetail, ExecutorSummary } from '../executors/answers.ts';
export type { AgentAccessAnswer, SharingAnswer } from '../grants/answers.ts';
export type { ShownPairing } from '../pairing/answers.ts';

/** A person, team or project by name. */
export type Named = SharingAnswer['projects'][number];
/** Who is signed in. */
export type Who = NonNullable<SessionAnswer['person']>;
/** One person of the organisation. */
export type PersonRow = OrganisationAnswer['people'][number];
/** Role in an organisation or project. */
export type Role = PersonRow['role'];
/** One agent with its tools and tokens. */
export type AgentRow = AgentsAnswer['agents'][number];
/** What one agent may do on one machine. */
export type AgentAccess = AgentAccessAnswer['agents'][number];
/** A revision that waits for review. */
export type PendingRevision = NonNullable<DescriptorReviewAnswer['pending']>;
/** One fact that a revision changes. */
export type FactDifference = PendingRevision['differences'][number];

/** Who may invoke and administer a machine; fixed when it is made. */
export type Scope = 'private' | 'project' | 'organization';

/** A new enrolment; its challenge, 64 hexadecimal digits, is in this answer and nowhere else. */
export interface EnrolmentAnswer {
  readonly pairing: string;
  readonly executor: string;
  readonly requestId: string;
  readonly challenge: string;
  readonly expiresAt: number;
}

export interface RunSummary {
  readonly run: string;
  readonly agent: string;
  readonly agentName: string;
  readonly project: string;
  readonly projectName: string;
  readonly executor: string | null;
  readonly executorLabel: string | null;
  readonly state: 'active' | 'ended';
  readonly endedBecause: string | null;
  readonly openedBy: 'person' | 'agent';
  readonly startedAt: number;
  readonly activeAt: number;
  readonly endedAt: number | null;
  readonly commandCount: number;
  readonly openCount: number;
  readonly unknownCount: number;
}

export interface CommandRow {
  readonly command: string;
  readonly operation: string;
  readonly state: string;
  readonly outcome: string | null;
  readonly gate: string | null;
  readonly code: string | null;
  readonly createdAt: number;
  readonly leasedAt: number | null;
  readonly endedAt: number | null;
  readonly progress: { readonly done: number; readonly total: number; readonly phase: string } | null;
}

export interface RunDetail extends RunSummary {
  readonly availability: readonly {
    readonly operation: string;
    readonly available: boolean;
    readonly reason: string | null;
  }[];
  readonly commands: readonly CommandRow[];
  readonly reviews: readonly ReviewSummary[];
  readonly promotions: readonly PromotionSummary[];
}

export interface ReviewSummary {
  readonly review: string;
  readonly run: string;
  readonly agentName: string;
  readonly executor: string;
  readonly executorLabel: string;
  readonly digest: string;
  readonly manifestDigest: string;
  readonly changeCount: number;
  readonly createdAt: number;
  readonly stale: boolean;
  readonly promotion: 'page' | 'machine';
  readonly difference: 'page' | 'machine';
  readonly promotionState: string | null;
}

export interface ReviewedChange {
  readonly path: string;
  readonly kind: 'created' | 'modified' | 'deleted';
  readonly type: 'file' | 'directory';
  readonly byteCount: number;
  readonly hostChanged: boolean;
}

export interface ReviewDetail extends ReviewSummary {
  readonly changes: readonly ReviewedChange[];
  readonly promotions: readonly PromotionSummary[];
}

export interface PromotionSummary {
  readonly promotion: string;
  readonly review: string;
  readonly run: string;
  readonly state: string;
  readonly manifestDigest: string;
  readonly changeCount: number;
  readonly executorLabel: string;
  readonly expiresAt: number;
  readonly outcome: string | null;
  readonly code: string | null;
}

export interface SealedPiece {
  readonly sealed: string;
  readonly nonce: string;
  readonly senderKey: string;
  readonly totalBytes: number;
  readonly next?: number | undefined;
}
