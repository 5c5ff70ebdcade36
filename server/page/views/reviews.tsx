import type { ReviewSummary } from '../answers.ts';
import { useAnswer, usePage } from '../page.tsx';
import { Moment, Title } from '../parts/facts.tsx';
import { Answered, Empty } from '../parts/notice.tsx';
import { StateMark } from '../parts/standing.tsx';
import { addressOf, Link } from '../router.tsx';
import { promotionTone } from './promotion-state.ts';

/** Reviewed drafts of the person's own runs (N-142). */
export function Reviews() {
  const { say, calls } = usePage();
  const asked = useAnswer('reviews', calls.reviews, ['run']);
  return (
    <>
      <Title text={say('reviews.title')} />
      <Answered asked={asked}>
        {({ reviews }) =>
          reviews.length === 0 ? (
            <Empty title={say('reviews.none')}>
              <p>{say('reviews.none.text')}</p>
              <div class="actions">
                <Link to={addressOf('runs')} class="button primary">
                  {say('reviews.runs')}
                </Link>
              </div>
            </Empty>
          ) : (
            <ReviewRows reviews={reviews} />
          )
        }
      </Answered>
    </>
  );
}

/** Reviews as rows, each with what became of it. */
export function ReviewRows({ reviews }: { readonly reviews: readonly ReviewSummary[] }) {
  const { say } = usePage();
  return (
    <ul class="rows" aria-label={say('reviews.title')}>
      {reviews.map((review) => (
        <li key={review.review}>
          <div class="row">
            <div>
              <p class="row-name">
                <Link to={addressOf('review', { review: review.review })}>
                  {say.count('reviews.changes', review.changeCount)}
                </Link>
              </p>
              <p class="hint">
                {say('run.name', { agent: review.agentName, machine: review.executorLabel })} ·{' '}
                <Moment at={review.createdAt} /> · <code class="quiet-code">{review.manifestDigest.slice(0, 12)}</code>
              </p>
            </div>
            <ReviewState review={review} />
          </div>
        </li>
      ))}
    </ul>
  );
}

function ReviewState({ review }: { readonly review: ReviewSummary }) {
  const { say } = usePage();
  const { promotionState, stale } = review;
  if (promotionState !== null) {
    const word = say.find(`promotion.${promotionState}`) ?? promotionState;
    return <StateMark tone={promotionTone(promotionState)} text={word} />;
  }
  if (stale) return <StateMark tone="quiet" text={say('reviews.stale')} />;
  return <StateMark tone="waiting" text={say('reviews.open')} />;
}
