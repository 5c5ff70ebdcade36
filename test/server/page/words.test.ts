import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';

import { createWords } from '../../../server/page/words.tsx';
import { english } from '../../../server/page/english.ts';
import { languageNames, languages, pickLanguage } from '../../../server/page/languages.ts';

const PAGE = path.resolve(import.meta.dirname, '..', '..', '..', 'server', 'page');
const MESSAGES = path.join(PAGE, 'messages');
const PLURALS = ['zero', 'one', 'two', 'few', 'many', 'other'];

function sources(): string {
  const files = fs.readdirSync(PAGE, { recursive: true, encoding: 'utf8' });
  return files
    .filter((file) => /\.tsx?$/.test(file))
    .map((file) => fs.readFileSync(path.join(PAGE, file), 'utf8'))
    .join('\n');
}

/** Keys that the sources name: whole, or as the pattern of a template whose places the server fills. */
function namedIn(text: string): { readonly whole: ReadonlySet<string>; readonly patterns: readonly RegExp[] } {
  const whole = new Set([...text.matchAll(/'([a-z][\w.-]*)'/g)].map(([, key]) => key ?? ''));
  const templates = [...text.matchAll(/`([a-z][\w-]*\.(?:[^`]*))`/g)].map(([, template]) => template ?? '');
  const patterns = templates
    .filter((template) => template.includes('${') && !template.includes('/') && !template.includes(' '))
    .map((template) => {
      const escaped = template
        .split(/\$\{[^}]*\}/)
        .map((piece) => piece.replaceAll('.', '\\.'))
        .join('[\\w.-]+');
      return new RegExp(`^${escaped}$`);
    });
  return { whole, patterns };
}

const stemOf = (key: string): string => {
  const ending = key.split('.').at(-1) ?? '';
  return PLURALS.includes(ending) ? key.slice(0, -ending.length - 1) : key;
};

describe('sentences of the page', () => {
  it('every sentence is named by a source, and the compiler refuses a name without one', () => {
    const { whole, patterns } = namedIn(sources());
    const unused = Object.keys(english).filter(
      (key) => !whole.has(key) && !whole.has(stemOf(key)) && !patterns.some((pattern) => pattern.test(stemOf(key))),
    );
    assert.deepEqual(unused, []);
  });

  it('every language file is offered, and every language offered has a file', () => {
    const files = fs.readdirSync(MESSAGES).map((file) => path.parse(file).name);
    assert.deepEqual(files.toSorted(), ['en', ...Object.keys(languages)].toSorted());
    assert.deepEqual(Object.keys(languageNames).toSorted(), files.toSorted());
  });

  for (const file of fs.readdirSync(MESSAGES)) {
    it(`${file} has every sentence, no other, and the same places in each`, () => {
      const language = path.parse(file).name;
      const catalogue: Record<string, string> = JSON.parse(fs.readFileSync(path.join(MESSAGES, file), 'utf8'));
      const categories = new Intl.PluralRules(language).resolvedOptions().pluralCategories;
      const counted = new Set(
        Object.keys(english)
          .filter((key) => key.endsWith('.other'))
          .map(stemOf),
      );
      const expected = Object.keys(english).flatMap((key) => {
        if (!counted.has(stemOf(key)) || key === stemOf(key)) return [key];
        return key.endsWith('.other') ? categories.map((category) => `${stemOf(key)}.${category}`) : [];
      });
      assert.deepEqual(Object.keys(catalogue).toSorted(), [...new Set(expected)].toSorted());
      const sentences = new Map<string, string>(Object.entries(english));
      for (const [key, sentence] of Object.entries(catalogue)) {
        const source = sentences.get(key) ?? sentences.get(`${stemOf(key)}.other`) ?? '';
        assert.deepEqual(placesIn(sentence), placesIn(source), `${file}: ${key}`);
        assert.notEqual(sentence.trim(), '', `${file}: ${key} is empty`);
      }
    });
  }

  it('a number takes the plural of its language, and is written as the language writes numbers', () => {
    const say = createWords('en', {}, english);
    assert.equal(say.count('reviews.changes', 1), '1 change');
    assert.equal(say.count('reviews.changes', 1200), '1,200 changes');
  });

  it('a place without a value stays visible instead of vanishing', () => {
    const say = createWords('en', {}, english);
    assert.equal(say('page.title'), '{view} · Nessie');
    assert.equal(say('page.title', { view: 'Runs' }), 'Runs · Nessie');
  });

  it('an unknown language falls back to English', () => {
    assert.equal(pickLanguage(['xx-YY', 'en-GB']), 'en');
    assert.equal(pickLanguage([]), 'en');
  });
});

function placesIn(sentence: string): readonly string[] {
  return [...new Set([...sentence.matchAll(/\{(\w+)\}/g)].map(([, name]) => name ?? ''))].toSorted();
}
