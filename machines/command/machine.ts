/*
 * One command as the control plane records it (N-105 to N-119, R50 to R63). What the machine does with it is execution.ts: two
 * machines, because the two sides know different facts. The control plane sees receipts and never a phase of the ledger; the
 * machine sees its ledger and never whether a receipt arrived. One machine with two roles would need states that hold on one side only.
 *
 * INVARIANT 1  A receipt counts only from the connection that leased the command and only as the next link of its chain (N-107, R57).
 * INVARIANT 2  A lost connection or a passed lifetime after the lease is `unknown`, never a success and never a repeat (N-116, R59, R61).
 * INVARIANT 3  No outcome ever changes, except `unknown`, once, by a chain that begins with this command's own lease (N-118).
 * INVARIANT 4  A wish to cancel changes no fact: the outcome is what the machine proves, be it a success (R55, R63).
 * INVARIANT 5  Only what nobody has leased can be ended by the control plane alone (R75).
 *
 * No state waits on a timer here: the control plane owns the clock and says `command.expired`.
 */
import { accepted, broken, cancel, command, ended, foreign, late, losses, nextLink, notStarted } from './receipts.ts';
import { result, started, unacceptable } from './receipts.ts';
import type { KnownOutcome } from '../values.ts';

/** One command of the control plane; its state is stored with its row and stepped in one transaction with the audit entry. */
export const commandMachine = command.createMachine({
  id: 'command',
  version: '1',
  context: ({ input }) => ({
    ...input,
    epoch: null,
    envelopeDigest: null,
    leasedDigest: null,
    acceptedDigest: null,
    headDigest: null,
    cancelledBy: null,
    unknownBecause: null,
    gate: null,
    code: null,
  }),
  output: ({ context, event }) => {
    const { commandId, gate, code, headDigest, unknownBecause } = context;
    // Every final state is made by `ended`, whose output is the outcome; xstate types the event of the end as unknown.
    const outcome = event.output as KnownOutcome;
    return { commandId, outcome, gate, code, headDigest, late: unknownBecause !== null };
  },
  initial: 'queued',
  states: {
    queued: {
      meta: {
        holds: 'The sealed envelope waits; no machine has seen it.',
        permits: ['server.resolve', 'server.lease'],
      },
      on: {
        'command.lease': {
          target: 'leased',
          actions: {
            type: 'recordLease',
            params: ({ event: { epoch, envelopeDigest, receiptDigest } }) => ({ epoch, envelopeDigest, receiptDigest }),
          },
        },
        'command.refused': {
          target: 'refused',
          actions: { type: 'recordCode', params: ({ event }) => ({ code: event.code, gate: 'control-plane' }) },
        },
        'command.cancel': {
          target: 'cancelled',
          actions: { type: 'recordCanceller', params: ({ event }) => event.by },
        },
        'command.expired': { target: 'expired' },
      },
    },
    leased: {
      meta: {
        holds: 'One connection was given the envelope; whether the machine took it is not known.',
        permits: ['server.lease', 'server.take-receipt', 'server.countersign'],
      },
      on: {
        ...losses,
        'receipt.accepted': accepted('accepted'),
        'receipt.not-started': notStarted,
        'command.cancel': cancel('cancelling.leased'),
      },
    },
    accepted: {
      meta: {
        holds: 'The machine recorded the command and both gates permitted it; its side effect has not begun.',
        permits: ['server.take-receipt', 'server.countersign'],
      },
      on: {
        ...losses,
        'receipt.started': started('started'),
        'receipt.not-started': notStarted,
        'command.cancel': cancel('cancelling.accepted'),
      },
    },
    started: {
      meta: {
        holds: 'The machine recorded the start: a side effect may exist from here on.',
        permits: ['server.take-receipt', 'server.countersign'],
      },
      on: {
        ...losses,
        'result.received': result,
        'result.unacceptable': unacceptable,
        'command.cancel': cancel('cancelling.started'),
      },
    },
    cancelling: {
      meta: {
        holds:
          'Somebody wants it ended and the machine was told, or will be by the next control answer; nothing is decided.',
        permits: ['server.take-receipt', 'server.countersign'],
      },
      initial: 'leased',
      on: {
        ...losses,
        'command.cancel': { actions: { type: 'refuse', params: { code: 'ALREADY_CANCELLING' } } },
      },
      states: {
        leased: {
          meta: { holds: 'As leased, with a cancel that may overtake the command.', permits: ['server.lease'] },
          on: { 'receipt.accepted': accepted('accepted'), 'receipt.not-started': notStarted },
        },
        accepted: {
          meta: { holds: 'As accepted, with a cancel on its way.', permits: [] },
          on: { 'receipt.started': started('started'), 'receipt.not-started': notStarted },
        },
        started: {
          meta: { holds: 'As started, with a cancel on its way; the effect may be complete already.', permits: [] },
          on: { 'result.received': result, 'result.unacceptable': unacceptable },
        },
      },
    },
    replacing: {
      meta: {
        holds: 'The result was refused with its reason; the machine owes one refusal record in its place.',
        permits: ['server.take-receipt', 'server.countersign'],
      },
      on: {
        ...losses,
        'result.replaced': [
          foreign,
          {
            guard: nextLink,
            target: 'failed',
            actions: [
              { type: 'recordLink', params: ({ event }) => event.receiptDigest },
              { type: 'countersign', params: ({ event }) => ({ receiptDigest: event.receiptDigest }) },
            ],
          },
          broken,
        ],
      },
    },
    unknown: {
      meta: {
        holds:
          'It may or may not have happened and is never repeated; only a late chain of its own lease can settle it.',
        permits: ['server.take-late-receipt', 'server.countersign'],
      },
      entry: { type: 'tellWaiter', params: { outcome: 'unknown' } },
      on: {
        'receipt.late': [
          late('succeeded'),
          late('failed'),
          late('refused'),
          late('cancelled'),
          late('expired'),
          broken,
        ],
      },
    },
    succeeded: ended('succeeded', 'The machine proved that the operation was done; the ending is countersigned.'),
    failed: ended('failed', 'The machine proved that it was tried and broke, or that its result could not be taken.'),
    refused: ended('refused', 'One gate said no before the start; nothing ran.'),
    cancelled: ended('cancelled', 'Nobody had leased it, or the machine proved that it ended because somebody asked.'),
    expired: ended('expired', 'Its time ran out before a lease, or the machine proved that it stopped it for that.'),
  },
});
