import { useState } from 'preact/hooks';

import type { OneTimeLink } from '../link.ts';
import { useDeed, usePage } from '../page.tsx';
import { Button } from '../parts/button.tsx';
import { CopyBlock, Title } from '../parts/facts.tsx';
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
      <CopyBlock text="nessie-executor server link" label={say('set-up.command')} />
    </>
  );
}

function FirstAccount({ token }: { readonly token: string }) {
  const { say, calls, renew } = usePage();
  const [fields, setFields] = useState({
    organisation: '',
    team: '',
    project: '',
    name: '',
    login: '',
    password: '',
  });
  const deed = useDeed();
  const into = (field: keyof typeof fields) => (value: string) =>
    setFields((before) => ({ ...before, [field]: value }));
  const submit = (event: Event): void => {
    event.preventDefault();
    void deed.run(() => calls.setUp({ token, ...fields }).then(renew));
  };
  return (
    <form onSubmit={submit}>
      <Title text={say('set-up.title')} />
      <p>{say('set-up.text')}</p>
      <div class="two">
        <TextField
          label={say('set-up.name')}
          value={fields.name}
          onValue={into('name')}
          autocomplete="name"
          maxLength={64}
        />
        <TextField
          label={say('sign-in.login')}
          hint={say('set-up.login-hint')}
          value={fields.login}
          onValue={into('login')}
          autocomplete="username"
          maxLength={64}
        />
      </div>
      <PasswordField
        label={say('password.label')}
        hint={say('password.rule')}
        kind="new"
        value={fields.password}
        onValue={into('password')}
      />
      <TextField
        label={say('set-up.organisation')}
        hint={say('set-up.organisation-hint')}
        value={fields.organisation}
        onValue={into('organisation')}
        autocomplete="organization"
        maxLength={64}
      />
      <div class="two">
        <TextField label={say('place.team')} value={fields.team} onValue={into('team')} maxLength={64} />
        <TextField label={say('place.project')} value={fields.project} onValue={into('project')} maxLength={64} />
      </div>
      <Refused refused={deed.refused} />
      <div class="actions">
        <Button kind="primary" submit busy={deed.busy}>
          {say('set-up.do')}
        </Button>
      </div>
    </form>
  );
}
