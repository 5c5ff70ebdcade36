/** Name of a slot's folder below `drafts/`: the slot's number as eight hexadecimal digits. */
export function slotName(slot: number): string {
  return slot.toString(16).padStart(8, '0');
}
