import { useState } from 'preact/hooks';

import type { OneTimeLink } from '../link.ts';
import { useDeed, usePage } from '../page.tsx';
import { Button } from '../parts/button.tsx';
import { Title } from '../parts/facts.tsx';
import { PasswordField, TextField } from '../parts/field.tsx';
import { Refused } from '../parts/notice.tsx';

/** First-run setup: the holder of the one-time link becomes the owner. Without the link it says where to find it. */
export function SetUp({ link }: { readonly link: OneTimeLink | undefined }) {
  const { say } = usePage();
  if (link?.purpose === 'setup') return <FirstAccount token={link.token} />;
  return (
    <>
      <Title text={say('set-up.title')} />
      <p>{say('set-up.no-link')}</p>
    </>
  );
}

type First = Readonly<Record<'organisation' | 'team' | 'project' | 'name' | 'login' | 'password', string>>;
const nothing: First = { organisation: '', team: '', project: '', name: '', login: '', password: '' };

function FirstAccount({ token }: { readonly token: string }) {
  const { say, calls, renew } = usePage();
  const [first, setFirst] = useState(nothing);
  const deed = useDeed();
  const submit = (event: Event): void => {
    event.preventDefault();
    void deed.run(() => calls.setUp({ token, ...first }).then(renew));
  };
  return (
    <form onSubmit={submit}>
      <Title text={say('set-up.title')} />
      <p>{say('set-up.text')}</p>
      <FirstFields first={first} onFirst={setFirst} />
      <Refused refused={deed.refused} />
      <div class="actions">
        <Button kind="primary" submit busy={deed.busy}>
          {say('set-up.do')}
        </Button>
      </div>
    </form>
  );
}

function FirstFields({ first, onFirst }: { readonly first: First; readonly onFirst: (first: First) => void }) {
  const { say } = usePage();
  const field = (name: Exclude<keyof First, 'password'>) => ({
    value: first[name],
    onValue: (value: string) => onFirst({ ...first, [name]: value }),
    maxLength: 64,
  });
  return (
    <>
      <div class="two">
        <TextField label={say('set-up.name')} autocomplete="name" {...field('name')} />
        <TextField
          label={say('sign-in.login')}
          hint={say('set-up.login-hint')}
          autocomplete="username"
          {...field('login')}
        />
      </div>
      <PasswordField
        label={say('password.label')}
        hint={say('password.rule')}
        kind="new"
        value={first.password}
        onValue={(password) => onFirst({ ...first, password })}
      />
      <TextField
        label={say('set-up.organisation')}
        hint={say('set-up.organisation-hint')}
        autocomplete="organization"
        {...field('organisation')}
      />
      <div class="two">
        <TextField label={say('place.team')} {...field('team')} />
        <TextField label={say('place.project')} {...field('project')} />
      </div>
    </>
  );
}
