import { createContext, type ComponentChildren } from 'preact';
import { useContext, useEffect, useMemo, useState } from 'preact/hooks';

/** Every view with its address; a part that begins with `:` is a parameter. The first that fits is shown. */
export const addresses = {
  machines: '/',
  pair: '/machines/pair',
  enrol: '/machines/enrol',
  pairing: '/pairings/:pairing',
  machine: '/machines/:executor',
  machineAgents: '/machines/:executor/agents',
  machineSharing: '/machines/:executor/sharing',
  machineRuns: '/machines/:executor/runs',
  descriptor: '/machines/:executor/review',
  runs: '/runs',
  launch: '/runs/launch',
  run: '/runs/:run',
  reviews: '/reviews',
  review: '/reviews/:review',
  agents: '/agents',
  agent: '/agents/:agent',
  people: '/people',
  history: '/history',
  account: '/account',
} as const;

/** Name of a view. */
export type View = keyof typeof addresses;
type NameIn<Address extends string> = Address extends `${string}:${infer Name}/${infer Rest}`
  ? Name | NameIn<`/${Rest}`>
  : Address extends `${string}:${infer Name}`
    ? Name
    : never;
/** Parameters that a view's address holds. */
export type Parameters<Shown extends View> = Readonly<Record<NameIn<(typeof addresses)[Shown]>, string>>;

/** Where the page is; `view` is undefined for an address that no view has. */
export interface Place {
  readonly view: View | undefined;
  readonly parameters: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
}

/** Reads an address. */
export function placeOf(path: string, search = ''): Place {
  const query = new URLSearchParams(search);
  const given = path.split('/').filter(Boolean);
  for (const [view, address] of Object.entries(addresses)) {
    const parts = address.split('/').filter(Boolean);
    if (parts.length !== given.length) continue;
    const parameters: Record<string, string> = {};
    const fits = parts.every((part, index) => {
      const value = given[index] ?? '';
      if (!part.startsWith(':')) return part === value;
      if (!/^[\w-]+$/.test(value)) return false;
      parameters[part.slice(1)] = value;
      return true;
    });
    // Object.entries forgets which names the table has.
    if (fits) return { view: view as View, parameters, query };
  }
  return { view: undefined, parameters: {}, query };
}

/** The address of a view. */
export function addressOf<Shown extends View>(
  view: Shown,
  ...[parameters]: keyof Parameters<Shown> extends never ? [] : [Parameters<Shown>]
): string {
  const values: Readonly<Record<string, string>> = parameters ?? {};
  return addresses[view].replaceAll(/:(\w+)/g, (_, name: string) => values[name] ?? '');
}

interface Router {
  readonly place: Place;
  /** The person has gone from one view to another since the page was loaded. */
  readonly moved: boolean;
  readonly go: (address: string, how?: 'push' | 'replace') => void;
}

const RouterContext = createContext<Router | undefined>(undefined);

/** Keeps the place in the browser's address and history. */
export function RouterProvider({ children }: { readonly children: ComponentChildren }) {
  const [{ address, moved }, setAddress] = useState(() => ({
    address: location.pathname + location.search,
    moved: false,
  }));
  useEffect(() => {
    const back = (): void => setAddress({ address: location.pathname + location.search, moved: true });
    addEventListener('popstate', back);
    return () => removeEventListener('popstate', back);
  }, []);
  const router = useMemo<Router>(() => {
    const [path = '/', search = ''] = address.split('?');
    return {
      place: placeOf(path, search),
      moved,
      go: (next, how = 'push') => {
        if (how === 'push') history.pushState(null, '', next);
        else history.replaceState(null, '', next);
        setAddress({ address: next, moved: true });
        // On narrow windows the view scrolls inside its frame.
        document.querySelector('main')?.scrollTo(0, 0);
        scrollTo(0, 0);
      },
    };
  }, [address, moved]);
  return <RouterContext.Provider value={router}>{children}</RouterContext.Provider>;
}

/** Where the page is and how to go elsewhere. Throws outside RouterProvider. */
export function useRouter(): Router {
  const router = useContext(RouterContext);
  if (router === undefined) throw new Error('no RouterProvider above');
  return router;
}

/** A link to a view: an ordinary link, so that it opens in a new tab too. */
export function Link({
  to,
  current,
  class: name,
  label,
  children,
}: {
  readonly to: string;
  readonly current?: 'page' | undefined;
  readonly class?: string;
  readonly label?: string;
  readonly children: ComponentChildren;
}) {
  const { go } = useRouter();
  const follow = (event: MouseEvent): void => {
    if (event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    go(to);
  };
  return (
    <a href={to} class={name} aria-current={current} aria-label={label} onClick={follow}>
      {children}
    </a>
  );
}
