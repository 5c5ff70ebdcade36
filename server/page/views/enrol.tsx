import { useState } from 'preact/hooks';

import type { EnrolmentAnswer } from '../answers.ts';
import { useDeed, usePage } from '../page.tsx';
import { Button } from '../parts/button.tsx';
import { CopyBlock, Remaining, Title } from '../parts/facts.tsx';
import { Notice, Refused } from '../parts/notice.tsx';
import { addressOf, Link } from '../router.tsx';
import { PlacementFields, usePlacement } from './placement.tsx';

/** Enrolling a machine that nobody sits at: its place is chosen first, and a challenge of ten minutes goes into one command (N-070). */
export function Enrol() {
  const { say } = usePage();
  const [made, setMade] = useState<EnrolmentAnswer>();
  return (
    <>
      <Title text={say('enrol.title')} above={<Link to={addressOf('machines')}>{say('machines.title')}</Link>} />
      {made === undefined ? <WishForm onMade={setMade} /> : <Command made={made} />}
    </>
  );
}

function WishForm({ onMade }: { readonly onMade: (made: EnrolmentAnswer) => void }) {
  const { say, calls } = usePage();
  const [placement, setPlacement] = usePlacement('');
  const deed = useDeed();
  const submit = (event: Event): void => {
    event.preventDefault();
    void deed.run(async () => onMade(await calls.enrol(placement)));
  };
  return (
    <form class="narrow stack" onSubmit={submit}>
      <p>{say('enrol.text')}</p>
      <PlacementFields placement={placement} onPlacement={setPlacement} />
      <p class="hint">{say('proofs.unproved')}</p>
      <Refused refused={deed.refused} />
      <div class="actions">
        <Button kind="primary" submit busy={deed.busy}>
          {say('enrol.make')}
        </Button>
      </div>
    </form>
  );
}

function Command({ made }: { readonly made: EnrolmentAnswer }) {
  const { say } = usePage();
  const command = `nessie-executor pair --origin ${location.origin} --root FOLDER --request ${made.requestId} --challenge ${made.challenge}`;
  return (
    <div class="stack narrow">
      <h2>{say('enrol.run')}</h2>
      <p>{say.parts('enrol.run.text', { remaining: <Remaining until={made.expiresAt} /> })}</p>
      <CopyBlock text={command} label={say('pair.command')} />
      <Notice tone="warning">
        <p>{say('enrol.once')}</p>
      </Notice>
      <div class="actions">
        <Link to={addressOf('pairing', { pairing: made.pairing })} class="button primary">
          {say('enrol.ran')}
        </Link>
      </div>
    </div>
  );
}
