/* Elements of the page. Text is put in as text: nothing here reads markup from a string. */

/** The element with an id that the page's own markup has. Throws where it is not there or of another kind. */
export function part<Kind extends Element>(id: string, kind: new () => Kind): Kind {
  const found = document.querySelector(`#${id}`);
  if (!(found instanceof kind)) throw new TypeError(`the page has no ${id}`);
  return found;
}

/** A new element with attributes and what is in it. */
export function make<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  attributes: Readonly<Record<string, string>> = {},
  ...inside: readonly (Node | string)[]
): HTMLElementTagNameMap[Name] {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...inside);
  return element;
}

/** A new element of a drawing. */
export function draw(
  name: 'svg' | 'line' | 'circle',
  attributes: Readonly<Record<string, string | number>>,
): SVGElement {
  const element = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value));
  return element;
}

/** A count and its noun, as in `1 line` and `2 lines`. */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}
