import { createWords, type Catalogue, type Words } from './words.tsx';

/** Languages beside English: one file of sentences each, loaded when it is wanted. */
export const languages: Readonly<Record<string, () => Promise<{ readonly default: Partial<Catalogue> }>>> = {
  de: () => import('./messages/de.json', { with: { type: 'json' } }),
};

/** Name of each language in itself. */
export const languageNames: Readonly<Record<string, string>> = { en: 'English', de: 'Deutsch' };

const CHOICE = 'language';

/** The language that the person chose on this browser, or undefined. */
export function chosenLanguage(): string | undefined {
  return localStorage.getItem(CHOICE) ?? undefined;
}

/** Keeps the choice of a language on this browser; undefined goes back to the browser's own. */
export function chooseLanguage(language: string | undefined): void {
  if (language === undefined) localStorage.removeItem(CHOICE);
  else localStorage.setItem(CHOICE, language);
}

/** The first language wanted that there are sentences for; English where there is none. */
export function pickLanguage(wanted: readonly string[]): string {
  const known = new Set(['en', ...Object.keys(languages)]);
  return wanted.map((tag) => tag.split('-')[0] ?? tag).find((tag) => known.has(tag)) ?? 'en';
}

/** Sentences in the first language wanted that there is. */
export async function loadWords(wanted: readonly string[]): Promise<Words> {
  const language = pickLanguage(wanted);
  const load = languages[language];
  const [{ english }, catalogue] = await Promise.all([import('./english.ts'), load?.()]);
  return createWords(language, catalogue?.default ?? {}, english);
}
