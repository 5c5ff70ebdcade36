import { createContext } from 'preact';
import { useCallback, useContext, useEffect, useRef, useState } from 'preact/hooks';

import type { OrganisationAnswer, Who } from './answers.ts';
import type { Calls } from './calls.ts';
import type { Change, Changes } from './changes.ts';
import { CallRefused } from './client.ts';
import type { Words } from './words.tsx';

/** What every view has at hand. */
export interface Page {
  readonly say: Words;
  readonly calls: Calls;
  readonly session: Session;
  /** Says a sentence to who listens instead of looking, and shows it for a while. */
  readonly announce: (sentence: string) => void;
  /** The server's clock minus this browser's, in ms. */
  readonly clockAheadMs: number;
  readonly changes: Changes | undefined;
  /** The person has just signed in on this page: the view that comes up takes the focus. */
  readonly arrived: boolean;
  /** Asks again who is signed in and what the organisation has. Rejects with CallRefused. */
  readonly renew: () => Promise<void>;
}

/** Who is signed in, and where they belong. */
export interface SignedIn {
  readonly person: Who;
  readonly organisation: OrganisationAnswer;
}

/** What the server said of this browser. */
export interface Session {
  readonly isSetUp: boolean;
  /** SHA-256 of the command key, which machines pin when they pair. */
  readonly commandKeyFingerprint: string;
  readonly signedIn: SignedIn | undefined;
}

/** Where views find the page. */
export const PageContext = createContext<Page | undefined>(undefined);

/** The page around a view. Throws outside of one. */
export function usePage(): Page {
  const page = useContext(PageContext);
  if (page === undefined) throw new Error('no page above');
  return page;
}

/** Who is signed in, for views that nobody else sees. */
export function useSignedIn(): SignedIn {
  const { signedIn } = usePage().session;
  if (signedIn === undefined) throw new Error('nobody is signed in');
  return signedIn;
}

/** An answer on its way, refused or there; `refused` beside an answer says that it could not be renewed. */
export type Asked<Answer> =
  | { readonly state: 'asking' }
  | { readonly state: 'refused'; readonly refused: CallRefused; readonly ask: () => void }
  | {
      readonly state: 'there';
      readonly answer: Answer;
      readonly refused: CallRefused | undefined;
      readonly ask: () => void;
    };

type Kept<Answer> = { readonly key: string; readonly answer?: Answer; readonly refused?: CallRefused };

/**
 * Asks for an answer when the view comes up and again whenever a change of these subjects is told. `key` names what is asked
 * for: another key drops the answer of the one before. The answer on screen stays until the next one is there.
 */
export function useAnswer<Answer>(
  key: string,
  load: () => Promise<Answer>,
  subjects: readonly Change['subject'][],
): Asked<Answer> {
  const { changes } = usePage();
  const [kept, setKept] = useState<Kept<Answer>>({ key });
  const latest = useRef({ load, asked: 0, key });
  latest.current.load = load;
  latest.current.key = key;
  const ask = useCallback(() => {
    const current = latest.current;
    const number = (current.asked += 1);
    const of = current.key;
    current.load().then(
      (answer) => {
        if (number === current.asked) setKept({ key: of, answer });
      },
      (error: unknown) => {
        if (number !== current.asked) return;
        setKept((before) => ({ ...(before.key === of ? before : {}), key: of, refused: refusalFrom(error) }));
      },
    );
  }, []);
  useEffect(ask, [key]);
  const wanted = subjects.join(' ');
  useEffect(
    () =>
      changes?.listen((told) => {
        if (told.type === 'again' || (told.type === 'changed' && wanted.split(' ').includes(told.change.subject)))
          ask();
      }),
    [changes, wanted],
  );
  if (kept.key !== key) return { state: 'asking' };
  if (kept.answer !== undefined) return { state: 'there', answer: kept.answer, refused: kept.refused, ask };
  return kept.refused === undefined ? { state: 'asking' } : { state: 'refused', refused: kept.refused, ask };
}

/** Something the person started: whether it is under way and what refused it. */
export interface Deed {
  readonly busy: boolean;
  readonly refused: CallRefused | undefined;
  /** Does it unless it is under way; answers whether it was done. */
  readonly run: (work: () => Promise<unknown>) => Promise<boolean>;
  readonly clear: () => void;
}

/** One deed at a time, its refusal kept until the next try. */
export function useDeed(): Deed {
  const [state, setState] = useState<{ busy: boolean; refused?: CallRefused }>({ busy: false });
  const busy = useRef(false);
  const run = useCallback(async (work: () => Promise<unknown>) => {
    if (busy.current) return false;
    busy.current = true;
    setState({ busy: true });
    try {
      await work();
      setState({ busy: false });
      return true;
    } catch (error) {
      setState({ busy: false, refused: refusalFrom(error) });
      return false;
    } finally {
      busy.current = false;
    }
  }, []);
  const clear = useCallback(() => setState({ busy: false }), []);
  return { busy: state.busy, refused: state.refused, run, clear };
}

/** Any error as a refusal with a sentence; a fault of the page itself is said to be one. */
export function refusalFrom(error: unknown): CallRefused {
  if (error instanceof CallRefused) return error;
  return new CallRefused('PAGE_FAULT', error instanceof Error ? error.message : 'unknown', { status: 0 });
}

/** The server's time now in ms, renewed every `everyMs`. */
export function useNow(everyMs: number): number {
  const { clockAheadMs } = usePage();
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return now + clockAheadMs;
}
