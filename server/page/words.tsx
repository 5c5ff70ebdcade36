import type { ComponentChildren } from 'preact';

import type { english } from './english.ts';

/** Every sentence of the page by its key; languages are files of the same keys. */
export type Catalogue = Readonly<Record<WordKey, string>>;
/** Key of one sentence; English decides which keys there are. */
export type WordKey = keyof typeof english;
type Plural<Key extends string> = Key extends `${infer Stem}.other` ? Stem : never;
/** Stem of a sentence that exists once for each plural category of its language. */
export type CountKey = Plural<WordKey>;

type Values = Readonly<Record<string, string | number>>;

/** Sentences of one language. Calling it answers the sentence of a key with its `{name}` places filled. */
export interface Words {
  (key: WordKey, values?: Values): string;
  /** The sentence for a number of things, with `{count}` filled as the language writes numbers. */
  count(key: CountKey, count: number, values?: Values): string;
  /** A sentence whose `{name}` places are elements. */
  parts(key: WordKey, values: Readonly<Record<string, ComponentChildren>>): ComponentChildren;
  /** The sentence of a key that comes from the server, or undefined where this language has none. */
  find(key: string): string | undefined;
  /** BCP 47 tag of the language. */
  readonly language: string;
}

/** Makes the sentences of a language. A key that a catalogue lacks is shown in English. */
export function createWords(language: string, catalogue: Partial<Catalogue>, fallback: Catalogue): Words {
  const sentences = new Map<string, string>(Object.entries({ ...fallback, ...catalogue }));
  const plural = new Intl.PluralRules(language);
  const numbers = new Intl.NumberFormat(language);
  const written = (value: string | number): string => (typeof value === 'number' ? numbers.format(value) : value);
  const fill = (sentence: string, values: Values): string =>
    sentence.replaceAll(/\{(\w+)\}/g, (place, name: string) => written(values[name] ?? place));
  const say = (key: WordKey, values: Values = {}): string => fill(sentences.get(key) ?? key, values);
  return Object.assign(say, {
    count: (key: CountKey, count: number, values: Values = {}) => {
      const sentence = sentences.get(`${key}.${plural.select(count)}`) ?? sentences.get(`${key}.other`) ?? key;
      return fill(sentence, { ...values, count });
    },
    parts: (key: WordKey, values: Readonly<Record<string, ComponentChildren>>): ComponentChildren =>
      (sentences.get(key) ?? key).split(/(\{\w+\})/).map((piece) => {
        const name = /^\{(\w+)\}$/.exec(piece)?.[1];
        return name === undefined ? piece : (values[name] ?? piece);
      }),
    find: (key: string) => sentences.get(key),
    language,
  });
}
