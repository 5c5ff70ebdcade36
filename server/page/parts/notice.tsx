import type { ComponentChildren } from 'preact';

import type { CallRefused } from '../client.ts';
import { usePage, type Asked } from '../page.tsx';
import { Button } from './button.tsx';
import { Info, Tick, Warning } from './icons.tsx';

/** A sentence that stands out: what holds, what is wrong, what was done. */
export function Notice({
  tone,
  title,
  alert = false,
  children,
}: {
  readonly tone: 'info' | 'warning' | 'error' | 'done';
  readonly title?: string;
  /** Said at once to who listens. */
  readonly alert?: boolean;
  readonly children?: ComponentChildren;
}) {
  return (
    <div class={`notice ${tone}`} role={alert ? 'alert' : undefined}>
      {tone === 'done' ? <Tick /> : tone === 'info' ? <Info /> : <Warning />}
      <div>
        {title !== undefined && <p class="notice-title">{title}</p>}
        {children}
      </div>
    </div>
  );
}

/** Why something was not done, and what to do about it. */
export function Refused({ refused }: { readonly refused: CallRefused | undefined }) {
  const { say } = usePage();
  if (refused === undefined) return null;
  const own = say.find(`refused.${refused.code}`);
  const remedy = say.find(`remedy.${refused.code}`) ?? refused.remedy;
  return (
    <Notice tone="error" alert>
      <p>
        {own ?? refused.message} <code class="quiet-code">{refused.code}</code>
      </p>
      {remedy !== undefined && <p>{remedy}</p>}
    </Notice>
  );
}

/** Shows an answer once it is there; until then its place is kept, and a refusal stands there with a way to ask again. */
export function Answered<Answer>({
  asked,
  lines = 4,
  children,
}: {
  readonly asked: Asked<Answer>;
  /** About how many lines the answer takes. */
  readonly lines?: number;
  readonly children: (answer: Answer) => ComponentChildren;
}) {
  const { say } = usePage();
  if (asked.state === 'asking') {
    return (
      <div class="asking" aria-busy="true">
        <span class="only-heard">{say('page.loading')}</span>
        {Array.from({ length: lines }, (_, line) => (
          <div key={line} class="asking-line" />
        ))}
      </div>
    );
  }
  if (asked.state === 'refused') {
    return (
      <div class="stack">
        <Refused refused={asked.refused} />
        <div class="actions">
          <Button onPress={asked.ask}>{say('action.again')}</Button>
        </div>
      </div>
    );
  }
  return (
    <>
      {asked.refused !== undefined && (
        <Notice tone="warning" alert>
          <p>{say('page.stale')}</p>
        </Notice>
      )}
      {children(asked.answer)}
    </>
  );
}

/** What stands where a list is empty: what it is for and what to do next. */
export function Empty({ title, children }: { readonly title: string; readonly children: ComponentChildren }) {
  return (
    <div class="empty">
      <h2>{title}</h2>
      {children}
    </div>
  );
}
