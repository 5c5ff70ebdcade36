/*
 * Cause and remedy of every code. Each list is a record over the union that the code uses, so a code without a line does not
 * compile.
 */
import type { AvailabilityReason, EnvelopeRefusal, MachineRefusal } from '../protocol/errors.ts';
import type { UndoCode } from '../protocol/history-facts.ts';
import type { FailureCode } from '../protocol/operations.ts';
import type { DaemonRefusal } from '../../daemon/protocol.ts';
import type { KeyStoreRefusal } from '../key-store/protocol.ts';
import type { LinkRefusal } from '../link/protocol.ts';
import type { PromoteRefusal } from '../promote/protocol.ts';
import type { WorkspaceRefusal } from '../workspace/protocol.ts';
import type { ExecutionCode } from '../../machines/command/types.ts';
import { faultLines } from '../../machines/daemon/faults.ts';
import type { DaemonFault } from '../../machines/daemon/types.ts';
import type { JoiningCode } from '../../machines/pairing/types.ts';
import type { ChannelRefusal, PairingRefusal } from '../../server/protocol.ts';
import type { LedgerDamage } from '../../daemon/ledger/segment.ts';

/** Cause and remedy. */
export type Line = readonly [cause: string, remedy: string];

const again = 'Nothing to do: it is tried again.';
const bug = 'A fault of one of the two programs, or an attack; if both are of one version, report it.';
const update = 'Update the older of daemon and control plane; both versions are named.';

/** The machine's gate about an envelope. */
export const envelope: Record<EnvelopeRefusal, Line> = {
  SIGNATURE_INVALID: [
    'The envelope is not signed by the pinned command key.',
    'The connection ends. If it goes on, somebody between here and the control plane forges commands, or its key was replaced without a rotation: pair again only after you compared fingerprints.',
  ],
  ENVELOPE_INVALID: ['The signed bytes are no envelope of this version.', update],
  PROTOCOL_VERSION_UNSUPPORTED: ['Another protocol version.', update],
  EXECUTOR_MISMATCH: ['The envelope names another executor.', bug],
  COMMAND_ID_REUSED: ['A known command id came with other bytes.', bug],
  COMMAND_RUN_INVALID: ['The run contradicts what the ledger knows of it.', bug],
  COMMAND_ORIGIN_INVALID: ['The run suddenly acts for another person, agent, conversation or project.', bug],
  BINDING_INVALID: ['A second binding of the same run and operation.', bug],
  FENCE_STALE: ["The fence is not the binding's, or runs far ahead.", bug],
  EPOCH_STALE: [
    'The command belongs to another connection.',
    'It is dispatched again under the new connection where its lifetime allows.',
  ],
  DESCRIPTOR_STALE: [
    'No revision, or another one, is confirmed; or the root is no longer the confirmed one.',
    'Review the machine on the page; `nessie-executor status` shows stated and confirmed revision.',
  ],
  CATALOGUE_MISMATCH: ['The two sides have different lists of operations.', update],
  POLICY_STALE: [
    'The command was made under another policy than the confirmed one.',
    'Review the waiting revision on the page.',
  ],
  OPERATION_UNKNOWN: ['There is no such operation.', update],
  OPERATION_NOT_IMPLEMENTED: [
    'A known name with nothing behind it on this machine.',
    'None: this version has no guest.',
  ],
  OPERATION_CALLER_INVALID: ['An agent asked for what only a person may ask, or the reverse.', bug],
  MODE_UNSUPPORTED: ['Background work is not offered.', 'None in this version.'],
  RUNTIME_EXCEEDED: [
    "More run time than the owner's policy gives.",
    'Raise `limits.runtimeMs` in the policy, or ask for less.',
  ],
  COMMAND_NOT_YET_VALID: ['The command becomes valid later.', "Check the control plane's clock."],
  COMMAND_EXPIRED: ['Its time passed before it could start.', 'Ask again.'],
  IDEMPOTENCY_CONFLICT: ['The idempotency key stood for another request.', bug],
  COMMAND_DIGEST_INVALID: ['The arguments are not those that were signed.', bug],
  CONTENT_DIGEST_INVALID: ['The content is not the one that was signed.', bug],
  ARGUMENTS_INVALID: [
    "The arguments do not fit the operation's schema.",
    'Correct the call; the schema names each limit.',
  ],
  LEASE_INVALID: ['The lease does not belong to this envelope.', bug],
};

