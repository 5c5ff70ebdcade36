/** A piece of a line: what stands there, or the name of a character that cannot be seen. */
export interface Piece {
  readonly text: string;
  readonly hidden: boolean;
}

/**
 * Characters that are drawn as nothing or move what stands beside them.
 * THREAT: an agent hides code from the reviewing person by direction marks or invisible letters; each is shown by its number.
 */
const unseen =
  /\p{Cc}|\p{Cf}|\p{Zl}|\p{Zp}|\p{Co}|\u034f|\u115f|\u1160|\u3164|\uffa0|[\ufe00-\ufe0f]|[\u{e0100}-\u{e01ef}]/u;

/** A line in pieces; tabs stay as they are. */
export function piecesOf(line: string): readonly Piece[] {
  return line.split(new RegExp(`(${unseen.source})`, 'u')).flatMap((text): Piece[] => {
    if (text === '') return [];
    if (text === '\t' || !unseen.test(text)) return [{ text, hidden: false }];
    const number = (text.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0');
    return [{ text: `U+${number}`, hidden: true }];
  });
}
