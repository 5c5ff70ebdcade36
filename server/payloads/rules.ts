/*
 * Bounds of what the control plane keeps sealed, and for how long. Pure.
 */

/** Which bytes of a command are sealed. */
export type Direction = 'arguments' | 'content' | 'result';

/** How long sealed payloads are kept unless the owner of the server says otherwise, in ms: one day. */
export const DEFAULT_KEPT_MS = 86_400_000;

/** Largest payload that is sealed, in bytes: the largest result that the channel carries. */
export const PAYLOAD_LIMIT_BYTES = 420_000;

/** What a ciphertext is tied to: moved to another command or direction, it does not open (N-113). */
export function associatedData(command: string, direction: Direction): string {
  return `nessie-executor.payload.v1|${command}|${direction}`;
}

/** When a payload sealed at `at` is deleted, both in ms since the Unix epoch. */
export function deleteAt(at: number, keptMs: number): number {
  return at + keptMs;
}
