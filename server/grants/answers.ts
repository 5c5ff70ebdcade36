import * as z from 'zod';

/** Agents of the organisation and what each may do on one machine. */
export const agentAccessSchema = z.strictObject({
  agents: z.array(
    z.strictObject({
      agent: z.string(),
      name: z.string(),
      ownerName: z.string(),
      /** `partial`: some, not all, of the operations that are approved now. */
      access: z.enum(['on', 'off', 'partial']),
      /** Keys granted on this machine. */
      operations: z.array(z.string()),
    }),
  ),
});
export type AgentAccessAnswer = z.infer<typeof agentAccessSchema>;

const named = z.strictObject({ id: z.string(), name: z.string() });

/** Who may use one machine beside its scope, and whom it could be shared with. */
export const sharingSchema = z.strictObject({
  people: z.array(
    z.strictObject({ person: z.string(), name: z.string(), login: z.string(), role: z.enum(['use', 'admin']) }),
  ),
  projects: z.array(named),
  teams: z.array(named),
  candidates: z.strictObject({
    people: z.array(z.strictObject({ person: z.string(), name: z.string(), login: z.string() })),
    projects: z.array(named),
    teams: z.array(named),
  }),
});
export type SharingAnswer = z.infer<typeof sharingSchema>;
