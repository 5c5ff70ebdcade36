import type { DaemonFault } from './types.ts';

/** Cause and remedy of each fault of the state `error`, as `status`, `doctor`, the log and docs/codes.md say them. */
export const faultLines: Readonly<Record<DaemonFault, readonly [cause: string, remedy: string]>> = {
  LEDGER_DAMAGED: ['The ledger cannot be read or written.', '`nessie-executor doctor`, then `nessie-executor repair`.'],
  JOURNAL_DAMAGED: [
    'A promotion cannot be settled without a person.',
    '`nessie-executor repair` shows what is known and asks.',
  ],
  STATE_COPIED: [
    'This state folder is a copy or an older backup of one that went on elsewhere.',
    'Stop the other one for good; then forget here and pair as a new executor.',
  ],
  EXECUTOR_IN_ERROR: [
    'The control plane holds this executor in its error state: it met a copy of this state folder, or an older one.',
    'Stop every other daemon of this executor for good; then `nessie-executor repair` on the machine that is the right one.',
  ],
  ROLE_VIOLATED: [
    'A process broke its protocol or met its system-call filter.',
    'Look at the log, reinstall if a file was altered, then `nessie-executor repair`.',
  ],
  GUESTS_NOT_STOPPED: ['A guest may still run.', 'End it, then `nessie-executor repair`.'],
  EXECUTION_BROKEN: [
    'A fault of the daemon itself.',
    'Report it with `nessie-executor trace record`; then `nessie-executor repair`.',
  ],
};

/** What a person does about a fault; one that this version does not know is looked at by hand. */
export function remedyOf(fault: string): string {
  const known = Object.entries(faultLines).find(([code]) => code === fault);
  return known?.[1][1] ?? 'Look at the log, then `nessie-executor repair`.';
}
