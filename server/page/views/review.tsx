import { useState } from 'preact/hooks';

import type { ReviewDetail } from '../answers.ts';
import { useAnswer, usePage } from '../page.tsx';
import { Facts, Fingerprint, Moment, Title } from '../parts/facts.tsx';
import { Answered, Notice } from '../parts/notice.tsx';
import { addressOf, Link } from '../router.tsx';
import { ReviewChanges } from './review-changes.tsx';
import { Promote } from './promote.tsx';

/** A reviewed draft: what it changes, how it differs, and the way to promote it. */
export function Review({ review: id }: { readonly review: string }) {
  const { say, calls } = usePage();
  const [offset, setOffset] = useState(0);
  const asked = useAnswer(`${id} ${offset}`, () => calls.review(id, offset), ['run', 'executor']);
  const title = asked.state === 'there' ? say.count('reviews.changes', asked.answer.changeCount) : say('review.title');
  return (
    <>
      <Title text={title} above={<Link to={addressOf('reviews')}>{say('reviews.title')}</Link>} />
      <Answered asked={asked} lines={10}>
        {(review) => (
          <div class="stack">
            <About review={review} />
            <ReviewChanges review={review} offset={offset} onOffset={setOffset} />
            <Promote review={review} onDone={asked.state === 'there' ? asked.ask : () => undefined} />
          </div>
        )}
      </Answered>
    </>
  );
}

function About({ review }: { readonly review: ReviewDetail }) {
  const { say } = usePage();
  return (
    <section aria-labelledby="about">
      <h2 id="about" class="only-heard">
        {say('review.about')}
      </h2>
      <Facts
        facts={[
          {
            name: say('review.run'),
            value: (
              <Link to={addressOf('run', { run: review.run })}>
                {say('run.name', { agent: review.agentName, machine: review.executorLabel })}
              </Link>
            ),
          },
          {
            name: say('run.machine'),
            value: <Link to={addressOf('machine', { executor: review.executor })}>{review.executorLabel}</Link>,
          },
          { name: say('review.made'), value: <Moment at={review.createdAt} /> },
        ]}
      />
      <h3>{say('review.manifest')}</h3>
      <Fingerprint digits={review.manifestDigest} label={say('review.manifest')} />
      <p class="hint">{say('review.manifest.text')}</p>
      {review.stale && (
        <Notice tone="warning" title={say('review.stale')}>
          <p>{say('review.stale.text')}</p>
        </Notice>
      )}
    </section>
  );
}
