import { useEffect } from 'preact/hooks';

import type { ShownPairing } from '../answers.ts';
import { useAnswer, useDeed, usePage, useSignedIn } from '../page.tsx';
import { Button } from '../parts/button.tsx';
import { Facts, Fingerprint, Title } from '../parts/facts.tsx';
import { Answered, Notice, Refused } from '../parts/notice.tsx';
import { addressOf, Link } from '../router.tsx';
import { EnrolmentConfirm } from './enrolment-confirm.tsx';
import { Steps } from './pair.tsx';
import { PairingFacts } from './pairing-facts.tsx';

/** How often a pairing is asked for while it waits, beside the live stream, in ms. */
const ASK_MS = 3000;
const open: ReadonlySet<string> = new Set(['issued', 'submitted', 'offered', 'claimed']);

/** Where a pairing stands; nothing here completes it: that is done at the machine (N-076). */
export function Pairing({ pairing: id }: { readonly pairing: string }) {
  const { say, calls } = usePage();
  const asked = useAnswer(id, () => calls.pairing(id), ['pairing', 'executor']);
  const waits = asked.state === 'there' && open.has(asked.answer.state);
  const ask = asked.state === 'there' ? asked.ask : undefined;
  useEffect(() => {
    if (!waits || ask === undefined) return undefined;
    const timer = setInterval(ask, ASK_MS);
    return () => clearInterval(timer);
  }, [waits, ask]);
  return (
    <>
      <Title text={say('pairing.title')} above={<Link to={addressOf('machines')}>{say('machines.title')}</Link>} />
      <Answered asked={asked} lines={8}>
        {(pairing) => (
          <>
            {pairing.flow === 'code' && <Steps at={pairing.state === 'confirmed' ? 3 : 2} />}
            <div aria-live="polite">
              <Standing pairing={pairing} onDone={ask} />
            </div>
          </>
        )}
      </Answered>
    </>
  );
}

function Standing({ pairing, onDone }: { readonly pairing: ShownPairing; readonly onDone: (() => void) | undefined }) {
  const { say } = usePage();
  switch (pairing.state) {
    case 'issued':
      return (
        <Notice tone="info" title={say('pairing.issued')}>
          <p>{say('pairing.issued.text')}</p>
        </Notice>
      );
    case 'submitted':
      return <EnrolmentConfirm pairing={pairing} onDone={onDone} />;
    case 'claimed':
      return <AtTheMachine pairing={pairing} onDone={onDone} />;
    case 'confirmed':
      return <Paired pairing={pairing} />;
    default:
      return (
        <div class="stack">
          <Notice tone="error" title={say.find(`pairing.${pairing.state}`) ?? pairing.state}>
            <p>{say.find(`pairing.${pairing.state}.text`) ?? say('pairing.again')}</p>
          </Notice>
          <div class="actions">
            <Link to={addressOf('pair')} class="button primary">
              {say('machines.pair')}
            </Link>
          </div>
        </div>
      );
  }
}

function AtTheMachine({ pairing, onDone }: { pairing: ShownPairing; onDone: (() => void) | undefined }) {
  const { say, calls, session } = usePage();
  const { organisation } = useSignedIn();
  const deed = useDeed();
  const cancel = (): void => void deed.run(() => calls.cancelPairing(pairing.pairing).then(onDone));
  return (
    <div class="stack">
      <Notice tone="warning" title={say('pairing.claimed')}>
        <p>{say('pairing.claimed.text')}</p>
      </Notice>
      <div class="columns even">
        <section aria-labelledby="shown">
          <h2 id="shown">{say('pairing.shows')}</h2>
          <Facts
            facts={[
              { name: say('set-up.organisation'), value: organisation.name },
              { name: say('place.team'), value: pairing.teamName },
              { name: say('fact.scope'), value: pairing.scope === null ? null : say(`scope.${pairing.scope}`) },
              { name: say('pair.label'), value: pairing.label },
            ]}
          />
          <h3>{say('pairing.command-key')}</h3>
          <Fingerprint digits={session.commandKeyFingerprint} label={say('pairing.command-key')} />
        </section>
        <section aria-labelledby="stated">
          <h2 id="stated">{say('pairing.stated')}</h2>
          <PairingFacts pairing={pairing} />
        </section>
      </div>
      <Refused refused={deed.refused} />
      <div class="actions">
        <Button busy={deed.busy} onPress={cancel}>
          {say('pairing.cancel')}
        </Button>
      </div>
    </div>
  );
}

function Paired({ pairing: { executor, label, machineName } }: { readonly pairing: ShownPairing }) {
  const { say } = usePage();
  return (
    <div class="stack">
      <Notice tone="done" title={say('pairing.confirmed', { name: label ?? machineName ?? '' })}>
        <p>{say('pairing.confirmed.text')}</p>
      </Notice>
      {executor !== null && (
        <div class="actions">
          <Link to={addressOf('descriptor', { executor })} class="button primary">
            {say('pairing.review')}
          </Link>
          <Link to={addressOf('machine', { executor })} class="button plain">
            {say('pairing.open')}
          </Link>
        </div>
      )}
    </div>
  );
}
