/** Requests to a helper, by the names of helpers/protocol/registry.ts, which a test compares. */
export type HelperRequest =
  | 'keystore.generate'
  | 'keystore.sign'
  | 'keystore.erase'
  | 'link.call'
  | 'link.open'
  | 'link.send'
  | 'link.close'
  | 'workspace.operate'
  | 'workspace.difference'
  | 'workspace.freeze'
  | 'workspace.release'
  | 'workspace.cancel'
  | 'promote.recover'
  | 'promote.apply'
  | 'promote.cancel';

/** What a daemon does itself. */
export type DaemonAct = 'gate.check' | 'ledger.append' | 'ledger.read' | 'state.write' | 'lock.release' | 'guests.stop';

/** What a control plane does itself. */
export type ControlPlaneAct =
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

/** What a state permits; whatever it does not list may not be asked for while it stands. */
export type Permit = HelperRequest | DaemonAct | ControlPlaneAct;

/** Written on every state: what is true while it stands, and what may be asked for. STATES.md is printed from it. */
export type StateMeta = { readonly holds: string; readonly permits: readonly Permit[] };

/** Declares types to xstate's `setup`, which reads the type of `types` and never its value. */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- the type is all that this function is for
export function declared<Types>(): Types {
  // `setup` takes its types from a value that it ignores; this is the one place where that value is made.
  return {} as Types;
}
