import type { ExecutorDetail } from '../answers.ts';
import { usePage } from '../page.tsx';
import { addressOf, Link } from '../router.tsx';
import { RunList } from './run-list.tsx';

/** Runs that used a machine, those that the person may see. */
export function MachineRuns({ machine }: { readonly machine: ExecutorDetail }) {
  const { say } = usePage();
  return (
    <div class="stack">
      <div class="actions">
        <Link to={`${addressOf('launch')}?executor=${machine.executor}`} class="button plain">
          {say('runs.launch')}
        </Link>
      </div>
      <RunList executor={machine.executor} />
    </div>
  );
}
