import { useState } from 'preact/hooks';

import type { AgentRow, AgentsAnswer } from '../answers.ts';
import { useAnswer, useDeed, usePage } from '../page.tsx';
import { Button } from '../parts/button.tsx';
import { Dialog, DialogActions } from '../parts/dialog.tsx';
import { Title } from '../parts/facts.tsx';
import { Answered, Notice, Refused } from '../parts/notice.tsx';
import { Switch } from '../parts/switch.tsx';
import { addressOf, Link, useRouter } from '../router.tsx';
import { AgentTokens } from './agent-tokens.tsx';

/** One agent: its tokens, the settings for an MCP client, and what to do next. */
export function Agent({ agent: id }: { readonly agent: string }) {
  const { say, calls } = usePage();
  const asked = useAnswer('agents', calls.agents, ['agents']);
  const found = asked.state === 'there' ? asked.answer.agents.find((agent) => agent.id === id) : undefined;
  return (
    <>
      <Title
        text={found?.name ?? say('agent.title')}
        above={<Link to={addressOf('agents')}>{say('agents.title')}</Link>}
      />
      <Answered asked={asked}>
        {({ operations }) =>
          found === undefined ? (
            <Notice tone="info">
              <p>{say('agent.absent')}</p>
            </Notice>
          ) : (
            <Known
              agent={found}
              operations={operations}
              onDone={asked.state === 'there' ? asked.ask : () => undefined}
            />
          )
        }
      </Answered>
    </>
  );
}

interface Part {
  readonly agent: AgentRow;
  readonly onDone: () => void;
}

function Known({ agent, operations, onDone }: Part & { readonly operations: AgentsAnswer['operations'] }) {
  const { say } = usePage();
  return (
    <div class="stack">
      <AgentTokens agent={agent} onDone={onDone} />
      <section aria-labelledby="tools">
        <h2 id="tools">{say('agent.tools')}</h2>
        <p>{say('agent.tools.text')}</p>
        <Tools agent={agent} operations={operations} onDone={onDone} />
      </section>
      <section aria-labelledby="next">
        <h2 id="next">{say('agent.next')}</h2>
        <p>
          {say.parts('agent.next.text', { machines: <Link to={addressOf('machines')}>{say('machines.title')}</Link> })}
        </p>
      </section>
      <EndAgent agent={agent} />
    </div>
  );
}

function EndAgent({ agent: { id, name } }: { readonly agent: AgentRow }) {
  const { say, calls, announce } = usePage();
  const { go } = useRouter();
  const [asking, setAsking] = useState(false);
  const deed = useDeed();
  const end = async (): Promise<void> => {
    if (!(await deed.run(() => calls.endAgent(id)))) return;
    announce(say('agent.ended', { name }));
    go(addressOf('agents'));
  };
  return (
    <div class="actions">
      <Button kind="danger" onPress={() => setAsking(true)}>
        {say('agent.end')}
      </Button>
      {asking && (
        <Dialog title={say('agent.end.ask', { name })} onClose={() => setAsking(false)}>
          <p>{say('agent.end.text')}</p>
          <Refused refused={deed.refused} />
          <DialogActions>
            <Button onPress={() => setAsking(false)}>{say('action.keep')}</Button>
            <Button kind="danger" busy={deed.busy} onPress={() => void end()}>
              {say('agent.end')}
            </Button>
          </DialogActions>
        </Dialog>
      )}
    </div>
  );
}

/** One switch for each operation that an agent may be given (N-092). */
function Tools({ agent, operations, onDone }: Part & { readonly operations: AgentsAnswer['operations'] }) {
  const { say, calls, announce } = usePage();
  const deed = useDeed();
  const set = async (key: string, on: boolean): Promise<void> => {
    const wanted = operations.map((one) => one.key).filter((one) => (one === key ? on : agent.tools.includes(one)));
    if (!(await deed.run(() => calls.setTools(agent.id, wanted)))) return;
    announce(say(on ? 'agent.tool-on' : 'agent.tool-off', { tool: key }));
    onDone();
  };
  return (
    <>
      <Refused refused={deed.refused} />
      <ul class="rows" aria-labelledby="tools">
        {operations.map(({ key, description }) => (
          <li key={key} class="operation">
            <code>{key}</code>
            <p>{description}</p>
            <Switch
              on={agent.tools.includes(key)}
              label={say('agent.tool', { tool: key })}
              busy={deed.busy}
              disabled={false}
              onChange={(on) => void set(key, on)}
            />
          </li>
        ))}
      </ul>
    </>
  );
}
