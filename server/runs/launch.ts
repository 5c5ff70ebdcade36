import { membershipOf } from '../accounts/membership.ts';
import { administersOrganisation, isInProject } from '../accounts/rules.ts';
import type { SignedIn } from '../accounts/sessions.ts';
import type { Work } from '../commands/work.ts';
import { requireDiscoverable } from '../executors/entitled.ts';
import { Refusal } from '../refusal.ts';
import type { Launch } from './answers.ts';
import { makeRun } from './store.ts';
import type { RunRow } from './store.ts';

/** Launches a run of an agent for the person; the agent's client picks it up when it connects. Throws Refusal AGENT_ABSENT, PROJECT_ABSENT or EXECUTOR_ABSENT. */
export async function launchRun(work: Work, by: SignedIn, wish: Launch): Promise<RunRow> {
  const { agent, project, executor } = wish;
  const run = await work.store.write(async (tx) => {
    const member = await membershipOf(tx, by.person);
    const named = await tx
      .selectFrom('agents')
      .select(['owner', 'organisation'])
      .where('id', '=', agent)
      .where('endedAt', 'is', null)
      .executeTakeFirst();
    const own =
      named?.organisation === member.organisation && (named.owner === by.person || administersOrganisation(member));
    if (!own) throw new Refusal('AGENT_ABSENT', 'There is no such agent among yours.', { status: 404 });
    const known = await tx.selectFrom('projects').select('organisation').where('id', '=', project).executeTakeFirst();
    if (known?.organisation !== member.organisation || !isInProject(member, project)) {
      throw new Refusal('PROJECT_ABSENT', 'There is no such project among yours.', { status: 404 });
    }
    if (executor !== null) await requireDiscoverable(tx, by.person, executor);
    const conversation = `page_${work.random(16).toString('hex')}`;
    return makeRun(work, tx, { person: by.person, agent, project, conversation, openedBy: 'person', chosen: executor });
  });
  work.wake.run(run.id);
  return run;
}
