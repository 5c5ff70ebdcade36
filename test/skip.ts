/**
 * Skips the running test, or every test of the suite when called in a hook, and says what is missing here. The report of
 * `npm test` prints the reason and counts it; CI allows none.
 */
export function skipBecause(context: Mocha.Context, missing: string): never {
  const runnable = context.runnable();
  const isTest = 'type' in runnable && runnable.type === 'test';
  Object.assign(isTest ? runnable : (runnable.parent ?? runnable), { missing });
  return context.skip();
}
