import { usePage } from '../page.tsx';
import { Title } from '../parts/facts.tsx';
import { addressOf, Link, useRouter } from '../router.tsx';
import { Account } from './account.tsx';
import { Agent } from './agent.tsx';
import { Agents } from './agents.tsx';
import { DescriptorReview } from './descriptor-review.tsx';
import { Enrol } from './enrol.tsx';
import { History } from './history.tsx';
import { Launch } from './launch.tsx';
import { Machine } from './machine.tsx';
import { Machines } from './machines.tsx';
import { Pair } from './pair.tsx';
import { Pairing } from './pairing.tsx';
import { People } from './people.tsx';
import { Review } from './review.tsx';
import { Reviews } from './reviews.tsx';
import { Run } from './run.tsx';
import { Runs } from './runs.tsx';

/** The view of the address; another thing of the same kind begins it anew. */
export function ViewOf() {
  const { place } = useRouter();
  const { executor = '', run = '', review = '', agent = '', pairing = '' } = place.parameters;
  switch (place.view) {
    case 'machines':
      return <Machines />;
    case 'pair':
      return <Pair />;
    case 'enrol':
      return <Enrol />;
    case 'pairing':
      return <Pairing key={pairing} pairing={pairing} />;
    case 'machine':
    case 'machineAgents':
    case 'machineSharing':
    case 'machineRuns':
      return <Machine key={executor} executor={executor} tab={place.view} />;
    case 'descriptor':
      return <DescriptorReview key={executor} executor={executor} />;
    case 'runs':
      return <Runs />;
    case 'launch':
      return <Launch />;
    case 'run':
      return <Run key={run} run={run} />;
    case 'reviews':
      return <Reviews />;
    case 'review':
      return <Review key={review} review={review} />;
    case 'agents':
      return <Agents />;
    case 'agent':
      return <Agent key={agent} agent={agent} />;
    case 'people':
      return <People />;
    case 'history':
      return <History />;
    case 'account':
      return <Account />;
    case undefined:
      return <Unknown />;
  }
}

function Unknown() {
  const { say } = usePage();
  return (
    <>
      <Title text={say('unknown.title')} />
      <p>{say('unknown.text')}</p>
      <p>
        <Link to={addressOf('machines')}>{say('unknown.home')}</Link>
      </p>
    </>
  );
}
