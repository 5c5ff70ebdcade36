import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';

import { usePage, useNow } from '../page.tsx';
import { useRouter } from '../router.tsx';
import { Button } from './button.tsx';

/** The heading of a view: names the window, and takes the focus when the person came here from another view. */
export function Title({
  text,
  above,
  children,
}: {
  text: string;
  above?: ComponentChildren;
  children?: ComponentChildren;
}) {
  const { say, arrived } = usePage();
  const { moved } = useRouter();
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = say('page.title', { view: text });
  }, [text, say]);
  useEffect(() => {
    if (moved || arrived) heading.current?.focus({ preventScroll: true });
  }, []);
  return (
    <div class="title">
      <div>
        {above !== undefined && <p class="above">{above}</p>}
        <h1 ref={heading} tabIndex={-1}>
          {text}
        </h1>
      </div>
      {children}
    </div>
  );
}

/** One named fact. */
export interface Fact {
  readonly name: string;
  readonly value: ComponentChildren;
}

/** Facts by name, two columns where there is room. */
export function Facts({ facts }: { readonly facts: readonly Fact[] }) {
  return (
    <dl class="facts">
      {facts.map(({ name, value }) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

/** A SHA-256 in groups of four digits, as the command line groups it too. */
export function Fingerprint({ digits, label }: { readonly digits: string; readonly label: string }) {
  const groups = digits.match(/.{1,4}/g) ?? [];
  const rows = Array.from({ length: Math.ceil(groups.length / 4) }, (_, row) => groups.slice(row * 4, row * 4 + 4));
  return (
    <code class="fingerprint" role="img" aria-label={`${label}: ${groups.join(' ')}`}>
      {rows.map((row, index) => (
        <span key={index} class="fingerprint-row">
          {row.map((group, column) => (
            <span key={column}>{group} </span>
          ))}
        </span>
      ))}
    </code>
  );
}

/** The mark of a machine whose key signed what is shown, always with the sentence of what that does not prove (N-086). */
export function VerifiedMark() {
  const { say } = usePage();
  return (
    <p class="verified">
      <span class="state good">{say('verified.mark')}</span> {say('verified.meaning')}
    </p>
  );
}

const steps: readonly (readonly [Intl.RelativeTimeFormatUnit, number])[] = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
];

/** A moment as people say it, renewed each quarter of a minute; the exact time stands in its tip. */
export function Moment({ at }: { readonly at: number }) {
  const { say } = usePage();
  const now = useNow(15_000);
  const ago = at - now;
  const step = steps.find(([, ms]) => Math.abs(ago) >= ms);
  const format = new Intl.RelativeTimeFormat(say.language, { numeric: 'auto', style: 'long' });
  const text = step === undefined ? say('time.now') : format.format(Math.trunc(ago / step[1]), step[0]);
  const exact = new Intl.DateTimeFormat(say.language, { dateStyle: 'medium', timeStyle: 'medium' }).format(at);
  return (
    <time dateTime={new Date(at).toISOString()} title={exact}>
      {text}
    </time>
  );
}

/** Minutes and seconds until a moment, never below nothing. */
export function Remaining({ until }: { readonly until: number }) {
  const now = useNow(1000);
  const seconds = Math.max(0, Math.ceil((until - now) / 1000));
  return (
    <span class="digits" role="timer">
      {Math.floor(seconds / 60)}:{String(seconds % 60).padStart(2, '0')}
    </span>
  );
}

/** Text to take elsewhere, with a button that copies it. */
export function CopyBlock({ text, label }: { readonly text: string; readonly label: string }) {
  const { say, announce } = usePage();
  const block = useRef<HTMLPreElement>(null);
  const [copied, setCopied] = useState(false);
  const copy = (): void => {
    navigator.clipboard.writeText(text).then(
      () => {
        setCopied(true);
        announce(say('copy.done'));
      },
      () => {
        // Where the browser forbids it the text is selected, so that the person's own copy key takes it.
        if (block.current !== null) getSelection()?.selectAllChildren(block.current);
        announce(say('copy.select'));
      },
    );
  };
  return (
    <div class="copy">
      <pre ref={block} tabIndex={0} role="group" aria-label={label}>
        {text}
      </pre>
      <Button
        kind="quiet"
        onPress={copy}
        label={say('copy.label', { action: say(copied ? 'copy.copied' : 'copy.copy'), what: label })}
      >
        {say(copied ? 'copy.copied' : 'copy.copy')}
      </Button>
    </div>
  );
}
