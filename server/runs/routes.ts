import * as z from 'zod';
import { commandIdSchema, executorIdSchema, runIdSchema } from '../../helpers/protocol/ids.ts';
import type { CommandId, PersonId } from '../../helpers/protocol/ids.ts';
import { receiptExportSchema } from '../../helpers/protocol/receipt-chain.ts';
import { personOfRequest } from '../accounts/sessions.ts';
import { cancelCommand } from '../commands/cancel.ts';
import { exportReceipts } from '../commands/export.ts';
import { findCommand } from '../commands/store.ts';
import type { CommandRow } from '../commands/store.ts';
import type { Work } from '../commands/work.ts';
import { DONE, doneSchema } from '../http.ts';
import type { App } from '../http.ts';
import { Refusal } from '../refusal.ts';
import { launchSchema, runDetailSchema, runSummarySchema } from './answers.ts';
import { launchRun } from './launch.ts';
import { listRuns, ownRun, showRun, summariseRun } from './list.ts';
import { endRun } from './store.ts';

/** Routes of runs and their commands: a person sees, stops and launches their own. */
export function routes(app: App, work: Work): void {
  const params = z.strictObject({ run: runIdSchema });
  app.get(
    '/api/page/runs',
    {
      schema: {
        querystring: z.strictObject({
          executor: executorIdSchema.optional(),
          before: z.coerce.number().int().optional(),
        }),
        response: { 200: z.strictObject({ runs: z.array(runSummarySchema), more: z.boolean() }) },
      },
    },
    (request) => listRuns(work.store.read, personOfRequest(request).person, request.query),
  );
  app.post('/api/page/runs', { schema: { body: launchSchema, response: { 200: runSummarySchema } } }, async (request) =>
    summariseRun(work.store.read, await launchRun(work, personOfRequest(request), request.body)),
  );
  app.get('/api/page/runs/:run', { schema: { params, response: { 200: runDetailSchema } } }, (request) =>
    showRun(work, personOfRequest(request).person, request.params.run),
  );
  app.post('/api/page/runs/:run/stop', { schema: { params, response: { 200: doneSchema } } }, async (request) => {
    const { person } = personOfRequest(request);
    const run = await ownRun(work.store.read, person, request.params.run);
    await endRun(work, run.id, 'stopped', { person });
    return DONE;
  });
  commandRoutes(app, work);
}

function commandRoutes(app: App, work: Work): void {
  const params = z.strictObject({ command: commandIdSchema });
  app.post(
    '/api/page/commands/:command/cancel',
    { schema: { params, response: { 200: doneSchema } } },
    async (request) => {
      const command = await ownCommand(work, personOfRequest(request).person, request.params.command);
      await cancelCommand(work, command.id, 'person');
      return DONE;
    },
  );
  app.get(
    '/api/page/commands/:command/receipts',
    { schema: { params, response: { 200: receiptExportSchema } } },
    async (request) => {
      const command = await ownCommand(work, personOfRequest(request).person, request.params.command);
      const exported = await exportReceipts(work.store.read, command.id);
      if (exported) return exported;
      throw new Refusal('RECEIPTS_ABSENT', 'No machine was given this command, so there is no receipt of it.', {
        status: 404,
      });
    },
  );
}

async function ownCommand(work: Work, person: PersonId, id: CommandId): Promise<CommandRow> {
  const command = await findCommand(work.store.read, id);
  if (command) {
    await ownRun(work.store.read, person, command.run);
    return command;
  }
  throw new Refusal('COMMAND_ABSENT', 'There is no such command among yours.', { status: 404 });
}
