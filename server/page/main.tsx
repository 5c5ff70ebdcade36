import { render } from 'preact';

import { App } from './app.tsx';
import { chosenLanguage, loadWords } from './languages.ts';
import { takeLink } from './link.ts';
import { RouterProvider } from './router.tsx';

async function start(): Promise<void> {
  const place = document.querySelector('#page');
  if (place === null) throw new Error('the document has no place for the page');
  const link = takeLink();
  const chosen = chosenLanguage();
  const say = await loadWords(chosen === undefined ? navigator.languages : [chosen]);
  document.documentElement.lang = say.language;
  render(
    <RouterProvider>
      <App say={say} link={link} />
    </RouterProvider>,
    place,
  );
}

void start();