/** The machine's gate at this moment. */
export const machine: Record<MachineRefusal, Line> = {
  LOCAL_POLICY_DENIED: [
    "The owner's policy does not permit the operation, or cannot be read.",
    '`nessie-executor policy show`, then `policy allow KEY`; `policy check` says what is wrong with the file.',
  ],
  NOT_ACCEPTING: ['The executor is paused or draining.', 'Resume it on the page.'],
  CONTROL_SILENT: ['The control plane has not answered for three seconds: nothing may start.', again],
  CONCURRENCY_LIMIT: [
    'More commands than the owner permits side by side.',
    'Wait, or raise `limits.concurrentCommands`.',
  ],
  LEDGER_UNAVAILABLE: [
    'The ledger is damaged or cannot be written.',
    '`nessie-executor doctor` names the cause; make room, then `nessie-executor repair`.',
  ],
  CANCELLED_BEFORE_START: ['Somebody cancelled it before it started.', 'Ask again if it is still wanted.'],
  ROOT_UNCONFIRMED: ['The root is not the one that a person confirmed.', 'Review the waiting revision on the page.'],
  HELPER_UNAVAILABLE: [
    'A process that the operation needs is not there.',
    'It is being started again; `nessie-executor status` shows it.',
  ],
};

/** The control plane's gate. */
export const availability: Record<AvailabilityReason, Line> = {
  not_discoverable: [
    'The person may not use this machine, or there is none.',
    'An administrator shares it under Sharing.',
  ],
  operation_ungranted: [
    'This agent has no grant for this operation on this machine.',
    'Switch its access on under Agents.',
  ],
  logical_tool_ungranted: ['The agent may not use this tool anywhere.', 'Allow the tool for the agent.'],
  scope_mismatch: [
    "The run's project does not fit the machine's scope.",
    'Work in the project that the machine belongs to.',
  ],
  offline: ['The machine has not proved itself within the last minute.', 'Start it: `nessie-executor daemon`.'],
  descriptor_unreviewed: ['Nobody confirmed what the machine states.', 'Review it on the page, with your password.'],
  local_policy_denied: [
    "The machine's confirmed descriptor does not offer the operation.",
    'The owner allows it there: `nessie-executor policy allow KEY`.',
  ],
};

