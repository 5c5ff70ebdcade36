import { useState } from 'preact/hooks';

import type { PromotionSummary, ReviewDetail } from '../answers.ts';
import { useAnswer, useDeed, usePage, useSignedIn } from '../page.tsx';
import { Button } from '../parts/button.tsx';
import { CopyBlock, Remaining } from '../parts/facts.tsx';
import { PasswordField } from '../parts/field.tsx';
import { Answered, Notice, Refused } from '../parts/notice.tsx';
import { StateMark } from '../parts/standing.tsx';
import { addressOf, Link } from '../router.tsx';
import { hasEnded, promotionTone } from './promotion-state.ts';

interface Part {
  readonly review: ReviewDetail;
  readonly onDone: () => void;
}

/** Promoting what was reviewed: prepared for ten minutes, approved once with the current password (N-145, N-147). */
export function Promote({ review, onDone }: Part) {
  const { say, calls } = usePage();
  const asked = useAnswer(review.run, () => calls.run(review.run), ['run', 'executor']);
  return (
    <section class="panel" aria-labelledby="promote">
      <h2 id="promote">{say('promote.title')}</h2>
      <p>{say('promote.text', { machine: review.executorLabel })}</p>
      <Answered asked={asked} lines={2}>
        {({ promotions }) => (
          <Newest
            review={review}
            newest={promotions.filter((one) => one.review === review.review).toSorted(byExpiry)[0]}
            onDone={() => {
              onDone();
              if (asked.state === 'there') asked.ask();
            }}
          />
        )}
      </Answered>
    </section>
  );
}

const byExpiry = (one: PromotionSummary, other: PromotionSummary): number => other.expiresAt - one.expiresAt;

function Newest({ review, newest, onDone }: Part & { readonly newest: PromotionSummary | undefined }) {
  const { say } = usePage();
  const under = newest !== undefined && !hasEnded(newest.state) ? newest : undefined;
  return (
    <>
      {review.promotion === 'machine' && (
        <Notice tone="warning" title={say('promote.machine')}>
          <p>{say('promote.machine.text')}</p>
          <CopyBlock text={`nessie-executor review ${review.run} --approve`} label={say('promote.machine.command')} />
        </Notice>
      )}
      <div aria-live="polite" class="stack">
        {newest !== undefined && <Standing promotion={newest} />}
      </div>
      {under === undefined && newest?.state !== 'promoted' && <Prepare review={review} onDone={onDone} />}
      {under?.state === 'prepared' && <Approve review={review} promotion={under} onDone={onDone} />}
      {under !== undefined && under.state !== 'prepared' && <Cancel promotion={under} onDone={onDone} />}
    </>
  );
}

function Standing({ promotion }: { readonly promotion: PromotionSummary }) {
  const { say } = usePage();
  const { state, code } = promotion;
  const why = code === null ? undefined : (say.find(`code.${code}`) ?? code);
  return (
    <>
      <p>
        <StateMark tone={promotionTone(state)} text={say.find(`promotion.${state}`) ?? state} />{' '}
        {say.find(`promotion.${state}.text`)}
      </p>
      {why !== undefined && (
        <Notice tone="error">
          <p>
            {why} <code class="quiet-code">{code}</code>
          </p>
        </Notice>
      )}
    </>
  );
}

function Prepare({ review, onDone }: Part) {
  const { say, calls } = usePage();
  const deed = useDeed();
  return (
    <>
      <Refused refused={deed.refused} />
      <div class="actions">
        <Button
          kind="primary"
          busy={deed.busy}
          disabled={review.changeCount === 0}
          onPress={() => void deed.run(() => calls.preparePromotion(review.review).then(onDone))}
        >
          {say('promote.prepare')}
        </Button>
      </div>
    </>
  );
}

function Approve({ review, promotion, onDone }: Part & { readonly promotion: PromotionSummary }) {
  const { say, calls, announce } = usePage();
  const { person } = useSignedIn();
  const [password, setPassword] = useState('');
  const approving = useDeed();
  const cancelling = useDeed();
  const approve = async (event: Event): Promise<void> => {
    event.preventDefault();
    const done = await approving.run(() => calls.approve(promotion.promotion, password));
    setPassword('');
    if (done) {
      announce(say('promote.approved'));
      onDone();
    }
  };
  return (
    <form onSubmit={(event) => void approve(event)}>
      <p>
        {say.count('promote.what', promotion.changeCount, { machine: review.executorLabel })}{' '}
        {say.parts('promote.remaining', { remaining: <Remaining until={promotion.expiresAt} /> })}
      </p>
      {!person.hasPassword && (
        <Notice tone="warning">
          <p>
            {say.parts('password.none', { account: <Link to={addressOf('account')}>{say('account.title')}</Link> })}
          </p>
        </Notice>
      )}
      <PasswordField label={say('password.current')} kind="current" value={password} onValue={setPassword} autoFocus />
      <Refused refused={approving.refused ?? cancelling.refused} />
      <div class="actions">
        <Button kind="primary" submit busy={approving.busy}>
          {say('promote.do')}
        </Button>
        <Button
          busy={cancelling.busy}
          onPress={() => void cancelling.run(() => calls.cancelPromotion(promotion.promotion).then(onDone))}
        >
          {say('promote.not-now')}
        </Button>
      </div>
    </form>
  );
}

function Cancel({ promotion, onDone }: { readonly promotion: PromotionSummary; readonly onDone: () => void }) {
  const { say, calls } = usePage();
  const deed = useDeed();
  if (promotion.state === 'unknown') return null;
  return (
    <>
      <Refused refused={deed.refused} />
      <div class="actions">
        <Button
          busy={deed.busy}
          onPress={() => void deed.run(() => calls.cancelPromotion(promotion.promotion).then(onDone))}
        >
          {say('promote.cancel')}
        </Button>
      </div>
    </>
  );
}
