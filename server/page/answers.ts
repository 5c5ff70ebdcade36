/*
 * What the server answers to the page: the types of its own schemas.
 */
import type { OrganisationAnswer, SessionAnswer } from '../accounts/answers.ts';
import type { AgentAccessAnswer, SharingAnswer } from '../grants/answers.ts';
import type { AgentsAnswer } from '../accounts/answers.ts';
import type { DescriptorReviewAnswer } from '../descriptors/answers.ts';
import type { Difference, ReviewDetail } from '../drafts/answers.ts';
import type { RunDetail } from '../runs/answers.ts';

export type { AgentsAnswer, IssuedToken, OrganisationAnswer, SessionAnswer } from '../accounts/answers.ts';
export type { AuditAnswer } from '../audit/routes.ts';
export type { DescriptorReviewAnswer } from '../descriptors/answers.ts';
export type { EmergencyAnswer, ExecutorAction, ExecutorDetail, ExecutorSummary } from '../executors/answers.ts';
export type { PromotionSummary, ReviewDetail, ReviewSummary } from '../drafts/answers.ts';
export type { AgentAccessAnswer, SharingAnswer } from '../grants/answers.ts';
export type { ShownPairing } from '../pairing/answers.ts';
export type { RunDetail, RunSummary } from '../runs/answers.ts';

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

/** One command of a run: what happened, never with what content. */
export type CommandRow = RunDetail['commands'][number];
/** One change of a reviewed draft. */
export type ReviewedChange = ReviewDetail['changes'][number];
/** One piece of a part of a review, sealed to the key of the view that asked. */
export type SealedPiece = Difference;
