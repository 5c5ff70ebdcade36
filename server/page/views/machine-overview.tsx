import type { ExecutorDetail } from '../answers.ts';
import { usePage } from '../page.tsx';
import { Facts, Fingerprint, Moment, VerifiedMark, type Fact } from '../parts/facts.tsx';
import { Notice } from '../parts/notice.tsx';
import { LastSeen } from '../parts/standing.tsx';
import { addressOf, Link } from '../router.tsx';
import type { Words } from '../words.tsx';

/** What is known of a machine, what it offers, and what of that nobody has tried. */
export function MachineOverview({ machine }: { readonly machine: ExecutorDetail }) {
  const { say } = usePage();
  return (
    <div class="stack">
      <section aria-labelledby="facts">
        <h2 id="facts">{say('overview.facts')}</h2>
        <Facts facts={factsOf(machine, say)} />
      </section>
      {machine.fingerprint !== null && (
        <section aria-labelledby="key">
          <h2 id="key">{say('overview.key')}</h2>
          <Fingerprint digits={machine.fingerprint} label={say('overview.key')} />
          <VerifiedMark />
        </section>
      )}
      <section aria-labelledby="sandbox">
        <h2 id="sandbox">{say('overview.sandbox')}</h2>
        <SandboxText machine={machine} />
        <p>{say('proofs.unproved')}</p>
      </section>
      <section aria-labelledby="operations">
        <h2 id="operations">{say('overview.operations')}</h2>
        <Operations machine={machine} />
      </section>
      <Notice tone="info" title={say('overview.reach')}>
        <p>{say('overview.reach.text')}</p>
      </Notice>
    </div>
  );
}

function factsOf(machine: ExecutorDetail, say: Words): readonly Fact[] {
  const { descriptor, platform, project, rootName } = machine;
  const facts: (Fact | undefined)[] = [
    { name: say('fact.seen'), value: <LastSeen at={machine.lastSeenAt} /> },
    { name: say('fact.scope'), value: say(`scope.${machine.scope}`) },
    { name: say('place.team'), value: machine.team.name },
    project === null ? undefined : { name: say('place.project'), value: project.name },
    rootName === null ? undefined : { name: say('fact.root'), value: <code>{rootName}</code> },
    platform === null
      ? undefined
      : {
          name: say('fact.platform'),
          value: say('machine.platform', { ...platform, system: say(`system.${platform.system}`) }),
        },
    descriptor === null ? undefined : { name: say('fact.daemon'), value: descriptor.daemonVersion },
    descriptor === null
      ? undefined
      : { name: say('fact.supervisor'), value: say(`supervisor.${descriptor.supervisor}`) },
    machine.promotion === null
      ? undefined
      : { name: say('fact.promotion'), value: say(`confirmed-at.${machine.promotion}`) },
    machine.difference === null
      ? undefined
      : { name: say('fact.difference'), value: say(`shown-at.${machine.difference}`) },
    { name: say('fact.revision'), value: revisionText(machine, say) },
    { name: say('fact.paired'), value: <Moment at={machine.createdAt} /> },
  ];
  return facts.filter((fact) => fact !== undefined);
}

function revisionText(machine: ExecutorDetail, say: Words) {
  if (machine.latestRevision === 0) return say('fact.revision.none');
  const text =
    machine.confirmedRevision === 0
      ? say('fact.revision.unconfirmed', { latest: machine.latestRevision })
      : say('fact.revision.confirmed', { confirmed: machine.confirmedRevision });
  return <Link to={addressOf('descriptor', { executor: machine.executor })}>{text}</Link>;
}

function SandboxText({ machine: { sandbox } }: { readonly machine: ExecutorDetail }) {
  const { say } = usePage();
  if (sandbox === null) return <p>{say('sandbox.unknown')}</p>;
  return (
    <>
      <p>
        <strong>{say('sandbox.none')}</strong> {say(`sandbox.none.${sandbox.reason}`)}
      </p>
      <p>{say('sandbox.none.works')}</p>
    </>
  );
}

function Operations({ machine }: { readonly machine: ExecutorDetail }) {
  const { say } = usePage();
  if (machine.operations.length === 0) return <p>{say('overview.operations.none')}</p>;
  return (
    <ul class="rows" aria-labelledby="operations">
      {machine.operations.map(({ key, description, confirmed, caller }) => (
        <li key={key} class="operation">
          <code>{key}</code>
          <p>
            {description}
            {!confirmed && <span class="flag">{say('overview.operation.unconfirmed')}</span>}
          </p>
          <p class="hint">{say(`caller.${caller}`)}</p>
        </li>
      ))}
    </ul>
  );
}
