import * as z from 'zod';
import { availabilityReasons } from '../../helpers/protocol/errors.ts';
import { agentIdSchema, executorIdSchema, projectIdSchema } from '../../helpers/protocol/ids.ts';
import { operations } from '../../helpers/protocol/operations.ts';
import { personOfRequest } from '../accounts/sessions.ts';
import type { Context } from '../context.ts';
import { requireDiscoverable } from '../executors/entitled.ts';
import { markSilent } from '../executors/store.ts';
import type { App } from '../http.ts';
import { resolve } from './store.ts';

/** What the page shows of availability: each operation of one agent on one machine, with the one reason where it is not available. */
export function availabilityRoutes(app: App, context: Context): void {
  app.get(
    '/api/page/executors/:executor/availability',
    {
      schema: {
        params: z.strictObject({ executor: executorIdSchema }),
        querystring: z.strictObject({ agent: agentIdSchema, project: projectIdSchema }),
        response: {
          200: z.strictObject({
            operations: z.array(
              z.strictObject({
                operation: z.string(),
                available: z.boolean(),
                reason: z.enum(availabilityReasons).nullable(),
              }),
            ),
          }),
        },
      },
    },
    async (request) => {
      const { person } = personOfRequest(request);
      const { executor } = request.params;
      const { agent, project } = request.query;
      await markSilent(context);
      return context.store.read.transaction().execute(async (tx) => {
        await requireDiscoverable(tx, person, executor);
        const answers = [];
        for (const { key } of operations.filter((operation) => operation.caller === 'agent')) {
          const answer = await resolve(context, tx, { person, agent, operation: key, origin: { project }, executor });
          answers.push({
            operation: key,
            available: answer.available,
            reason: answer.available ? null : answer.reason,
          });
        }
        return { operations: answers };
      });
    },
  );
}
