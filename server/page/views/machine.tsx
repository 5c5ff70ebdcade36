import type { ExecutorDetail } from '../answers.ts';
import { useAnswer, usePage } from '../page.tsx';
import { Title } from '../parts/facts.tsx';
import { Answered, Notice } from '../parts/notice.tsx';
import { MachineState } from '../parts/standing.tsx';
import { addressOf, Link } from '../router.tsx';
import { standingOf } from '../standing.ts';
import type { WordKey } from '../words.tsx';
import { ComputerMenu } from './computer-menu.tsx';
import { MachineAgents } from './machine-agents.tsx';
import { MachineOverview } from './machine-overview.tsx';
import { MachineRuns } from './machine-runs.tsx';
import { MachineSharing } from './machine-sharing.tsx';

const tabs = {
  machine: 'tab.overview',
  machineAgents: 'tab.agents',
  machineSharing: 'tab.sharing',
  machineRuns: 'tab.runs',
} as const satisfies Readonly<Record<string, WordKey>>;
type Tab = keyof typeof tabs;

/** One machine: its state and menu in the header, the rest in tabs. */
export function Machine({ executor, tab }: { readonly executor: string; readonly tab: Tab }) {
  const { say, calls } = usePage();
  const asked = useAnswer(executor, () => calls.executor(executor), ['executor', 'pairing']);
  const label = asked.state === 'there' ? asked.answer.label : say('machine.title');
  return (
    <>
      <Title text={label} above={<Link to={addressOf('machines')}>{say('machines.title')}</Link>}>
        {asked.state === 'there' && (
          <div class="title-side">
            <MachineState executor={asked.answer} />
            <ComputerMenu executor={asked.answer} onDone={asked.ask} />
          </div>
        )}
      </Title>
      <Answered asked={asked} lines={10}>
        {(machine) => (
          <>
            <Situation machine={machine} />
            <nav class="tabs" aria-label={say('tab.label')}>
              {Object.entries(tabs).map(([view, key]) => (
                <Link
                  key={view}
                  // The table above holds only these views.
                  to={addressOf(view as Tab, { executor })}
                  current={view === tab ? 'page' : undefined}
                >
                  {say(key)}
                </Link>
              ))}
            </nav>
            <TabOf machine={machine} tab={tab} />
          </>
        )}
      </Answered>
    </>
  );
}

function TabOf({ machine, tab }: { readonly machine: ExecutorDetail; readonly tab: Tab }) {
  switch (tab) {
    case 'machine':
      return <MachineOverview machine={machine} />;
    case 'machineAgents':
      return <MachineAgents machine={machine} />;
    case 'machineSharing':
      return <MachineSharing machine={machine} />;
    case 'machineRuns':
      return <MachineRuns machine={machine} />;
  }
}

/** What holds now and what to do about it, where there is anything to do. */
function Situation({ machine }: { readonly machine: ExecutorDetail }) {
  const { say } = usePage();
  const { tone, meaning } = standingOf(machine);
  const fault = machine.fault === null ? undefined : (say.find(`fault.${machine.fault}`) ?? machine.fault);
  const because = machine.revokedBecause === null ? undefined : say.find(`revoked.${machine.revokedBecause}`);
  return (
    <>
      {(tone !== 'good' || machine.state === 'error') && (
        <Notice tone={tone === 'bad' ? 'error' : tone === 'waiting' ? 'warning' : 'info'}>
          <p>
            {say(meaning)} {because}
          </p>
          {fault !== undefined && <p>{fault}</p>}
        </Notice>
      )}
      {machine.pendingRevision !== null && machine.state !== 'revoked' && (
        <Notice tone="warning" title={say('machine.review-waits')}>
          <p>
            {machine.administers ? (
              <Link to={addressOf('descriptor', { executor: machine.executor })}>
                {say('machine.review-open', { revision: machine.pendingRevision })}
              </Link>
            ) : (
              say('machine.review-administrator')
            )}
          </p>
        </Notice>
      )}
    </>
  );
}
