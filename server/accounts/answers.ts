import * as z from 'zod';
import {
  agentIdSchema,
  digestTextSchema,
  organisationIdSchema,
  personIdSchema,
  projectIdSchema,
  teamIdSchema,
  timeSchema,
} from '../../helpers/protocol/ids.ts';

const organisationRole = z.enum(['owner', 'admin', 'member']);

/** Who asks, and what this server is. */
export const sessionSchema = z.strictObject({
  /** False until first-run setup made an owner. */
  isSetUp: z.boolean(),
  server: z.strictObject({
    /** SHA-256 of the command key: the person compares it with what the machine prints. */
    commandKeyFingerprint: digestTextSchema,
    now: timeSchema,
  }),
  /** Null where nobody is signed in. */
  person: z
    .strictObject({
      id: personIdSchema,
      name: z.string(),
      login: z.string(),
      role: organisationRole,
      organisation: organisationIdSchema,
      hasPassword: z.boolean(),
      /** The session began with a one-time link, so a first password may be set. */
      byLink: z.boolean(),
      /** Sent back in `x-nessie-csrf` with every call that may change something. */
      csrf: z.string(),
    })
    .nullable(),
});
export type SessionAnswer = z.infer<typeof sessionSchema>;

/** The organisation as a member sees it. */
export const organisationSchema = z.strictObject({
  id: organisationIdSchema,
  name: z.string(),
  teams: z.array(z.strictObject({ id: teamIdSchema, name: z.string() })),
  projects: z.array(z.strictObject({ id: projectIdSchema, name: z.string(), team: teamIdSchema })),
  people: z.array(
    z.strictObject({
      id: personIdSchema,
      name: z.string(),
      login: z.string(),
      role: organisationRole,
      active: z.boolean(),
      hasPassword: z.boolean(),
      /** Memberships, for who administers the organisation; empty otherwise. */
      teams: z.array(z.strictObject({ team: teamIdSchema, role: z.enum(['admin', 'member']) })),
      projects: z.array(z.strictObject({ project: projectIdSchema, role: organisationRole })),
    }),
  ),
});
export type OrganisationAnswer = z.infer<typeof organisationSchema>;

/** Agents with their tools and tokens; of a token everything but its text. */
export const agentsSchema = z.strictObject({
  /** Everything that an agent may call, to choose tools from. */
  operations: z.array(z.strictObject({ key: z.string(), description: z.string() })),
  agents: z.array(
    z.strictObject({
      id: agentIdSchema,
      name: z.string(),
      owner: personIdSchema,
      ownerName: z.string(),
      tools: z.array(z.string()),
      tokens: z.array(
        z.strictObject({
          id: z.string(),
          person: personIdSchema,
          project: projectIdSchema,
          projectName: z.string(),
          mayOpenRuns: z.boolean(),
          createdAt: timeSchema,
        }),
      ),
    }),
  ),
});
export type AgentsAnswer = z.infer<typeof agentsSchema>;

/** A new token: its text is in this answer and nowhere else. */
export const issuedTokenSchema = z.strictObject({
  id: z.string(),
  token: z.string(),
  /** Address for the MCP client's settings. */
  endpoint: z.string(),
});
export type IssuedToken = z.infer<typeof issuedTokenSchema>;
