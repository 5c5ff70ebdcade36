import * as z from 'zod';
import { digestTextSchema, executorIdSchema } from '../../helpers/protocol/ids.ts';
import type { ExecutorId } from '../../helpers/protocol/ids.ts';
import { PASSWORD_LIMIT, requirePassword } from '../accounts/password.ts';
import { personOfRequest } from '../accounts/sessions.ts';
import type { SignedIn } from '../accounts/sessions.ts';
import type { Context } from '../context.ts';
import { requireAdministrator, requireDiscoverable } from '../executors/entitled.ts';
import { DONE, doneSchema } from '../http.ts';
import type { App } from '../http.ts';
import type { Reader } from '../store/store.ts';
import { descriptorReviewSchema } from './answers.ts';
import type { DescriptorReviewAnswer } from './answers.ts';
import { decideRevision } from './review.ts';
import { differencesOf, operationChanges } from './rules.ts';
import { documentOf } from './store.ts';

/** What a machine states about itself, for whoever may know of it. */
async function readReview(reader: Reader, by: SignedIn, executor: ExecutorId): Promise<DescriptorReviewAnswer> {
  await requireDiscoverable(reader, by.person, executor);
  const rows = await reader
    .selectFrom('descriptors')
    .leftJoin('people', 'people.id', 'descriptors.decidedBy')
    .select(['revision', 'digest', 'document', 'state', 'arrivedAt', 'decidedAt', 'people.name as decidedBy'])
    .where('executor', '=', executor)
    .orderBy('revision', 'desc')
    .execute();
  const inForce = rows.find((row) => row.state === 'confirmed');
  const newest = rows[0];
  const before = inForce === undefined ? undefined : documentOf(inForce);
  const pending = newest?.state === 'pending' ? { row: newest, document: documentOf(newest) } : undefined;
  return {
    confirmed:
      inForce === undefined || before === undefined
        ? null
        : {
            revision: inForce.revision,
            document: before,
            decidedAt: inForce.decidedAt ?? inForce.arrivedAt,
            decidedBy: inForce.decidedBy ?? '',
          },
    pending:
      pending === undefined
        ? null
        : {
            revision: pending.row.revision,
            digest: pending.row.digest.toString('hex'),
            document: pending.document,
            arrivedAt: pending.row.arrivedAt,
            differences: [...differencesOf(before, pending.document)],
            operations: operationChanges(before, pending.document),
          },
  };
}

/** Routes of descriptor review: see each fact that differs, confirm with the password, refuse without. */
export function descriptorRoutes(app: App, context: Context): void {
  const path = '/api/page/executors/:executor/descriptor';
  const params = z.strictObject({ executor: executorIdSchema });
  app.get(path, { schema: { params, response: { 200: descriptorReviewSchema } } }, (request) =>
    readReview(context.store.read, personOfRequest(request), request.params.executor),
  );
  const shown = { revision: z.int().min(1), digest: digestTextSchema };
  const body = z.discriminatedUnion('answer', [
    z.strictObject({ ...shown, answer: z.literal('confirm'), password: z.string().min(1).max(PASSWORD_LIMIT) }),
    z.strictObject({ ...shown, answer: z.literal('refuse') }),
  ]);
  app.post(path, { schema: { params, body, response: { 200: doneSchema } } }, async (request) => {
    const by = personOfRequest(request);
    const { executor } = request.params;
    const { revision, digest } = request.body;
    await requireAdministrator(context.store.read, by.person, executor);
    if (request.body.answer === 'confirm') await requirePassword(context, by.person, request.body.password);
    await decideRevision(context, by, { executor, revision, digest, answer: request.body.answer });
    return DONE;
  });
}
