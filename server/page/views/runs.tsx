import { usePage } from '../page.tsx';
import { Title } from '../parts/facts.tsx';
import { addressOf, Link } from '../router.tsx';
import { RunList } from './run-list.tsx';

/** The person's runs. */
export function Runs() {
  const { say } = usePage();
  return (
    <>
      <Title text={say('runs.title')}>
        <Link to={addressOf('launch')} class="button primary">
          {say('runs.launch')}
        </Link>
      </Title>
      <RunList />
    </>
  );
}
