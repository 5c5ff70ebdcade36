import type { ExecutorSummary } from '../answers.ts';
import { useAnswer, usePage, useSignedIn } from '../page.tsx';
import { Title } from '../parts/facts.tsx';
import { Answered, Empty } from '../parts/notice.tsx';
import { LastSeen, MachineState } from '../parts/standing.tsx';
import { addressOf, Link } from '../router.tsx';
import { Emergency } from './emergency.tsx';

/** Every machine that the person may know of, with what it is doing. */
export function Machines() {
  const { say, calls } = usePage();
  const { person } = useSignedIn();
  const asked = useAnswer('executors', calls.executors, ['executor', 'pairing']);
  return (
    <>
      <Title text={say('machines.title')}>
        <Link to={addressOf('pair')} class="button primary">
          {say('machines.pair')}
        </Link>
      </Title>
      <Answered asked={asked} lines={6}>
        {({ executors }) => (executors.length === 0 ? <NoMachines /> : <List executors={executors} />)}
      </Answered>
      {person.role === 'owner' && asked.state === 'there' && (
        <Emergency managed={asked.answer.executors.filter((one) => one.administers)} />
      )}
    </>
  );
}

function NoMachines() {
  const { say } = usePage();
  return (
    <Empty title={say('machines.none')}>
      <p>{say('machines.none.text')}</p>
      <ol>
        <li>{say.parts('machines.none.step1', { command: <code>nessie-executor pair</code> })}</li>
        <li>{say('machines.none.step2')}</li>
        <li>{say('machines.none.step3')}</li>
      </ol>
      <div class="actions">
        <Link to={addressOf('pair')} class="button primary">
          {say('machines.pair')}
        </Link>
        <Link to={addressOf('enrol')} class="button plain">
          {say('machines.enrol')}
        </Link>
      </div>
    </Empty>
  );
}

function List({ executors }: { readonly executors: readonly ExecutorSummary[] }) {
  const { say } = usePage();
  return (
    <>
      <ul class="cards" aria-label={say('machines.title')}>
        {executors.map((executor) => (
          <li key={executor.executor}>
            <Card executor={executor} />
          </li>
        ))}
      </ul>
      <p class="hint">
        {say.parts('machines.operators', {
          enrol: <Link to={addressOf('enrol')}>{say('machines.enrol')}</Link>,
        })}
      </p>
    </>
  );
}

function Card({ executor }: { readonly executor: ExecutorSummary }) {
  const { say } = usePage();
  const { executor: id, label, platform, rootName, scope, team, project } = executor;
  return (
    <article class="machine-card">
      <div class="machine-card-head">
        <h2>
          <Link to={addressOf('machine', { executor: id })}>{label}</Link>
        </h2>
        <MachineState executor={executor} />
      </div>
      <p class="machine-card-facts">
        {rootName !== null && <code>{rootName}</code>}
        {platform !== null && (
          <span>{say('machine.platform', { ...platform, system: say(`system.${platform.system}`) })}</span>
        )}
        <span>
          {say(`scope.${scope}`)} · {project?.name ?? team.name}
        </span>
      </p>
      <p class="machine-card-seen">
        <span>
          <LastSeen at={executor.lastSeenAt} />
        </span>
        {executor.pendingRevision !== null && executor.administers && (
          <Link to={addressOf('descriptor', { executor: id })} class="flag">
            {say('machine.review-needed')}
          </Link>
        )}
      </p>
    </article>
  );
}