/** Results that did not succeed. */
export const failures: Record<FailureCode, Line> = {
  WORKSPACE_DENIED: [
    'A rule of the workspace said no: a path that leaves it, a link, an ignored or reserved name.',
    'Use another path; the message names the rule.',
  ],
  WORKSPACE_UNAVAILABLE: [
    'Anything else: nothing at this path, a wrong kind, a read error.',
    'The message says what was found.',
  ],
  REVIEW_TOO_LARGE: ['More than 100 changes and no page was asked for.', 'Ask with `cursor: "0"`.'],
  REVIEW_STALE: ['The draft is no longer the reviewed one.', 'Review it again.'],
  DIFFERENCE_DENIED: ['The owner shows differences on the machine alone.', '`nessie-executor review RUN` there.'],
  PATCH_STALE: ['The file no longer has the expected digest.', 'Read it again and make the edits anew.'],
  PATCH_CONFLICT: [
    'An edit does not fit exactly once, or two edits overlap.',
    'The message names the edit and the line.',
  ],
  DRAFT_LIMIT: ['The draft reached its limit of files or bytes.', 'Promote or discard: `nessie-executor drafts`.'],
  RESULT_TOO_LARGE: ['The result is over the limit of the operation.', 'Ask for less at a time.'],
  CANCELLED: ['Somebody cancelled it while it ran.', 'Ask again if it is still wanted.'],
  EXPIRED: ['Its run time passed.', 'Ask for less, or for more time.'],
  PROMOTION_REVIEW_STALE: ['The draft is not the one that was approved.', 'Review and approve again.'],
  PROMOTION_TIMEOUT: ['The approval expired before the machine applied it.', 'Approve again.'],
  PROMOTION_RESULT_INVALID: ['The machine answered something else than a promotion.', bug],
  PROMOTION_REJECTED: [
    "The approval is not signed by the pinned key, is for another executor, or was used; or the owner's policy permits no promotion.",
    'Approve again; if it goes on, compare the pinned fingerprint, and run `nessie-executor doctor` there.',
  ],
  PROMOTION_MANIFEST_INVALID: ['The list of changes contradicts itself.', 'Discard the draft.'],
  PROMOTION_UNSAFE_PATH: [
    'A changed path is a link, passes through one, is hard-linked, special, or on another mount.',
    'Change that path by hand; the message names it.',
  ],
  PROMOTION_UNSAFE_ROOT: [
    'The root is not the folder that was reviewed.',
    '`nessie-executor policy root` and review anew.',
  ],
  PROMOTION_CONFLICT: [
    'A file changed since the draft first touched it; nothing was applied.',
    'Look at both, then draft anew.',
  ],
  PROMOTION_IN_USE: [
    'Another program has a file open for writing; everything was put back.',
    'Close it there and approve again.',
  ],
  PROMOTION_JOURNAL_INVALID: [
    'The journal of a promotion cannot be believed.',
    '`nessie-executor repair` shows what is known.',
  ],
  PROMOTION_RECOVERY_REQUIRED: ['An earlier promotion waits for a person.', '`nessie-executor repair`.'],
  PROMOTION_IO_FAILURE: [
    'The disk failed or is full; everything was put back.',
    'Make room or mend the disk, then approve again.',
  ],
  PROMOTION_UNSUPPORTED: [
    'The file system of the workspace cannot do what an apply needs; the message names it, and nothing was changed.',
    'Keep the workspace on another file system, such as ext4, xfs or btrfs, mounted for writing.',
  ],
  PROMOTION_CONFIRMATION_REQUIRED: [
    'A person at the machine must confirm as well; a confirmation serves one promotion, within an hour.',
    '`nessie-executor review RUN --approve` there.',
  ],
  HELPER_UNAVAILABLE: ['The process for it could not be started.', '`nessie-executor doctor`.'],
};

/** How an execution ended before its effect. */
export const execution: Record<ExecutionCode, Line> = {
  CANCELLED_BEFORE_START: ['Cancelled before it started; it has no effect.', 'Ask again if it is still wanted.'],
  CONNECTION_FENCED: ['Its connection ended before it started.', 'Ask again.'],
  CONTROL_SILENT: ['The control plane was silent; it did not start, or was stopped.', 'Ask again.'],
  DAEMON_STOPPED: ['The daemon was stopping.', 'Start it and ask again.'],
  GATE_UNAVAILABLE: ["The machine's gate could not answer.", 'Look at the log; ask again.'],
  LEDGER_UNAVAILABLE: machine.LEDGER_UNAVAILABLE,
  RESTARTED: ['The daemon restarted before it started; it has no effect.', 'Ask again.'],
};

/** Why a daemon is in its error state. */
export const fault: Readonly<Record<DaemonFault, Line>> = faultLines;

/** What is wrong with a ledger. */
export const ledger: Record<LedgerDamage, Line> = {
  LEDGER_CUT: ['Records that were durable are gone.', 'Restore the folder as it was; otherwise forget and pair anew.'],
  LEDGER_ALTERED: [
    'A record does not continue the chain.',
    'Restore the folder as it was; otherwise forget and pair anew.',
  ],
  LEDGER_UNWRITABLE: [
    'A write or sync failed; nothing is accepted.',
    'Make room or mend the disk, then `nessie-executor repair`.',
  ],
  LEDGER_ABSENT: [
    'There was a ledger and its segments are gone.',
    'Restore the folder as it was; otherwise forget and pair anew.',
  ],
};

