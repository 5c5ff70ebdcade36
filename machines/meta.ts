/**
 * What a state permits: on the machine a request to a helper, named owner first; on the control plane an act of its own.
 * Whatever a state does not list may not be asked for while it stands.
 */
export type Permit =
  | 'keystore.generate'
  | 'keystore.sign'
  | 'keystore.erase'
  | 'link.ask'
  | 'link.close'
  | 'workspace.operate'
  | 'workspace.stop'
  | 'workspace.outcome'
  | 'promote.recover'
  | 'supervisor.stop-guests'
  | 'daemon.read-state'
  | 'daemon.write-state'
  | 'daemon.append-ledger'
  | 'daemon.check-gate'
  | 'daemon.release-lock'
  | 'server.take-proof'
  | 'server.take-heartbeat'
  | 'server.resolve'
  | 'server.lease'
  | 'server.take-receipt'
  | 'server.take-late-receipt'
  | 'server.countersign'
  | 'server.take-request'
  | 'server.take-claim'
  | 'server.activate'
  | 'server.make-promotion'
  | 'server.activate-revision';

/** Written on every state: what is true while it stands, and what may be asked for. STATES.md is printed from it. */
export type StateMeta = { readonly holds: string; readonly permits: readonly Permit[] };

/** Declares types to xstate's `setup`, which reads the type of `types` and never its value. */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- the type is all that this function is for
export function declared<Types>(): Types {
  // `setup` takes its types from a value that it ignores; this is the one place where that value is made.
  return {} as Types;
}
