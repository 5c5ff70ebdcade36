import { useState } from 'preact/hooks';

import { useAnswer, useDeed, usePage } from '../page.tsx';
import { Button } from '../parts/button.tsx';
import { Title } from '../parts/facts.tsx';
import { TextField } from '../parts/field.tsx';
import { Answered, Empty, Refused } from '../parts/notice.tsx';
import { addressOf, Link, useRouter } from '../router.tsx';

/** The agents that the person looks after. */
export function Agents() {
  const { say, calls } = usePage();
  const asked = useAnswer('agents', calls.agents, ['agents']);
  return (
    <>
      <Title text={say('agents.title')} />
      <div class="columns">
        <Answered asked={asked}>
          {({ agents }) =>
            agents.length === 0 ? (
              <Empty title={say('agents.none')}>
                <p>{say('agents.none.text')}</p>
              </Empty>
            ) : (
              <ul class="rows" aria-label={say('agents.title')}>
                {agents.map((agent) => (
                  <li key={agent.id}>
                    <div class="row">
                      <div>
                        <p class="row-name">
                          <Link to={addressOf('agent', { agent: agent.id })}>{agent.name}</Link>
                        </p>
                        <p class="hint">
                          {say('agents.of', { owner: agent.ownerName })} ·{' '}
                          {say.count('agents.tokens', agent.tokens.length)}
                        </p>
                      </div>
                    </div>
                  </li>
                ))}
              </ul>
            )
          }
        </Answered>
        <MakeAgent />
      </div>
    </>
  );
}

function MakeAgent() {
  const { say, calls, announce } = usePage();
  const { go } = useRouter();
  const [name, setName] = useState('');
  const deed = useDeed();
  const submit = (event: Event): void => {
    event.preventDefault();
    void deed.run(async () => {
      const { agent } = await calls.makeAgent(name);
      announce(say('agents.made', { name }));
      go(addressOf('agent', { agent }));
    });
  };
  return (
    <form class="panel" onSubmit={submit}>
      <h2>{say('agents.make')}</h2>
      <p>{say('agents.make.text')}</p>
      <TextField label={say('agents.name')} value={name} onValue={setName} maxLength={64} />
      <Refused refused={deed.refused} />
      <div class="actions">
        <Button kind="primary" submit busy={deed.busy}>
          {say('agents.make')}
        </Button>
      </div>
    </form>
  );
}
