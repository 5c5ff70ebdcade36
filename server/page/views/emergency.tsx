import { useState } from 'preact/hooks';

import type { EmergencyAnswer } from '../answers.ts';
import { useAnswer, useDeed, usePage, useSignedIn } from '../page.tsx';
import { Button } from '../parts/button.tsx';
import { Dialog, DialogActions } from '../parts/dialog.tsx';
import { Refused } from '../parts/notice.tsx';

type Ended = EmergencyAnswer['executors'][number];

/** The emergency path of the organisation's owner: it ends a machine and shows nothing of it (N-017, N-018). */
export function Emergency({ managed }: { readonly managed: readonly { readonly executor: string }[] }) {
  const { say, calls } = usePage();
  const { organisation } = useSignedIn();
  const asked = useAnswer('emergency', calls.emergency, ['executor', 'pairing']);
  const [asking, setAsking] = useState<Ended>();
  if (asked.state !== 'there') return null;
  const own = new Set(managed.map(({ executor }) => executor));
  const others = asked.answer.executors.filter(({ executor }) => !own.has(executor));
  if (others.length === 0) return null;
  const teamOf = (id: string): string => organisation.teams.find((team) => team.id === id)?.name ?? id;
  return (
    <section class="panel" aria-labelledby="emergency">
      <h2 id="emergency">{say('emergency.title')}</h2>
      <p>{say('emergency.text')}</p>
      <ul class="rows" aria-labelledby="emergency">
        {others.map((machine) => (
          <li key={machine.executor}>
            <div class="row">
              <div>
                <p class="row-name">{machine.label}</p>
                <p class="hint">
                  {teamOf(machine.team)} · {say.find(`state.${machine.state}`) ?? machine.state}
                </p>
              </div>
              <Button
                kind="danger"
                label={say('emergency.end-of', { label: machine.label })}
                onPress={() => setAsking(machine)}
              >
                {say('emergency.end')}
              </Button>
            </div>
          </li>
        ))}
      </ul>
      {asking !== undefined && (
        <AskEnd
          machine={asking}
          onClose={() => setAsking(undefined)}
          onDone={() => {
            setAsking(undefined);
            asked.ask();
          }}
        />
      )}
    </section>
  );
}

function AskEnd({
  machine: { executor, label },
  onClose,
  onDone,
}: {
  readonly machine: Ended;
  readonly onClose: () => void;
  readonly onDone: () => void;
}) {
  const { say, calls, announce } = usePage();
  const deed = useDeed();
  const end = async (): Promise<void> => {
    if (!(await deed.run(() => calls.act(executor, 'end')))) return;
    announce(say('computer.end.done', { label }));
    onDone();
  };
  return (
    <Dialog title={say('computer.end.ask', { label })} onClose={onClose}>
      <p>{say('computer.final')}</p>
      <Refused refused={deed.refused} />
      <DialogActions>
        <Button onPress={onClose}>{say('action.keep')}</Button>
        <Button kind="danger" busy={deed.busy} onPress={() => void end()}>
          {say('computer.end')}
        </Button>
      </DialogActions>
    </Dialog>
  );
}
