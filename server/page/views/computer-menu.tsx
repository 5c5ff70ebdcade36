import { useState } from 'preact/hooks';

import type { ExecutorAction, ExecutorSummary } from '../answers.ts';
import { useDeed, usePage, type Deed } from '../page.tsx';
import { Button } from '../parts/button.tsx';
import { Dialog, DialogActions } from '../parts/dialog.tsx';
import { Menu } from '../parts/menu.tsx';
import { Refused } from '../parts/notice.tsx';
import { addressOf, useRouter } from '../router.tsx';

const order: readonly ExecutorAction[] = ['pause', 'resume', 'disconnect', 'end', 'delete'];
/** These cannot be undone, so they are asked about once; never with a password (N-195). */
const isFinal = (action: ExecutorAction): action is FinalAction =>
  action === 'disconnect' || action === 'delete' || action === 'end';

type FinalAction = 'disconnect' | 'delete' | 'end';

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
  const [asking, setAsking] = useState<FinalAction>();
  const deed = useDeed();
  const act = async (action: ExecutorAction): Promise<void> => {
    if (!(await deed.run(() => calls.act(executor.executor, action)))) return;
    setAsking(undefined);
    announce(say(`computer.${action}.done`, { label: executor.label }));
    if (action === 'delete') go(addressOf('machines'));
    else onDone();
  };
  const close = (): void => {
    setAsking(undefined);
    deed.clear();
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
      {asking === undefined ? (
        <Refused refused={deed.refused} />
      ) : (
        <Ask label={executor.label} action={asking} deed={deed} onClose={close} onAct={() => void act(asking)} />
      )}
    </>
  );
}

function Ask({
  label,
  action,
  deed,
  onClose,
  onAct,
}: {
  readonly label: string;
  readonly action: FinalAction;
  readonly deed: Deed;
  readonly onClose: () => void;
  readonly onAct: () => void;
}) {
  const { say } = usePage();
  return (
    <Dialog title={say(`computer.${action}.ask`, { label })} onClose={onClose}>
      <p>{say(`computer.${action}.about`)}</p>
      <p>{say('computer.final')}</p>
      <Refused refused={deed.refused} />
      <DialogActions>
        <Button onPress={onClose}>{say('action.keep')}</Button>
        <Button kind="danger" busy={deed.busy} onPress={onAct}>
          {say(`computer.${action}`)}
        </Button>
      </DialogActions>
    </Dialog>
  );
}
