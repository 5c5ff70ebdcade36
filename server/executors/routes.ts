import * as z from 'zod';
import { executorIdSchema } from '../../helpers/protocol/ids.ts';
import type { ExecutorId } from '../../helpers/protocol/ids.ts';
import type { ExecutorEvent } from '../../machines/executor/types.ts';
import { personOfRequest } from '../accounts/sessions.ts';
import type { SignedIn } from '../accounts/sessions.ts';
import type { Context } from '../context.ts';
import { DONE, doneSchema } from '../http.ts';
import type { App } from '../http.ts';
import { emergencySchema, executorDetailSchema, executorSummarySchema } from './answers.ts';
import { requireAdministrator } from './entitled.ts';
import { stepExecutor } from './lifecycle.ts';
import { listExecutors, showExecutor } from './list.ts';
import { listForEmergency, revokeInEmergency } from './offboard.ts';

const params = z.strictObject({ executor: executorIdSchema });

/** Lifecycle changes of an administrator; none asks for a password, so that stopping is always the easiest act (N-195). */
const wishes = {
  pause: { type: 'executor.pause' },
  resume: { type: 'executor.resume' },
  drain: { type: 'executor.drain' },
  disconnect: { type: 'executor.disconnect', by: 'administrator' },
  delete: { type: 'executor.delete' },
} as const satisfies Record<string, ExecutorEvent>;
type Wish = keyof typeof wishes;

async function changeByAdministrator(context: Context, by: SignedIn, id: ExecutorId, wish: Wish): Promise<void> {
  await context.store.write(async (tx) => {
    await requireAdministrator(tx, by.person, id);
    await stepExecutor(context, tx, id, wishes[wish], { person: by.person });
  });
  context.wake.executor(id);
  if (wish === 'delete') await context.store.scrub();
}

/** Routes of machines: list, one, their lifecycle, and the emergency path of the organisation's owner. */
export function executorRoutes(app: App, context: Context): void {
  app.get(
    '/api/page/executors',
    { schema: { response: { 200: z.strictObject({ executors: z.array(executorSummarySchema) }) } } },
    async (request) => ({ executors: await listExecutors(context, personOfRequest(request)) }),
  );
  app.get('/api/page/executors/:executor', { schema: { params, response: { 200: executorDetailSchema } } }, (request) =>
    showExecutor(context, personOfRequest(request), request.params.executor),
  );
  const change = (wish: Wish): void => {
    app.post(
      `/api/page/executors/:executor/${wish}`,
      { schema: { params, response: { 200: doneSchema } } },
      async (request) => {
        await changeByAdministrator(context, personOfRequest(request), request.params.executor, wish);
        return DONE;
      },
    );
  };
  change('pause');
  change('resume');
  change('drain');
  change('disconnect');
  change('delete');
  app.get('/api/page/emergency', { schema: { response: { 200: emergencySchema } } }, async (request) => ({
    executors: await listForEmergency(context, personOfRequest(request)),
  }));
  app.post(
    '/api/page/executors/:executor/end',
    { schema: { params, response: { 200: doneSchema } } },
    async (request) => {
      await revokeInEmergency(context, personOfRequest(request), request.params.executor);
      return DONE;
    },
  );
}
