import { useState } from 'preact/hooks';

import type { ShownPairing } from '../answers.ts';
import { useDeed, usePage } from '../page.tsx';
import { Button } from '../parts/button.tsx';
import { CheckField } from '../parts/field.tsx';
import { Notice, Refused } from '../parts/notice.tsx';
import { PairingFacts } from './pairing-facts.tsx';

/** The person compares the fingerprint with the one that the machine prints, and says that they did (N-065). */
export function EnrolmentConfirm({
  pairing,
  onDone,
}: {
  readonly pairing: ShownPairing;
  readonly onDone: (() => void) | undefined;
}) {
  const { say, calls } = usePage();
  const [compared, setCompared] = useState(false);
  const deed = useDeed();
  const { fingerprint } = pairing;
  const confirm = (event: Event): void => {
    event.preventDefault();
    if (fingerprint === null) return;
    void deed.run(() => calls.confirmEnrolment(pairing.pairing, fingerprint).then(onDone));
  };
  return (
    <form class="stack" onSubmit={confirm}>
      <Notice tone="warning" title={say('enrol.submitted')}>
        <p>{say('enrol.submitted.text')}</p>
      </Notice>
      <PairingFacts pairing={pairing} />
      <CheckField
        label={say('enrol.compared')}
        hint={say('enrol.compared-hint')}
        checked={compared}
        onChecked={setCompared}
      />
      <Refused refused={deed.refused} />
      <div class="actions">
        <Button kind="primary" submit busy={deed.busy} disabled={!compared}>
          {say('enrol.confirm')}
        </Button>
        <Button onPress={() => void deed.run(() => calls.cancelPairing(pairing.pairing).then(onDone))}>
          {say('enrol.refuse')}
        </Button>
      </div>
    </form>
  );
}
