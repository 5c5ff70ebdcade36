import { useState } from 'preact/hooks';

import type { RunSummary } from '../answers.ts';
import { useAnswer, usePage } from '../page.tsx';
import { Button } from '../parts/button.tsx';
import { Moment } from '../parts/facts.tsx';
import { Answered, Empty } from '../parts/notice.tsx';
import { StateMark } from '../parts/standing.tsx';
import { addressOf, Link } from '../router.tsx';

/** Runs of the person, newest first; of one machine where one is named. */
export function RunList({ executor }: { readonly executor?: string }) {
  const { say, calls } = usePage();
  const [before, setBefore] = useState<number>();
  const wanted = { ...(executor === undefined ? {} : { executor }), ...(before === undefined ? {} : { before }) };
  const asked = useAnswer(`${executor ?? ''} ${before ?? ''}`, () => calls.runs(wanted), ['run']);
  return (
    <Answered asked={asked} lines={8}>
      {({ runs, more }) => (
        <>
          {runs.length === 0 ? (
            <Empty title={say('runs.none')}>
              <p>{say('runs.none.text')}</p>
            </Empty>
          ) : (
            <ul class="rows" aria-label={say('runs.title')}>
              {runs.map((run) => (
                <li key={run.run}>
                  <RunRow run={run} />
                </li>
              ))}
            </ul>
          )}
          <div class="actions">
            {before !== undefined && <Button onPress={() => setBefore(undefined)}>{say('list.newest')}</Button>}
            {more && <Button onPress={() => setBefore(runs.at(-1)?.startedAt)}>{say('list.older')}</Button>}
          </div>
        </>
      )}
    </Answered>
  );
}

/** The state of a run by its word. */
export function RunState({ run }: { readonly run: RunSummary }) {
  const { say } = usePage();
  if (run.state === 'ended') return <StateMark tone="quiet" text={say('run.ended')} />;
  return <StateMark tone="good" text={say('run.active')} />;
}

function RunRow({ run }: { readonly run: RunSummary }) {
  const { say } = usePage();
  return (
    <div class="row">
      <div>
        <p class="row-name">
          <Link to={addressOf('run', { run: run.run })}>
            {say('run.name', { agent: run.agentName, machine: run.executorLabel ?? say('run.no-machine') })}
          </Link>
        </p>
        <p class="hint">
          {run.projectName} · <Moment at={run.startedAt} /> · {say.count('run.commands', run.commandCount)}
          {run.unknownCount > 0 && <span class="flag">{say.count('run.unknown', run.unknownCount)}</span>}
        </p>
      </div>
      <RunState run={run} />
    </div>
  );
}