/** What link met. */
export const link: Record<LinkRefusal, Line> = {
  ORIGIN_UNRESOLVED: ['The name of the control plane has no address.', 'Check name and resolver.'],
  ORIGIN_UNREACHABLE: ['Nobody answers at the control plane.', 'Check network and server; it is tried again.'],
  TLS_NAME_MISMATCH: [
    'The certificate is for another name.',
    'Use the name in the certificate, or mend the certificate.',
  ],
  TLS_UNTRUSTED: [
    'The certificate is not signed by a trusted authority.',
    'Pair with `--ca FILE` for a private authority.',
  ],
  TLS_EXPIRED: ['The certificate is not valid now.', 'Renew it; check this clock.'],
  REDIRECT_REFUSED: [
    'The control plane points elsewhere; no redirect is followed.',
    'Pair with the address that it really has.',
  ],
  SUBPROTOCOL_REFUSED: ['The server does not speak this control channel.', update],
  ANSWER_TOO_LARGE: ['An answer over the limit.', bug],
  ANSWER_TIMEOUT: ['No answer in time.', again],
  CHANNEL_OPEN: ['A channel is open already.', bug],
  CHANNEL_CLOSED: ['The channel ended.', again],
  ORIGIN_NOT_PERMITTED: [
    'The connection would lead to another address than the origin, or to plain text.',
    'Check name server and proxies; plain http is for literal loopback addresses alone.',
  ],
};

/** What key-store refuses. */
export const keyStore: Record<KeyStoreRefusal, Line> = {
  KEY_EXISTS: ['There is a key already.', '`nessie-executor forget` ends it first.'],
  KEY_ABSENT: ['There is no key.', 'Pair this machine.'],
  PURPOSE_MISMATCH: ["A machine's key was asked for a statement of the control plane, or the reverse.", bug],
  STATEMENT_INVALID: ['The statement does not have its shape.', bug],
  GUARD_UNWRITABLE: ['The counter of signatures cannot be written.', 'Make room, then `nessie-executor repair`.'],
  STORE_UNWRITABLE: ['The key folder cannot be written.', 'Make room, then try again.'],
  ROTATION_ABSENT: ['No rotation is under way.', 'Start one: `nessie-executor rotate-key`.'],
  STORE_UNSAFE: [
    'The key or its folder can be read by others, belongs to somebody else, or is a link.',
    '`nessie-executor doctor` names it; mend mode and owner, and rotate the key if somebody may have read it.',
  ],
};

/** What workspace refuses. */
export const workspace: Record<WorkspaceRefusal, Line> = {
  WORKSPACE_UNAVAILABLE: [
    'The root cannot be opened.',
    'Put it back where it was, or choose another: `nessie-executor policy root`.',
  ],
  ROOT_CHANGED: [
    'Another folder stands where the root was.',
    '`nessie-executor policy root`, then review on the page.',
  ],
  ROOT_OVERLAPS: [
    'The root contains, equals or lies below state, configuration or installation.',
    'Choose another root.',
  ],
  DRAFT_UNKNOWN: ['There is no draft of this run.', '`nessie-executor drafts` lists them.'],
  DRAFT_DAMAGED: ["The draft's index cannot be read.", '`nessie-executor drafts discard RUN`.'],
  DRAFT_FROZEN: ['The draft is being promoted.', 'Wait for the promotion to end.'],
  MANIFEST_STALE: ['The draft is no longer the reviewed one.', 'Review again.'],
  CHANGE_UNKNOWN: ['There is no such change in the draft.', 'Review again.'],
  CANCELLED: ['Somebody cancelled it.', 'Ask again if it is still wanted.'],
};

