import type { ExecutorId } from '../../helpers/protocol/ids.ts';
import { descriptorReviewMachine } from '../../machines/descriptor-review/machine.ts';
import { step } from '../../machines/step.ts';
import type { Stored } from '../../machines/step.ts';
import type { SignedIn } from '../accounts/sessions.ts';
import { recordDecision } from '../audit/record.ts';
import type { Context } from '../context.ts';
import { requireAdministrator } from '../executors/entitled.ts';
import { advanceAccess } from '../executors/lifecycle.ts';
import { Refusal } from '../refusal.ts';
import type { Writer } from '../store/store.ts';
import { documentOf } from './store.ts';

/** What a person decides about the revision that they saw, named by its digest. */
export interface Decision {
  readonly executor: ExecutorId;
  readonly revision: number;
  /** SHA-256 of the descriptor as shown, 64 hexadecimal digits. */
  readonly digest: string;
  readonly answer: 'confirm' | 'refuse';
}

/**
 * Records the decision of an administrator; a confirmation needs the password, which the caller checked just before (N-193). Throws
 * Refusal EXECUTOR_ABSENT, NOT_ADMINISTRATOR, REVISION_ABSENT, REVISION_SUPERSEDED or DESCRIPTOR_CHANGED.
 */
export async function decideRevision(context: Context, by: SignedIn, decision: Decision): Promise<void> {
  const { executor, revision } = decision;
  await context.store.write(async (tx) => {
    await requireAdministrator(tx, by.person, executor);
    const newest = await tx
      .selectFrom('descriptors')
      .selectAll()
      .where('executor', '=', executor)
      .orderBy('revision', 'desc')
      .limit(1)
      .executeTakeFirst();
    if (newest === undefined || newest.revision < revision) {
      throw new Refusal('REVISION_ABSENT', 'The machine has sent no such revision.', { status: 404 });
    }
    if (newest.revision > revision) {
      throw new Refusal('REVISION_SUPERSEDED', `Revision ${newest.revision} has arrived since; review that one.`);
    }
    // Written by this folder alone; `step` refuses what its machine never wrote.
    const stored = JSON.parse(newest.stored) as Stored<typeof descriptorReviewMachine>;
    const type = decision.answer === 'confirm' ? 'descriptor.confirm' : 'descriptor.refuse';
    const next = step(descriptorReviewMachine, stored, { type, descriptorDigest: decision.digest });
    if (!next.ok) throw new Refusal(next.code, 'This is not the revision that waits for review; load the page again.');
    await tx
      .updateTable('descriptors')
      .set({
        stored: JSON.stringify(next.stored),
        state: decision.answer === 'confirm' ? 'confirmed' : 'refused',
        decidedAt: context.clock.now(),
        decidedBy: by.person,
      })
      .where('executor', '=', executor)
      .where('revision', '=', revision)
      .execute();
    if (decision.answer === 'confirm') await endGrantsBeyond(tx, executor, newest.document);
    await recordDecision(context, tx, by, { action: type, executor, facts: { revision } });
    await advanceAccess(context, tx, executor, 'descriptor.reviewed');
  });
  context.wake.executor(executor);
}

/** An operation that the machine no longer has loses its grants, so that it is denied again should it come back (N-085, N-186). */
async function endGrantsBeyond(tx: Writer, executor: ExecutorId, document: string): Promise<void> {
  const { operations } = documentOf({ document });
  await tx.deleteFrom('grants').where('executor', '=', executor).where('operation', 'not in', operations).execute();
}
