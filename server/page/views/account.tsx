import { useState } from 'preact/hooks';

import { chooseLanguage, chosenLanguage, languageNames } from '../languages.ts';
import { useDeed, usePage, useSignedIn } from '../page.tsx';
import { Button } from '../parts/button.tsx';
import { Facts, Fingerprint, Title } from '../parts/facts.tsx';
import { PasswordField, SelectField } from '../parts/field.tsx';
import { Refused } from '../parts/notice.tsx';

/** The person's own account: password, language, signing out. */
export function Account() {
  const { say, calls, session, renew } = usePage();
  const { person, organisation } = useSignedIn();
  const leaving = useDeed();
  return (
    <>
      <Title text={say('account.title')}>
        <Button busy={leaving.busy} onPress={() => void leaving.run(() => calls.signOut().then(renew))}>
          {say('account.sign-out')}
        </Button>
      </Title>
      <Refused refused={leaving.refused} />
      <div class="columns">
        <div class="stack">
          <Facts
            facts={[
              { name: say('set-up.name'), value: person.name },
              { name: say('sign-in.login'), value: person.login },
              { name: say('set-up.organisation'), value: organisation.name },
              { name: say('people.role'), value: say(`role.${person.role}`) },
            ]}
          />
          <section aria-labelledby="server-key">
            <h2 id="server-key">{say('pairing.command-key')}</h2>
            <Fingerprint digits={session.commandKeyFingerprint} label={say('pairing.command-key')} />
            <p class="hint">{say('account.command-key')}</p>
          </section>
          <Language />
        </div>
        <ChangePassword />
      </div>
    </>
  );
}

function Language() {
  const { say } = usePage();
  return (
    <SelectField
      label={say('account.language')}
      value={chosenLanguage() ?? ''}
      onValue={(value) => {
        chooseLanguage(value === '' ? undefined : value);
        location.reload();
      }}
      options={[
        { value: '', text: say('account.language.browser') },
        ...Object.entries(languageNames).map(([value, text]) => ({ value, text })),
      ]}
    />
  );
}

function ChangePassword() {
  const { say, calls, renew, announce } = usePage();
  const { person } = useSignedIn();
  const [current, setCurrent] = useState('');
  const [next, setNext] = useState('');
  const deed = useDeed();
  const needsCurrent = person.hasPassword;
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    const done = await deed.run(() => calls.setPassword({ next, ...(needsCurrent ? { current } : {}) }).then(renew));
    setCurrent('');
    if (!done) return;
    setNext('');
    announce(say('account.password-set'));
  };
  return (
    <form class="panel" onSubmit={(event) => void submit(event)}>
      <h2>{say(needsCurrent ? 'account.change-password' : 'account.set-password')}</h2>
      <p>{say('account.password-for')}</p>
      {needsCurrent && (
        <PasswordField label={say('password.current')} kind="current" value={current} onValue={setCurrent} />
      )}
      <PasswordField
        label={say('password.new')}
        hint={say('password.rule')}
        kind="new"
        value={next}
        onValue={setNext}
      />
      <Refused refused={deed.refused} />
      <div class="actions">
        <Button kind="primary" submit busy={deed.busy}>
          {say('account.save-password')}
        </Button>
      </div>
    </form>
  );
}
