import { useState } from 'preact/hooks';

import type { AgentsAnswer, ExecutorSummary } from '../answers.ts';
import { useAnswer, useDeed, usePage, useSignedIn } from '../page.tsx';
import { Button } from '../parts/button.tsx';
import { Title } from '../parts/facts.tsx';
import { optionsOf, SelectField } from '../parts/field.tsx';
import { Answered, Empty, Refused } from '../parts/notice.tsx';
import { addressOf, Link, useRouter } from '../router.tsx';

/** Launching a run for an agent; the agent picks it up with its next connection. */
export function Launch() {
  const { say, calls } = usePage();
  const agents = useAnswer('agents', calls.agents, ['agents']);
  const executors = useAnswer('executors', calls.executors, ['executor']);
  return (
    <>
      <Title text={say('launch.title')} above={<Link to={addressOf('runs')}>{say('runs.title')}</Link>} />
      <Answered asked={agents}>
        {(answer) => (
          <Answered asked={executors}>
            {(machines) =>
              answer.agents.length === 0 ? (
                <Empty title={say('agents.none')}>
                  <p>{say('launch.no-agent')}</p>
                  <div class="actions">
                    <Link to={addressOf('agents')} class="button primary">
                      {say('agents.make')}
                    </Link>
                  </div>
                </Empty>
              ) : (
                <Form
                  agents={answer.agents}
                  executors={machines.executors.filter(({ state }) => state !== 'revoked')}
                />
              )
            }
          </Answered>
        )}
      </Answered>
    </>
  );
}

/** Launches a run and goes to it. */
function useLaunch() {
  const { say, calls, announce } = usePage();
  const { go } = useRouter();
  const deed = useDeed();
  const launch = (wish: Parameters<typeof calls.launch>[0]): void =>
    void deed.run(async () => {
      const { run } = await calls.launch(wish);
      announce(say('launch.done'));
      go(addressOf('run', { run }));
    });
  return { deed, launch };
}

const machineOption = ({ executor, label }: ExecutorSummary) => ({ value: executor, text: label });

function Form({
  agents,
  executors,
}: {
  readonly agents: AgentsAnswer['agents'];
  readonly executors: readonly ExecutorSummary[];
}) {
  const { say } = usePage();
  const { organisation } = useSignedIn();
  const { place } = useRouter();
  const [agent, setAgent] = useState<string>(agents[0]?.id ?? '');
  const [project, setProject] = useState<string>(organisation.projects[0]?.id ?? '');
  const [executor, setExecutor] = useState(place.query.get('executor') ?? '');
  const { deed, launch } = useLaunch();
  const submit = (event: Event): void => {
    event.preventDefault();
    launch({ agent, project, executor: executor === '' ? null : executor });
  };
  return (
    <form class="panel narrow" onSubmit={submit}>
      <p>{say('launch.text')}</p>
      <SelectField label={say('launch.agent')} value={agent} onValue={setAgent} options={optionsOf(agents)} />
      <SelectField
        label={say('place.project')}
        hint={say('launch.project-hint')}
        value={project}
        onValue={setProject}
        options={optionsOf(organisation.projects)}
      />
      <SelectField
        label={say('launch.machine')}
        hint={say('launch.machine-hint')}
        value={executor}
        onValue={setExecutor}
        options={[{ value: '', text: say('launch.any') }, ...executors.map(machineOption)]}
      />
      <Refused refused={deed.refused} />
      <div class="actions">
        <Button kind="primary" submit busy={deed.busy}>
          {say('launch.do')}
        </Button>
      </div>
    </form>
  );
}
