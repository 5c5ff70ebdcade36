/** What a log may hold of an error: its name, its code and where in our code it arose; never its text, which may quote what somebody sent. */
export function aboutError(error: unknown): { readonly error: string; readonly code?: string; readonly at?: string } {
  if (!(error instanceof Error)) return { error: 'unknown' };
  const at = /\/([\w-]+\.[mt]?[jt]s):(\d+)/.exec(error.stack ?? '');
  const code = 'code' in error && typeof error.code === 'string' ? error.code : undefined;
  return {
    error: error.name,
    ...(code === undefined ? {} : { code }),
    ...(at === null ? {} : { at: `${at[1]}:${at[2]}` }),
  };
}
