/*
 * Times of the channel between a machine and its control plane, in ms, as they are in server/protocol.ts, which nothing pure can load:
 * test/machines/simulate/simulate.test.ts holds both against each other.
 */

/** How long a control question is held: the last answer is at most this old when a lane is cut. */
export const CONTROL_HOLD_MS = 1500;
/** Silence after which a machine is offline (N-210). */
export const OFFLINE_MS = 60_000;
