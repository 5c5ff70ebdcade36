import { useState } from 'preact/hooks';

import type { PersonRow } from '../answers.ts';
import { useAnswer, useDeed, usePage, useSignedIn } from '../page.tsx';
import { Button } from '../parts/button.tsx';
import { Dialog, DialogActions } from '../parts/dialog.tsx';
import { CopyBlock, Title } from '../parts/facts.tsx';
import { Answered, Notice, Refused } from '../parts/notice.tsx';
import { StateMark } from '../parts/standing.tsx';
import { addressOf, Link } from '../router.tsx';
import { Invite, type Invitation } from './invite.tsx';
import { MakeProject } from './make-project.tsx';
import { Memberships } from './memberships.tsx';

/** Members of the organisation, and inviting one more. */
export function People() {
  const { say, calls } = usePage();
  const { person } = useSignedIn();
  const asked = useAnswer('organisation', calls.organisation, ['agents']);
  const [invitation, setInvitation] = useState<Invitation>();
  const administers = person.role !== 'member';
  return (
    <>
      <Title text={say('people.title')}>
        <Link to={addressOf('history')} class="button plain">
          {say('history.title')}
        </Link>
      </Title>
      <div class="columns">
        <Answered asked={asked}>
          {({ people }) => (
            <ul class="rows" aria-label={say('people.title')}>
              {people.map((row) => (
                <li key={row.id}>
                  <Member
                    row={row}
                    administers={administers && row.id !== person.id}
                    onLink={setInvitation}
                    onDone={asked.state === 'there' ? asked.ask : () => undefined}
                  />
                </li>
              ))}
            </ul>
          )}
        </Answered>
        {administers && (
          <Beside
            invitation={invitation}
            onInvited={setInvitation}
            onDone={asked.state === 'there' ? asked.ask : () => undefined}
          />
        )}
      </div>
    </>
  );
}

/** What an administrator adds: people, and what they belong to. */
function Beside({
  invitation,
  onInvited,
  onDone,
}: {
  readonly invitation: Invitation | undefined;
  readonly onInvited: (made: Invitation) => void;
  readonly onDone: () => void;
}) {
  const { say } = usePage();
  return (
    <div class="stack">
      {invitation !== undefined && (
        <Notice tone="done" title={say('people.invited', { name: invitation.name })}>
          <p>{say('people.link-once')}</p>
          <CopyBlock text={invitation.address} label={say('people.link')} />
        </Notice>
      )}
      <Invite
        onInvited={(made) => {
          onInvited(made);
          onDone();
        }}
      />
      <MakeProject onDone={onDone} />
    </div>
  );
}

type MemberPart = {
  readonly row: PersonRow;
  readonly onLink: (made: Invitation) => void;
  readonly onDone: () => void;
};

function Member({ row, administers, onLink, onDone }: MemberPart & { readonly administers: boolean }) {
  const { say } = usePage();
  return (
    <div class="row">
      <div>
        <p class="row-name">{row.name}</p>
        <p class="hint">
          {row.login} · {say(`role.${row.role}`)}
          {!row.hasPassword && row.active && <span class="flag">{say('people.no-password')}</span>}
        </p>
      </div>
      {row.active && administers && <MemberActions row={row} onLink={onLink} onDone={onDone} />}
      {!row.active && <StateMark tone="quiet" text={say('people.inactive')} />}
    </div>
  );
}

function MemberActions({ row, onLink, onDone }: MemberPart) {
  const { id, name } = row;
  const { say, calls, announce } = usePage();
  const linking = useDeed();
  const leaving = useDeed();
  const [asking, setAsking] = useState(false);
  const [showing, setShowing] = useState(false);
  const makeLink = (): void =>
    void linking.run(async () => onLink({ name, address: (await calls.linkFor(id)).address }));
  const offboard = async (): Promise<void> => {
    if (!(await leaving.run(() => calls.offboard(id)))) return;
    setAsking(false);
    announce(say('people.left', { name }));
    onDone();
  };
  return (
    <div class="row-actions">
      <Button kind="quiet" label={say('members.open-of', { name })} onPress={() => setShowing(true)}>
        {say('members.open')}
      </Button>
      <Button kind="quiet" busy={linking.busy} label={say('people.link-for', { name })} onPress={makeLink}>
        {say('people.make-link')}
      </Button>
      <Button kind="quiet" label={say('people.offboard-name', { name })} onPress={() => setAsking(true)}>
        {say('people.offboard')}
      </Button>
      <Refused refused={linking.refused} />
      {showing && <Memberships row={row} onClose={() => setShowing(false)} onDone={onDone} />}
      {asking && (
        <Dialog title={say('people.offboard.ask', { name })} onClose={() => setAsking(false)}>
          <p>{say('people.offboard.text')}</p>
          <Refused refused={leaving.refused} />
          <DialogActions>
            <Button onPress={() => setAsking(false)}>{say('action.keep')}</Button>
            <Button kind="danger" busy={leaving.busy} onPress={() => void offboard()}>
              {say('people.offboard')}
            </Button>
          </DialogActions>
        </Dialog>
      )}
    </div>
  );
}
