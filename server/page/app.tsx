import { useCallback, useEffect, useMemo, useRef, useState } from 'preact/hooks';

import { createCalls, type Calls } from './calls.ts';
import { openChanges, type Changes } from './changes.ts';
import { createClient, type CallRefused } from './client.ts';
import type { OneTimeLink } from './link.ts';
import { PageContext, refusalFrom, type Page, type Session } from './page.tsx';
import { Bare, Shell } from './shell.tsx';
import { Button } from './parts/button.tsx';
import { SetUp } from './views/set-up.tsx';
import { SignIn } from './views/sign-in.tsx';
import { ViewOf } from './views/view-of.tsx';
import type { Words } from './words.tsx';

/** How long a said sentence stays visible, in ms. */
const SAID_MS = 8000;

function useSaid(): readonly [string, (sentence: string) => void] {
  const [said, setSaid] = useState('');
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const announce = useCallback((sentence: string) => {
    clearTimeout(timer.current);
    setSaid(sentence);
    timer.current = setTimeout(() => setSaid(''), SAID_MS);
  }, []);
  return [said, announce];
}

function useChanges(signedIn: boolean): Changes | undefined {
  const [changes, setChanges] = useState<Changes>();
  useEffect(() => {
    if (!signedIn) return undefined;
    const opened = openChanges();
    setChanges(opened);
    return () => {
      opened.close();
      setChanges(undefined);
    };
  }, [signedIn]);
  return changes;
}

interface Known {
  readonly session: Session | undefined;
  readonly refused: CallRefused | undefined;
  readonly calls: Calls;
  readonly clockAheadMs: number;
  readonly renew: () => Promise<void>;
}

/** Asks who is signed in, and keeps the token and the clock that answers carry. */
function useSession(): Known {
  const [session, setSession] = useState<Session>();
  const [refused, setRefused] = useState<CallRefused>();
  const [clockAheadMs, setClockAheadMs] = useState(0);
  const token = useRef<string>(undefined);
  const calls = useMemo(() => {
    const ended = (): void => setSession((before) => before && { ...before, signedIn: undefined });
    return createCalls(createClient(() => token.current, ended));
  }, []);
  const renew = useCallback(async () => {
    const { isSetUp, person, server } = await calls.session();
    token.current = person?.csrf;
    setSession({
      isSetUp,
      commandKeyFingerprint: server.commandKeyFingerprint,
      signedIn: person === null ? undefined : { person, organisation: await calls.organisation() },
    });
    setClockAheadMs(server.now - Date.now());
    setRefused(undefined);
  }, [calls]);
  const renewOrSay = useCallback(() => renew().catch((error: unknown) => setRefused(refusalFrom(error))), [renew]);
  useEffect(() => void renewOrSay(), [renewOrSay]);
  return { session, refused, calls, clockAheadMs, renew: session === undefined ? renewOrSay : renew };
}

/** The whole page: who is signed in decides what is shown. */
export function App({ say, link }: { readonly say: Words; readonly link: OneTimeLink | undefined }) {
  const { session, refused, calls, clockAheadMs, renew } = useSession();
  const [said, announce] = useSaid();
  const signedIn = session?.signedIn !== undefined;
  const spent = useRef(false);
  if (signedIn) spent.current = true;
  const wasOut = useRef(false);
  if (session !== undefined && !signedIn) wasOut.current = true;
  const unused = spent.current ? undefined : link;
  const changes = useChanges(signedIn);
  const page = useMemo<Page | undefined>(
    () =>
      session && { say, calls, session, announce, clockAheadMs, changes, renew, arrived: wasOut.current && signedIn },
    [say, calls, session, announce, clockAheadMs, changes, renew, signedIn],
  );
  if (page === undefined) {
    if (refused === undefined) return null;
    return (
      <Bare say={say}>
        <h1>{say('page.no-answer')}</h1>
        <p>{say.find(`refused.${refused.code}`) ?? refused.message}</p>
        <Button kind="primary" onPress={() => void renew()}>
          {say('action.again')}
        </Button>
      </Bare>
    );
  }
  return (
    <PageContext.Provider value={page}>
      {signedIn ? (
        <Shell>
          <ViewOf />
        </Shell>
      ) : (
        <Bare say={say}>{page.session.isSetUp ? <SignIn link={unused} /> : <SetUp link={unused} />}</Bare>
      )}
      <div class="said" role="status" aria-live="polite">
        {said !== '' && <p key={said}>{said}</p>}
      </div>
    </PageContext.Provider>
  );
}
