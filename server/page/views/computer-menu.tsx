import { useState } from 'preact/hooks';

import type { ExecutorAction, ExecutorSummary } from '../answers.ts';
import { useDeed, usePage } from '../page.tsx';
import { Button } from '../parts/button.tsx';
import { Dialog, DialogActions } from '../parts/dialog.tsx';
import { Menu } from '../parts/menu.tsx';
import { Refused } from '../parts/notice.tsx';
import { addressOf, useRouter } from '../router.tsx';

const order: readonly ExecutorAction[] = ['pause', 'resume', 'disconnect', 'end', 'delete'];
/** These cannot be undone, so they are asked about once; never with a password (N-195). */
const isFinal = (action: ExecutorAction): action is 'disconnect' | 'delete' | 'end' =>
  action === 'disconnect' || action === 'delete' || action === 'end';

/** Every lifecycle change that the person may make to a machine in its state (N-200). */
export function ComputerMenu({
  executor,
  onDone,
}: {
  readonly executor: ExecutorSummary;
  readonly onDone: () => void;
}) {
  const { say, calls, announce } = usePage();
  const { go } = useRouter();
  const [asking, setAsking] = useState<'disconnect' | 'delete' | 'end'>();
  const deed = useDeed();
  const act = async (action: ExecutorAction): Promise<void> => {
    const done = await deed.run(() => calls.act(executor.executor, action));
    if (!done) return;
    setAsking(undefined);
    announce(say(`computer.${action}.done`, { label: executor.label }));
    if (action === 'delete') go(addressOf('machines'));
    else onDone();
  };
  const items = order
    .filter((action) => executor.actions.includes(action))
    .map((action) => ({
      key: action,
      text: say(`computer.${action}`),
      about: say(`computer.${action}.about`),
      danger: isFinal(action),
      onChoose: () => (isFinal(action) ? setAsking(action) : void act(action)),
    }));
  if (items.length === 0) return null;
  return (
    <>
      <Menu label={say('computer.label')} items={items} />
      {asking === undefined && <Refused refused={deed.refused} />}
      {asking !== undefined && (
        <Dialog
          title={say(`computer.${asking}.ask`, { label: executor.label })}
          onClose={() => {
            setAsking(undefined);
            deed.clear();
          }}
        >
          <p>{say(`computer.${asking}.about`)}</p>
          <p>{say('computer.final')}</p>
          <Refused refused={deed.refused} />
          <DialogActions>
            <Button onPress={() => setAsking(undefined)}>{say('action.keep')}</Button>
            <Button kind="danger" busy={deed.busy} onPress={() => void act(asking)}>
              {say(`computer.${asking}`)}
            </Button>
          </DialogActions>
        </Dialog>
      )}
    </>
  );
}
