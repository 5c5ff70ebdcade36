import { useState } from 'preact/hooks';

import { useDeed, usePage, useSignedIn } from '../page.tsx';
import { Button } from '../parts/button.tsx';
import { optionsOf, SelectField, TextField } from '../parts/field.tsx';
import { Refused } from '../parts/notice.tsx';

/** A one-time link and whom it is for. */
export interface Invitation {
  readonly name: string;
  readonly address: string;
}

interface Wish {
  readonly name: string;
  readonly login: string;
  readonly role: 'admin' | 'member';
  readonly team: string;
  /** Empty for nobody's project. */
  readonly project: string;
}

/** Invites a person into a team and, where chosen, a project. */
export function Invite({ onInvited }: { readonly onInvited: (made: Invitation) => void }) {
  const { say, calls } = usePage();
  const { organisation } = useSignedIn();
  const team = organisation.teams[0]?.id ?? '';
  const project = organisation.projects.find((one) => one.team === team)?.id ?? '';
  const [wish, setWish] = useState<Wish>({ name: '', login: '', role: 'member', team, project });
  const deed = useDeed();
  const submit = (event: Event): void => {
    event.preventDefault();
    void deed.run(async () => {
      const { project: chosen, ...invited } = wish;
      const { person, address } = await calls.invite(invited);
      onInvited({ name: wish.name, address });
      setWish({ ...wish, name: '', login: '' });
      if (chosen !== '') await calls.setProjectMember(chosen, person, 'member');
    });
  };
  return (
    <form class="panel" onSubmit={submit}>
      <h2>{say('people.invite')}</h2>
      <p>{say('people.invite.text')}</p>
      <InviteFields wish={wish} onWish={setWish} />
      <Refused refused={deed.refused} />
      <div class="actions">
        <Button kind="primary" submit busy={deed.busy}>
          {say('people.invite')}
        </Button>
      </div>
    </form>
  );
}

function InviteFields({ wish, onWish }: { readonly wish: Wish; readonly onWish: (wish: Wish) => void }) {
  const { say } = usePage();
  const { organisation } = useSignedIn();
  const projects = organisation.projects.filter(({ team }) => team === wish.team);
  return (
    <>
      <TextField
        label={say('people.name')}
        value={wish.name}
        onValue={(name) => onWish({ ...wish, name })}
        maxLength={64}
      />
      <TextField
        label={say('sign-in.login')}
        hint={say('set-up.login-hint')}
        value={wish.login}
        onValue={(login) => onWish({ ...wish, login })}
        maxLength={64}
      />
      <SelectField
        label={say('people.role')}
        value={wish.role}
        onValue={(role) => onWish({ ...wish, role: role === 'admin' ? 'admin' : 'member' })}
        options={[
          { value: 'member', text: say('role.member') },
          { value: 'admin', text: say('role.admin') },
        ]}
      />
      <div class="two">
        <SelectField
          label={say('place.team')}
          value={wish.team}
          onValue={(team) => onWish({ ...wish, team, project: '' })}
          options={optionsOf(organisation.teams)}
        />
        <SelectField
          label={say('place.project')}
          value={wish.project}
          onValue={(project) => onWish({ ...wish, project })}
          options={[{ value: '', text: say('people.no-project') }, ...optionsOf(projects)]}
        />
      </div>
    </>
  );
}
