import { useState } from 'preact/hooks';

import type { OneTimeLink } from '../link.ts';
import { useDeed, usePage } from '../page.tsx';
import { Button } from '../parts/button.tsx';
import { Title } from '../parts/facts.tsx';
import { PasswordField, TextField } from '../parts/field.tsx';
import { Notice, Refused } from '../parts/notice.tsx';

/** Signing in: by the one-time link that the page was opened with, or by name and password. */
export function SignIn({ link }: { readonly link: OneTimeLink | undefined }) {
  const [byPassword, setByPassword] = useState(link?.purpose !== 'sign-in');
  if (link !== undefined && !byPassword) return <ByLink token={link.token} onOther={() => setByPassword(true)} />;
  return <ByPassword stale={link?.purpose === 'setup'} />;
}

function ByLink({ token, onOther }: { readonly token: string; readonly onOther: () => void }) {
  const { say, calls, renew } = usePage();
  const deed = useDeed();
  return (
    <>
      <Title text={say('sign-in.title')} />
      <p>{say('sign-in.link')}</p>
      <Refused refused={deed.refused} />
      <div class="actions">
        <Button
          kind="primary"
          busy={deed.busy}
          onPress={() => void deed.run(() => calls.signInByLink(token).then(renew))}
        >
          {say('sign-in.do')}
        </Button>
        <Button kind="quiet" onPress={onOther}>
          {say('sign-in.with-password')}
        </Button>
      </div>
    </>
  );
}

function ByPassword({ stale }: { readonly stale: boolean }) {
  const { say, calls, renew } = usePage();
  const [login, setLogin] = useState('');
  const [password, setPassword] = useState('');
  const deed = useDeed();
  const submit = (event: Event): void => {
    event.preventDefault();
    void deed.run(() => calls.signIn(login, password).then(renew));
  };
  return (
    <form onSubmit={submit}>
      <Title text={say('sign-in.title')} />
      {stale && (
        <Notice tone="info">
          <p>{say('sign-in.set-up-already')}</p>
        </Notice>
      )}
      <TextField label={say('sign-in.login')} value={login} onValue={setLogin} autocomplete="username" maxLength={64} />
      <PasswordField label={say('password.label')} kind="current" value={password} onValue={setPassword} />
      <Refused refused={deed.refused} />
      <div class="actions">
        <Button kind="primary" submit busy={deed.busy}>
          {say('sign-in.do')}
        </Button>
      </div>
      <p class="hint">{say('sign-in.help')}</p>
    </form>
  );
}
