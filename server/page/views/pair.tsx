import { useState } from 'preact/hooks';

import type { ShownPairing } from '../answers.ts';
import { useDeed, usePage } from '../page.tsx';
import { Button } from '../parts/button.tsx';
import { CopyBlock, Title } from '../parts/facts.tsx';
import { TextField } from '../parts/field.tsx';
import { Notice, Refused } from '../parts/notice.tsx';
import { addressOf, Link, useRouter } from '../router.tsx';
import { PairingFacts } from './pairing-facts.tsx';
import { PlacementFields, usePlacement } from './placement.tsx';

/** Pairing a machine by the eight digits that it shows: look them up, compare, choose where it belongs (N-075). */
export function Pair() {
  const { say } = usePage();
  const [found, setFound] = useState<ShownPairing>();
  return (
    <>
      <Title text={say('pair.title')} above={<Link to={addressOf('machines')}>{say('machines.title')}</Link>} />
      <Steps at={found === undefined ? 0 : 1} />
      {found === undefined ? (
        <CodeForm onFound={setFound} />
      ) : (
        <ClaimForm found={found} onBack={() => setFound(undefined)} />
      )}
    </>
  );
}

/** The three steps of a pairing, with the one at hand. */
export function Steps({ at }: { readonly at: number }) {
  const { say } = usePage();
  const steps = [say('pair.step.code'), say('pair.step.compare'), say('pair.step.machine')];
  return (
    <ol class="steps" aria-label={say('pair.steps')}>
      {steps.map((step, index) => (
        <li
          key={step}
          class={index < at ? 'done' : index === at ? 'current' : undefined}
          aria-current={index === at ? 'step' : undefined}
        >
          {step}
        </li>
      ))}
    </ol>
  );
}

function CodeForm({ onFound }: { readonly onFound: (found: ShownPairing) => void }) {
  const { say, calls, announce } = usePage();
  const [code, setCode] = useState('');
  const [problem, setProblem] = useState<string>();
  const deed = useDeed();
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    const digits = code.replaceAll(/\D/g, '');
    setProblem(digits.length === 8 ? undefined : say('pair.code-problem', { count: digits.length }));
    if (digits.length !== 8) return;
    await deed.run(async () => {
      const found = await calls.lookUp(digits);
      announce(say('pair.found', { name: found.machineName ?? '' }));
      onFound(found);
    });
  };
  return (
    <div class="columns">
      <form class="panel" onSubmit={(event) => void submit(event)} noValidate>
        <TextField
          label={say('pair.code')}
          hint={say('pair.code-hint')}
          problem={problem}
          value={code}
          onValue={(value) => setCode(value.replaceAll(/[^\d ]/g, ''))}
          inputMode="numeric"
          autocomplete="one-time-code"
          maxLength={9}
          code
          autoFocus
        />
        <Refused refused={deed.refused} />
        <div class="actions">
          <Button kind="primary" submit busy={deed.busy}>
            {say('pair.look-up')}
          </Button>
        </div>
      </form>
      <OnTheMachine />
    </div>
  );
}

function OnTheMachine() {
  const { say } = usePage();
  return (
    <section class="aside" aria-labelledby="how">
      <h2 id="how">{say('pair.how')}</h2>
      <p>{say('pair.how.text')}</p>
      <CopyBlock text={`nessie-executor pair --origin ${location.origin} --root FOLDER`} label={say('pair.command')} />
      <p class="hint">{say('pair.how.root')}</p>
      <p class="hint">
        {say.parts('pair.operators', { enrol: <Link to={addressOf('enrol')}>{say('machines.enrol')}</Link> })}
      </p>
      <p class="hint">{say('proofs.unproved')}</p>
    </section>
  );
}

function ClaimForm({ found, onBack }: { readonly found: ShownPairing; readonly onBack: () => void }) {
  const { say, calls } = usePage();
  const { go } = useRouter();
  const [placement, setPlacement] = usePlacement(found.machineName ?? '');
  const deed = useDeed();
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    const { fingerprint } = found;
    if (fingerprint === null) return;
    if (await deed.run(() => calls.claim(found.pairing, { ...placement, fingerprint }))) {
      go(addressOf('pairing', { pairing: found.pairing }));
    }
  };
  return (
    <form class="columns" onSubmit={(event) => void submit(event)}>
      <section aria-labelledby="machine">
        <h2 id="machine">{say('pair.compare')}</h2>
        <PairingFacts pairing={found} />
        <Notice tone="warning">
          <p>{say('pair.compare.text')}</p>
        </Notice>
      </section>
      <section class="panel" aria-labelledby="where">
        <h2 id="where">{say('pair.where')}</h2>
        <PlacementFields placement={placement} onPlacement={setPlacement} />
        <Refused refused={deed.refused} />
        <div class="actions">
          <Button kind="primary" submit busy={deed.busy}>
            {say('pair.claim')}
          </Button>
          <Button onPress={onBack}>{say('pair.other-code')}</Button>
        </div>
      </section>
    </form>
  );
}
