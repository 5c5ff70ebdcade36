/** A one-time link that the page was opened with. */
export interface OneTimeLink {
  readonly purpose: 'setup' | 'sign-in';
  readonly token: string;
}

/** Takes a one-time link out of the address, so that neither history nor a glance at the window keeps it. */
export function takeLink(): OneTimeLink | undefined {
  const found = /^#(setup|sign-in)=([\w-]{20,100})$/.exec(location.hash);
  if (found === null) return undefined;
  history.replaceState(null, '', location.pathname + location.search);
  return { purpose: found[1] === 'setup' ? 'setup' : 'sign-in', token: found[2] ?? '' };
}
