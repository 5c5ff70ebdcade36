import * as z from 'zod';
import { timeSchema } from '../../helpers/protocol/ids.ts';
import type { ExecutorId } from '../../helpers/protocol/ids.ts';
import { membershipOf } from '../accounts/membership.ts';
import { administersOrganisation } from '../accounts/rules.ts';
import { personOfRequest } from '../accounts/sessions.ts';
import type { SignedIn } from '../accounts/sessions.ts';
import type { Context } from '../context.ts';
import { listExecutors } from '../executors/list.ts';
import type { App } from '../http.ts';

/** Entries of one answer. */
const PAGE = 100;

const auditSchema = z.strictObject({
  entries: z.array(
    z.strictObject({
      sequence: z.int(),
      at: timeSchema,
      action: z.string(),
      personName: z.string().nullable(),
      agentName: z.string().nullable(),
      /** The assistant's part, apart from the person's (N-196). */
      assistant: z.string().nullable(),
      executor: z.string().nullable(),
      label: z.string().nullable(),
      run: z.string().nullable(),
      outcome: z.string(),
      reason: z.string().nullable(),
      facts: z.record(z.string(), z.union([z.string(), z.number()])),
    }),
  ),
  more: z.boolean(),
});
export type AuditAnswer = z.infer<typeof auditSchema>;

/**
 * History, newest first: of the machines that a person administers and of what the person did; administrators of the organisation
 * also see what belongs to no machine. Private machines of others stay hidden from them too (N-018).
 */
async function readAudit(context: Context, by: SignedIn, before: number): Promise<AuditAnswer> {
  const reader = context.store.read;
  const member = await membershipOf(reader, by.person);
  const administered = (await listExecutors(context, by)).filter((one) => one.administers);
  const machines: ExecutorId[] = administered.map((one) => one.executor);
  const rows = await reader
    .selectFrom('audit')
    .leftJoin('people', (join) => join.onRef('people.id', '=', 'audit.person'))
    .leftJoin('agents', (join) => join.onRef('agents.id', '=', 'audit.agent'))
    .select(['sequence', 'at', 'action', 'assistant', 'executor', 'run', 'outcome', 'reason', 'facts'])
    .select(['people.name as personName', 'agents.name as agentName'])
    .where('sequence', '<', before)
    .where((where) =>
      where.or([
        where('audit.person', '=', by.person),
        ...(machines.length === 0 ? [] : [where('executor', 'in', machines)]),
        ...(administersOrganisation(member)
          ? [where.and([where('executor', 'is', null), where('audit.organisation', '=', member.organisation)])]
          : []),
      ]),
    )
    .orderBy('sequence', 'desc')
    .limit(PAGE + 1)
    .execute();
  const factsSchema = auditSchema.shape.entries.element.shape.facts;
  const labels = new Map<string, string>(administered.map((one) => [one.executor, one.label]));
  return {
    entries: rows.slice(0, PAGE).map((row) => ({
      ...row,
      label: row.executor === null ? null : (labels.get(row.executor) ?? null),
      facts: factsSchema.parse(JSON.parse(row.facts)),
    })),
    more: rows.length > PAGE,
  };
}

/** GET /api/page/audit?before=SEQUENCE. */
export function auditRoutes(app: App, context: Context): void {
  const querystring = z.strictObject({ before: z.coerce.number().int().min(1).default(Number.MAX_SAFE_INTEGER) });
  app.get('/api/page/audit', { schema: { querystring, response: { 200: auditSchema } } }, (request) =>
    readAudit(context, personOfRequest(request), request.query.before),
  );
}
