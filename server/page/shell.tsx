import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';

import { usePage, useSignedIn } from './page.tsx';
import { AgentIcon, MachineIcon, Mark, PeopleIcon, ReviewIcon, RunIcon } from './parts/icons.tsx';
import { Notice } from './parts/notice.tsx';
import { addressOf, Link, useRouter, type View } from './router.tsx';
import type { WordKey, Words } from './words.tsx';

interface Entry {
  readonly to: string;
  readonly key: WordKey;
  readonly icon: () => ComponentChildren;
  readonly views: readonly View[];
}

const entries: readonly Entry[] = [
  {
    to: addressOf('machines'),
    key: 'nav.machines',
    icon: MachineIcon,
    views: [
      'machines',
      'machine',
      'machineAgents',
      'machineRuns',
      'machineSharing',
      'descriptor',
      'pair',
      'pairing',
      'enrol',
    ],
  },
  { to: addressOf('runs'), key: 'nav.runs', icon: RunIcon, views: ['runs', 'run', 'launch'] },
  { to: addressOf('reviews'), key: 'nav.reviews', icon: ReviewIcon, views: ['reviews', 'review'] },
  { to: addressOf('agents'), key: 'nav.agents', icon: AgentIcon, views: ['agents', 'agent'] },
  { to: addressOf('people'), key: 'nav.people', icon: PeopleIcon, views: ['people', 'history'] },
];

/** True while the live stream is cut: what is shown may be old, and the page says so. */
function useIsCut(): boolean {
  const { changes } = usePage();
  const [cut, setCut] = useState(false);
  useEffect(
    () =>
      changes?.listen((told) => {
        if (told.type === 'lost') setCut(true);
        else setCut(false);
      }),
    [changes],
  );
  return cut;
}

/** Leads somebody who came by a one-time address to the password that promoting and confirming will ask for. */
function ChoosePassword() {
  const { say } = usePage();
  const { person } = useSignedIn();
  const { place } = useRouter();
  if (!person.byLink || person.hasPassword || place.view === 'account') return null;
  return (
    <Notice tone="warning">
      <p>
        {say.parts('password.choose', {
          account: <Link to={addressOf('account')}>{say('account.set-password')}</Link>,
        })}
      </p>
    </Notice>
  );
}

/** The frame around every view of somebody who is signed in. */
export function Shell({ children }: { readonly children: ComponentChildren }) {
  const { say } = usePage();
  const { person, organisation } = useSignedIn();
  const { place } = useRouter();
  const cut = useIsCut();
  const isAt = (views: readonly View[]): boolean => place.view !== undefined && views.includes(place.view);
  return (
    <div class="shell">
      <a class="skip" href="#main">
        {say('nav.skip')}
      </a>
      <header class="top">
        <Link to={addressOf('machines')} class="brand" label={say('nav.home')}>
          <Mark />
          <span>Nessie</span>
        </Link>
        <p class="place-name">{organisation.name}</p>
        <Link to={addressOf('account')} class="who" current={isAt(['account']) ? 'page' : undefined}>
          <span class="initial" aria-hidden="true">
            {Array.from(person.name)[0]?.toLocaleUpperCase(say.language)}
          </span>
          {person.name}
        </Link>
      </header>
      <nav class="nav" aria-label={say('nav.label')}>
        <ul>
          {entries.map(({ to, key, icon: Icon, views }) => (
            <li key={key}>
              <Link to={to} current={isAt(views) ? 'page' : undefined}>
                <Icon />
                <span>{say(key)}</span>
              </Link>
            </li>
          ))}
        </ul>
      </nav>
      <main id="main" tabIndex={-1}>
        <div class="cut" role="status">
          {cut && <p>{say('page.cut')}</p>}
        </div>
        <ChoosePassword />
        {children}
      </main>
    </div>
  );
}

/** The frame around what is shown before anybody is signed in. */
export function Bare({ say, children }: { readonly say: Words; readonly children: ComponentChildren }) {
  return (
    <main class="bare">
      <div class="bare-brand">
        <Mark />
        <p>{say('page.about')}</p>
      </div>
      <div class="card">{children}</div>
    </main>
  );
}
