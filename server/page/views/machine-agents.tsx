import type { AgentAccess, ExecutorDetail } from '../answers.ts';
import { useAnswer, useDeed, usePage } from '../page.tsx';
import { Switch } from '../parts/switch.tsx';
import { Answered, Empty, Notice, Refused } from '../parts/notice.tsx';
import { addressOf, Link } from '../router.tsx';

/** Which agents may use a machine: one switch an agent, effective at once (N-187, N-188). */
export function MachineAgents({ machine }: { readonly machine: ExecutorDetail }) {
  const { say, calls } = usePage();
  const asked = useAnswer(machine.executor, () => calls.access(machine.executor), ['agents', 'executor']);
  return (
    <div class="stack">
      <p>{say('access.text')}</p>
      {machine.confirmedRevision === 0 && (
        <Notice tone="warning">
          <p>{say('access.unreviewed')}</p>
        </Notice>
      )}
      <Answered asked={asked}>
        {({ agents }) =>
          agents.length === 0 ? (
            <Empty title={say('access.none')}>
              <p>{say('access.none.text')}</p>
              <div class="actions">
                <Link to={addressOf('agents')} class="button primary">
                  {say('agents.make')}
                </Link>
              </div>
            </Empty>
          ) : (
            <ul class="rows" aria-label={say('tab.agents')}>
              {agents.map((agent) => (
                <li key={agent.agent}>
                  <Access machine={machine} agent={agent} onDone={asked.state === 'there' ? asked.ask : undefined} />
                </li>
              ))}
            </ul>
          )
        }
      </Answered>
    </div>
  );
}

function Access({
  machine,
  agent,
  onDone,
}: {
  readonly machine: ExecutorDetail;
  readonly agent: AgentAccess;
  readonly onDone: (() => void) | undefined;
}) {
  const { say, calls, announce } = usePage();
  const deed = useDeed();
  const set = async (on: boolean): Promise<void> => {
    const access = on ? 'on' : 'off';
    if (!(await deed.run(() => calls.setAccess(machine.executor, agent.agent, access)))) return;
    announce(say(`access.done-${access}`, { agent: agent.name, label: machine.label }));
    onDone?.();
  };
  return (
    <>
      <div class="row">
        <div>
          <p class="row-name">{agent.name}</p>
          <p class="hint">
            {agent.access === 'off'
              ? say('access.off', { owner: agent.ownerName })
              : say.count('access.operations', agent.operations.length, { owner: agent.ownerName })}
            {agent.access === 'partial' && <span class="flag">{say('access.partial')}</span>}
          </p>
        </div>
        <Switch
          on={agent.access !== 'off'}
          label={say('access.switch', { agent: agent.name })}
          busy={deed.busy}
          disabled={!machine.administers || machine.state === 'revoked'}
          onChange={(on) => void set(on)}
        />
      </div>
      <Refused refused={deed.refused} />
    </>
  );
}
