import { useState } from 'preact/hooks';

import type { DescriptorReviewAnswer, ExecutorDetail, FactDifference, PendingRevision } from '../answers.ts';
import { useAnswer, useDeed, usePage, useSignedIn } from '../page.tsx';
import { Button } from '../parts/button.tsx';
import { Fingerprint, Moment, Title, VerifiedMark } from '../parts/facts.tsx';
import { PasswordField } from '../parts/field.tsx';
import { Answered, Empty, Notice, Refused } from '../parts/notice.tsx';
import { addressOf, Link, useRouter } from '../router.tsx';
import type { Words } from '../words.tsx';

/** What a machine says about itself now, fact by fact against what was confirmed; nothing of it counts before (N-083, N-084). */
export function DescriptorReview({ executor }: { readonly executor: string }) {
  const { say, calls } = usePage();
  const machine = useAnswer(executor, () => calls.executor(executor), ['executor']);
  const asked = useAnswer(executor, () => calls.descriptor(executor), ['executor']);
  const label = machine.state === 'there' ? machine.answer.label : say('machine.title');
  return (
    <>
      <Title text={say('descriptor.title')} above={<Link to={addressOf('machine', { executor })}>{label}</Link>} />
      <Answered asked={machine} lines={3}>
        {(detail) => (
          <Answered asked={asked} lines={8}>
            {(answer) => <Revisions machine={detail} answer={answer} />}
          </Answered>
        )}
      </Answered>
    </>
  );
}

function Revisions({ machine, answer }: { readonly machine: ExecutorDetail; readonly answer: DescriptorReviewAnswer }) {
  const { say } = usePage();
  const { confirmed, pending } = answer;
  return (
    <div class="stack">
      {pending === null ? (
        <Empty title={say('descriptor.nothing')}>
          <p>{say('descriptor.nothing.text')}</p>
        </Empty>
      ) : (
        <Pending machine={machine} pending={pending} first={confirmed === null} />
      )}
      {confirmed !== null && (
        <section aria-labelledby="in-force">
          <h2 id="in-force">{say('descriptor.in-force', { revision: confirmed.revision })}</h2>
          <p>
            {say.parts('descriptor.decided', {
              who: <strong>{confirmed.decidedBy}</strong>,
              when: <Moment at={confirmed.decidedAt} />,
            })}
          </p>
          <p class="operations">
            {confirmed.document.operations.map((key) => (
              <code key={key}>{key}</code>
            ))}
          </p>
        </section>
      )}
    </div>
  );
}

function Pending({
  machine,
  pending,
  first,
}: {
  readonly machine: ExecutorDetail;
  readonly pending: PendingRevision;
  readonly first: boolean;
}) {
  const { say } = usePage();
  return (
    <>
      <p>{say(first ? 'descriptor.first' : 'descriptor.changed', { revision: pending.revision })}</p>
      <VerifiedMark />
      <section aria-labelledby="differences">
        <h2 id="differences">{say.count('descriptor.differences', pending.differences.length)}</h2>
        <Differences differences={pending.differences} first={first} />
        <p class="hint">
          {say.parts('descriptor.arrived', {
            revision: String(pending.revision),
            when: <Moment at={pending.arrivedAt} />,
          })}
        </p>
        {pending.operations.added.length > 0 && <p>{say('descriptor.denied')}</p>}
      </section>
      <section aria-labelledby="digest">
        <h2 id="digest">{say('descriptor.digest')}</h2>
        <Fingerprint digits={pending.digest} label={say('descriptor.digest')} />
      </section>
      <Decide machine={machine} pending={pending} />
    </>
  );
}

/** Name of a fact in the person's language; a fact that this page has no words for is shown by its own name. */
function factName(fact: string, say: Words): string {
  return say.find(`described.${fact}`) ?? fact;
}

function Differences({
  differences,
  first,
}: {
  readonly differences: readonly FactDifference[];
  readonly first: boolean;
}) {
  const { say } = usePage();
  return (
    <div class="table-wrap" tabIndex={0} role="group" aria-labelledby="differences">
      <table class="facts-table">
        <thead>
          <tr>
            <th scope="col">{say('descriptor.fact')}</th>
            {!first && <th scope="col">{say('descriptor.before')}</th>}
            <th scope="col">{say(first ? 'descriptor.value' : 'descriptor.after')}</th>
          </tr>
        </thead>
        <tbody>
          {differences.map(({ fact, before, after }, index) => (
            <tr key={`${fact} ${index}`}>
              <th scope="row">
                {factName(fact, say)} <code class="quiet-code">{fact}</code>
              </th>
              {!first && (
                <td>
                  {before === null ? (
                    <span class="quiet-text">{say('descriptor.absent')}</span>
                  ) : (
                    <Value text={before} />
                  )}
                </td>
              )}
              <td>
                {after === null ? <span class="quiet-text">{say('descriptor.gone')}</span> : <Value text={after} />}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Value({ text }: { readonly text: string }) {
  return <code class="value">{text}</code>;
}

/** The two answers to a revision, named by its digest. */
function useDecision(machine: ExecutorDetail, { revision, digest }: PendingRevision) {
  const { say, calls, announce } = usePage();
  const { go } = useRouter();
  const confirming = useDeed();
  const refusing = useDeed();
  const back = (sentence: string): void => {
    announce(sentence);
    go(addressOf('machine', { executor: machine.executor }));
  };
  const confirm = async (password: string): Promise<void> => {
    const decision = { revision, digest, answer: 'confirm', password } as const;
    if (await confirming.run(() => calls.decide(machine.executor, decision))) {
      back(say('descriptor.confirmed', { label: machine.label }));
    }
  };
  const refuse = async (): Promise<void> => {
    const done = await refusing.run(() => calls.decide(machine.executor, { revision, digest, answer: 'refuse' }));
    if (done) back(say('descriptor.refused', { label: machine.label }));
  };
  return { confirming, refusing, confirm, refuse };
}

function Decide({ machine, pending }: { readonly machine: ExecutorDetail; readonly pending: PendingRevision }) {
  const { say } = usePage();
  const { person } = useSignedIn();
  const [password, setPassword] = useState('');
  const { confirming, refusing, confirm, refuse } = useDecision(machine, pending);
  if (!machine.administers) {
    return (
      <Notice tone="info">
        <p>{say('machine.review-administrator')}</p>
      </Notice>
    );
  }
  const submit = (event: Event): void => {
    event.preventDefault();
    void confirm(password);
    setPassword('');
  };
  return (
    <form class="panel" onSubmit={submit}>
      <h2>{say('descriptor.decide')}</h2>
      <p>{say('descriptor.decide.text')}</p>
      {!person.hasPassword && (
        <Notice tone="warning">
          <p>
            {say.parts('password.none', { account: <Link to={addressOf('account')}>{say('account.title')}</Link> })}
          </p>
        </Notice>
      )}
      <PasswordField label={say('password.current')} kind="current" value={password} onValue={setPassword} />
      <Refused refused={confirming.refused ?? refusing.refused} />
      <div class="actions">
        <Button kind="primary" submit busy={confirming.busy}>
          {say('descriptor.confirm', { revision: pending.revision })}
        </Button>
        <Button busy={refusing.busy} onPress={() => void refuse()}>
          {say('descriptor.refuse')}
        </Button>
      </div>
    </form>
  );
}
