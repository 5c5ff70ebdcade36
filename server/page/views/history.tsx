import { useState } from 'preact/hooks';

import type { AuditAnswer } from '../answers.ts';
import { useAnswer, usePage } from '../page.tsx';
import { Button } from '../parts/button.tsx';
import { Moment, Title } from '../parts/facts.tsx';
import { Answered, Empty } from '../parts/notice.tsx';
import { addressOf, Link } from '../router.tsx';

/** The audit chain as far as the person may see it: who did what, an assistant's part apart (N-196). */
export function History() {
  const { say, calls } = usePage();
  const [before, setBefore] = useState<number>();
  const asked = useAnswer(`audit ${before ?? ''}`, () => calls.audit(before), ['executor', 'run', 'pairing', 'agents']);
  return (
    <>
      <Title text={say('history.title')} above={<Link to={addressOf('people')}>{say('people.title')}</Link>} />
      <p>{say('history.text')}</p>
      <Answered asked={asked} lines={10}>
        {({ entries, more }) => (
          <>
            {entries.length === 0 ? <Empty title={say('history.none')}>{null}</Empty> : <Entries entries={entries} />}
            <div class="actions">
              {before !== undefined && <Button onPress={() => setBefore(undefined)}>{say('list.newest')}</Button>}
              {more && <Button onPress={() => setBefore(entries.at(-1)?.sequence)}>{say('list.older')}</Button>}
            </div>
          </>
        )}
      </Answered>
    </>
  );
}

function Entries({ entries }: { readonly entries: AuditAnswer['entries'] }) {
  const { say } = usePage();
  return (
    <ol class="rows" aria-label={say('history.title')} reversed>
      {entries.map((entry) => {
        const who = [entry.personName, entry.agentName, entry.assistant].filter((name) => name !== null).join(', ');
        return (
          <li key={entry.sequence} class="entry">
            <span class="digits hint">{entry.sequence}</span>
            <p>
              <code>{entry.action}</code> {entry.outcome !== 'done' && <span class="flag">{entry.outcome}</span>}
              {entry.reason !== null && <code class="quiet-code"> {entry.reason}</code>}
            </p>
            <p class="hint">
              {who === '' ? say('history.nobody') : who}
              {entry.label !== null && ` · ${entry.label}`} · <Moment at={entry.at} />
            </p>
          </li>
        );
      })}
    </ol>
  );
}
