/*
 * Tables of channels, runs, commands, payloads, MCP sessions, reviews and promotions as Kysely sees them. Conventions as in
 * server/store/tables.ts. No arguments, no results and no paths stand here in clear: they live sealed in `payloads`, for a
 * stated time.
 */
import type {
  AgentId,
  BindingId,
  CommandId,
  ExecutorId,
  PersonId,
  ProjectId,
  PromotionId,
  ReviewId,
  RunId,
} from '../../helpers/protocol/ids.ts';
import type { Direction } from '../payloads/rules.ts';

/** Yes and no as both dialects keep them. */
type Flag = 0 | 1;

interface ChannelTables {
  /** What the control plane remembers about a machine's statements; one row an executor, made at its first proof. */
  channels: {
    executor: ExecutorId;
    /** Highest ledger count that any signed statement of the machine stated, and its head (S-208, N-504). */
    ledgerCount: number;
    ledgerHead: Buffer;
    /** Highest guard of the machine's key seen in any statement. */
    guard: number;
    /** Last fence given to a binding; only grows (N-101). */
    fence: number;
    /** Last sequence of an approval; only grows. */
    approval: number;
  };
}

interface RunTables {
  runs: {
    id: RunId;
    person: PersonId;
    agent: AgentId;
    project: ProjectId;
    conversation: string;
    bundle: 'workspace';
    openedBy: 'person' | 'agent';
    /** Machine that the person chose at launch, null for whichever is available. */
    chosen: ExecutorId | null;
    /** Machine of its bindings; never changes once set (N-104). */
    executor: ExecutorId | null;
    state: 'active' | 'ended';
    endedBecause: string | null;
    startedAt: number;
    activeAt: number;
    endedAt: number | null;
    /** 1 once the machine was told that it ended, or where no machine ever had it. */
    endTold: Flag;
  };
  candidates: {
    handleDigest: Buffer;
    run: RunId;
    person: PersonId;
    /** Null for what a person does alone. */
    agent: AgentId | null;
    operation: string;
    executor: ExecutorId;
    expiresAt: number;
    usedAt: number | null;
  };
  bindings: {
    id: BindingId;
    run: RunId;
    operation: string;
    executor: ExecutorId;
    fence: number;
    handleDigest: Buffer;
    createdAt: number;
  };
}

interface CommandTables {
  commands: {
    id: CommandId;
    run: RunId;
    binding: BindingId;
    executor: ExecutorId;
    operation: string;
    /** Null for what a person does alone. */
    agent: AgentId | null;
    idempotencyKey: string;
    /** JSON of the command as machines/step.ts stores it; the columns below repeat what queries need. */
    stored: string;
    state: string;
    /** 1 while the outcome is open, `unknown` not included. */
    open: Flag;
    epoch: number | null;
    argumentsDigest: Buffer;
    contentDigest: Buffer;
    resultDigest: Buffer | null;
    outcome: string | null;
    gate: string | null;
    code: string | null;
    /** 1 while the machine is to be told to end it. */
    cancelWanted: Flag;
    createdAt: number;
    /** Lifetime's end, in ms since the Unix epoch. */
    deadline: number;
    leasedAt: number | null;
    endedAt: number | null;
  };
  /** The one queue: commands that no machine was given yet, in order (N-105). */
  jobs: { position: number; command: CommandId };
  /** Signed statements of a command in chain order, the control plane's own included. */
  receipts: {
    command: CommandId;
    position: number;
    type: string;
    payload: Buffer;
    signature: Buffer;
    digest: Buffer;
    at: number;
  };
}

interface PayloadTables {
  payloads: {
    command: CommandId;
    direction: Direction;
    keyId: string;
    nonce: Buffer;
    sealed: Buffer;
    deleteAt: number;
  };
}

interface McpTables {
  mcpSessions: {
    id: string;
    person: PersonId;
    agent: AgentId;
    project: ProjectId;
    /** JSON of the client's initialize parameters, so that a restarted server takes the session up again. */
    initialize: string;
    run: RunId | null;
    createdAt: number;
    activeAt: number;
    endedAt: number | null;
  };
}

interface DraftTables {
  reviews: {
    id: ReviewId;
    run: RunId;
    person: PersonId;
    agent: AgentId;
    executor: ExecutorId;
    /** The command whose sealed result lists the changes. */
    command: CommandId;
    digest: Buffer;
    manifestDigest: Buffer;
    rootIdentity: Buffer;
    changeCount: number;
    createdAt: number;
  };
  promotions: {
    id: PromotionId;
    run: RunId;
    review: ReviewId;
    person: PersonId;
    agent: AgentId;
    executor: ExecutorId;
    /** JSON of the promotion as machines/step.ts stores it. */
    stored: string;
    state: string;
    reviewDigest: Buffer;
    manifestDigest: Buffer;
    authorizationRevision: number;
    policyDigest: Buffer;
    approvalDigest: Buffer | null;
    approvalPayload: Buffer | null;
    approvalSignature: Buffer | null;
    command: CommandId | null;
    outcome: string | null;
    code: string | null;
    createdAt: number;
    expiresAt: number;
    endedAt: number | null;
  };
}

/** Tables of channels, runs, commands, payloads, MCP sessions and drafts. */
export type WorkTables = ChannelTables & RunTables & CommandTables & PayloadTables & McpTables & DraftTables;