/** What promote refuses. */
export const promote: Record<PromoteRefusal, Line> = {
  RECOVERY_FIRST: ['Recovery must run before an apply.', bug],
  RECOVERY_REQUIRED: ['An earlier promotion waits for a person.', '`nessie-executor repair`.'],
  BUSY: [
    'Another promotion works on the folder, or a program holds a lock on it.',
    'What was cut short is settled by itself once the folder is free; a promotion that was refused is approved again.',
  ],
  PIN_INVALID: ["The owner's pin cannot be read or believed.", 'Pair again, or restore `owner/pin.json`.'],
};

/** Why a kept promotion is not undone, beside the codes of results that a promotion has too. */
export const undo: Record<UndoCode, Line> = {
  UNDO_UNKNOWN: ['No promotion of this id is kept.', '`nessie-executor history` lists those that are.'],
  UNDO_WAITING: [
    'An old file of it is still open in some program, or the file system has no leases and a day has not passed.',
    'Close the program; what waits goes to the history by itself.',
  ],
  UNDO_DONE: ['It was undone already.', '`nessie-executor history` shows the undo, which can be undone itself.'],
  UNDO_NOT_KEPT: [
    'Its old files were not kept, or not all: they were larger than the owner keeps, older, or the disk was full.',
    'Take them from a backup; `history` in `policy.json` says how much is kept from now on.',
  ],
};

/** What the daemon answers its owner. */
export const daemon: Record<DaemonRefusal, Line> = {
  ALREADY_PAIRED: ['This machine is paired.', '`nessie-executor forget` first, or use `--name` for another executor.'],
  NOT_PAIRED: ['Nothing is paired here.', '`nessie-executor pair`.'],
  NO_PAIRING: ['No pairing is under way.', '`nessie-executor pair`.'],
  CLAIM_CHANGED: ['The claim is not the one that you saw.', 'Look at it again.'],
  DRAFTS_REMAIN: ['Drafts would be lost.', '`nessie-executor drafts`, then promote or discard them.'],
  OFFLINE: ['The control plane must answer to this.', 'Start the daemon and wait until it is online.'],
  HELPER_UNAVAILABLE: ['A process that is needed is not there.', 'It is being started again; try in a moment.'],
  NOT_IN_ERROR: ['There is nothing to repair.', 'None.'],
  REQUEST_INVALID: ['Command line and daemon do not speak one version.', 'Restart the daemon after an update.'],
  ROTATION_REFUSED: ['The control plane refused the new key; the old one stays.', 'The message says why.'],
  RECORDS_UNWRITABLE: [
    'The records of the pairing cannot be written, so what they would have said does not count.',
    'Make room in the state folder; what waits is tried again by itself, what you asked for ask again.',
  ],
  BUSY: ['Something else of this kind runs.', 'Try in a moment.'],
};

/** How a pairing ended at the machine. */
export const joining: Record<JoiningCode, Line> = {
  REQUEST_NOT_PREPARED: ['Key or descriptor could not be made.', '`nessie-executor doctor`.'],
  STATE_UNWRITABLE: ['The state folder cannot be written.', 'Make room; say `pair` again, it goes on where it was.'],
  COMMAND_KEY_CHANGED: [
    'The control plane confirmed with another key than it showed.',
    'Do not go on: somebody stands between, or it was replaced. Compare fingerprints.',
  ],
  ENDED_HERE: ['You ended it.', 'None.'],
  PAIRING_REFUSED: ['The person on the page said no.', 'Ask them, then pair again.'],
  PAIRING_CANCELLED: ['It was cancelled on the page.', 'Pair again.'],
  PAIRING_EXPIRED: ['Ten minutes passed.', 'Pair again for a new code.'],
};

/** What a connected machine is refused. */
export const channel: Record<ChannelRefusal, Line> = {
  PROTOCOL_VERSION_UNSUPPORTED: ['Another protocol version.', update],
  EXECUTOR_UNKNOWN: ['The control plane has no such executor.', 'Pair again.'],
  PROOF_INVALID: ['The proof is not signed by the paired key.', 'Pair again; a lost key never comes back.'],
  CHALLENGE_EXPIRED: [
    'The challenge was used, is older than a minute, or more of the ledger came to be known since it was made.',
    again,
  ],
  CLOCK_SKEW: ['The two clocks differ by more than a minute.', 'Set the clock of the one that is wrong.'],
  CONNECTION_FENCED: ['A newer connection of this executor stands, or access changed.', again],
  EXECUTOR_REVOKED: ['The executor was ended.', 'Pair as a new one.'],
  EXECUTOR_ERROR: [
    'The executor went into its error state while this connection stood.',
    'The machine proves itself again and is told; `nessie-executor status` names the fault and its remedy.',
  ],
  RECEIPT_INVALID: ['A receipt is not signed, or its digest does not fit.', bug],
  RECEIPT_OUT_OF_ORDER: ['A receipt does not continue its chain.', bug],
  RECEIPT_FOREIGN: ['A receipt for a command that was not leased to this machine.', bug],
  RESULT_REFUSED: ['A result over its limits; it is replaced once by a refusal.', 'Ask for less at a time.'],
  RESULT_DUPLICATE: ['A second ending of a finished command; the first stays.', bug],
  DESCRIPTOR_ROLLBACK: ['A lower revision than the known one.', 'Restore the newer state, or pair anew.'],
  REVISION_CONFLICT: ['The same revision with other bytes.', 'Restore the newer state, or pair anew.'],
  DESCRIPTOR_INVALID: ['The descriptor has no shape that this control plane knows.', update],
  ROTATION_INVALID: ['The rotation is not signed by both keys, or is an old one.', 'Say `rotate-key` again.'],
  RATE_LIMITED: ['Too many in too short a time.', again],
  UNAVAILABLE: ['The control plane cannot do it now.', again],
};

/** What a pairing machine is refused. */
export const pairing: Record<PairingRefusal, Line> = {
  ENROLLMENT_UNKNOWN: ['No such request, or a wrong challenge.', 'Copy the command from the page again.'],
  ENROLLMENT_EXPIRED: ['Ten minutes passed.', 'Make a new request on the page.'],
  ENROLLMENT_USED: ['The request was used.', 'Make a new request on the page.'],
  ENROLLMENT_PROOF_INVALID: ['The proof does not cover these facts.', bug],
  FINGERPRINT_NOT_CONFIRMED: ['Another fingerprint than the machine’s was confirmed.', 'Compare the two again.'],
  PAIRING_UNKNOWN: ['There is no such pairing.', 'Pair again.'],
  PAIRING_EXPIRED: ['Ten minutes passed.', 'Pair again for a new code.'],
  PAIRING_CANCELLED: ['It was cancelled.', 'Pair again.'],
  PAIRING_FACTS_CHANGED: ['The same request came with other facts.', 'Pair again.'],
  CLAIM_CHANGED: ['The claim is no longer what was shown.', 'Look at it again.'],
  KEY_ALREADY_KNOWN: ['This key is paired or pending already.', '`nessie-executor forget`, then pair anew.'],
  KEY_REFUSED: ['The key is not one that verifiers agree about.', bug],
  DESCRIPTOR_INVALID: ['The descriptor has no shape that this control plane knows.', update],
  CLOCK_SKEW: ['The two clocks differ by more than a minute.', 'Set the clock of the one that is wrong.'],
  PROOF_INVALID: ['The request is not signed by its key.', bug],
  FLOW_MISMATCH: ['A code pairing was answered as an enrolment, or the reverse.', 'Pair again.'],
  RATE_LIMITED: ['Too many in too short a time; limits fail closed.', 'Wait ten minutes.'],
  UNAVAILABLE: ['The control plane cannot do it now.', again],
  VERSION_UNSUPPORTED: ['The two sides do not speak one version.', update],
};
