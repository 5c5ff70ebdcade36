import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef, useState } from 'preact/hooks';

import { usePage } from '../page.tsx';

interface Labelled {
  readonly label: string;
  readonly hint?: ComponentChildren;
  readonly problem?: string | undefined;
}

function describedBy(id: string, { hint, problem }: Labelled): string | undefined {
  const names = [hint === undefined ? '' : `${id}-hint`, problem === undefined ? '' : `${id}-problem`].filter(Boolean);
  return names.length === 0 ? undefined : names.join(' ');
}

function Around({ id, about, children }: { id: string; about: Labelled; children: ComponentChildren }) {
  return (
    <div class="field">
      <label for={id}>{about.label}</label>
      {about.hint !== undefined && (
        <p class="hint" id={`${id}-hint`}>
          {about.hint}
        </p>
      )}
      {children}
      {about.problem !== undefined && (
        <p class="problem" id={`${id}-problem`} role="alert">
          {about.problem}
        </p>
      )}
    </div>
  );
}

/** One line of text with its label above. */
export function TextField({
  value,
  onValue,
  autocomplete = 'off',
  inputMode,
  maxLength = 256,
  minLength,
  required = true,
  code = false,
  autoFocus = false,
  ...about
}: Labelled & {
  readonly value: string;
  readonly onValue: (value: string) => void;
  readonly autocomplete?: string;
  readonly inputMode?: 'numeric' | 'text';
  readonly maxLength?: number;
  readonly minLength?: number;
  readonly required?: boolean;
  /** Digits that are compared and typed one by one: wide and of even width. */
  readonly code?: boolean;
  readonly autoFocus?: boolean;
}) {
  const id = useId();
  const input = useFocus(autoFocus);
  return (
    <Around id={id} about={about}>
      <input
        ref={input}
        id={id}
        class={code ? 'input code' : 'input'}
        type="text"
        value={value}
        autocomplete={autocomplete}
        inputMode={inputMode}
        maxLength={maxLength}
        minLength={minLength}
        required={required}
        spellcheck={false}
        aria-describedby={describedBy(id, about)}
        aria-invalid={about.problem !== undefined}
        onInput={(event) => onValue(event.currentTarget.value)}
      />
    </Around>
  );
}

const visible = { type: 'text' } as const;
const concealed = { type: 'password' } as const;

/** Takes the focus once, where the view is about this one field. */
function useFocus(wanted: boolean) {
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => {
    if (wanted) input.current?.focus();
  }, []);
  return input;
}

/** A password with a button that shows it. */
export function PasswordField({
  value,
  onValue,
  kind,
  autoFocus = false,
  ...about
}: Labelled & {
  readonly value: string;
  readonly onValue: (value: string) => void;
  readonly kind: 'current' | 'new';
  readonly autoFocus?: boolean;
}) {
  const { say } = usePage();
  const id = useId();
  const [shown, setShown] = useState(false);
  const input = useFocus(autoFocus);
  return (
    <Around id={id} about={about}>
      <div class="with-button">
        <input
          ref={input}
          id={id}
          class="input"
          {...(shown ? visible : concealed)}
          value={value}
          autocomplete={`${kind}-password`}
          maxLength={256}
          minLength={kind === 'new' ? 12 : undefined}
          required
          spellcheck={false}
          aria-describedby={describedBy(id, about)}
          aria-invalid={about.problem !== undefined}
          onInput={(event) => onValue(event.currentTarget.value)}
        />
        <button type="button" class="button quiet" aria-pressed={shown} onClick={() => setShown(!shown)}>
          {say(shown ? 'password.hide' : 'password.show')}
        </button>
      </div>
    </Around>
  );
}

/** Options of a list of named things. */
export function optionsOf(named: readonly { readonly id: string; readonly name: string }[]) {
  return named.map(({ id, name }) => ({ value: id, text: name }));
}

/** One of a list. */
export function SelectField({
  value,
  onValue,
  options,
  ...about
}: Labelled & {
  readonly value: string;
  readonly onValue: (value: string) => void;
  readonly options: readonly { readonly value: string; readonly text: string }[];
}) {
  const id = useId();
  return (
    <Around id={id} about={about}>
      <select
        id={id}
        class="input"
        value={value}
        aria-describedby={describedBy(id, about)}
        onChange={(event) => onValue(event.currentTarget.value)}
      >
        {options.map((option) => (
          <option key={option.value} value={option.value} selected={option.value === value}>
            {option.text}
          </option>
        ))}
      </select>
    </Around>
  );
}

/** One of a few, each with a sentence of what it means. */
export function ChoiceField<Value extends string>({
  value,
  onValue,
  options,
  label,
  hint,
}: Labelled & {
  readonly value: Value;
  readonly onValue: (value: Value) => void;
  readonly options: readonly { readonly value: Value; readonly text: string; readonly about: string }[];
}) {
  const id = useId();
  return (
    <fieldset class="field choices" aria-describedby={hint === undefined ? undefined : `${id}-hint`}>
      <legend>{label}</legend>
      {hint !== undefined && (
        <p class="hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
      {options.map((option) => (
        <label key={option.value} class="choice">
          <input
            type="radio"
            name={id}
            value={option.value}
            checked={option.value === value}
            aria-describedby={`${id}-${option.value}`}
            onChange={() => onValue(option.value)}
          />
          <span>
            <span class="choice-name">{option.text}</span>
            <span class="hint" id={`${id}-${option.value}`}>
              {option.about}
            </span>
          </span>
        </label>
      ))}
    </fieldset>
  );
}

/** Yes or no, with a sentence of what it means. */
export function CheckField({
  checked,
  onChecked,
  label,
  hint,
}: Labelled & { readonly checked: boolean; readonly onChecked: (checked: boolean) => void }) {
  const id = useId();
  return (
    <label class="choice field">
      <input
        type="checkbox"
        checked={checked}
        aria-describedby={hint === undefined ? undefined : `${id}-hint`}
        onChange={(event) => onChecked(event.currentTarget.checked)}
      />
      <span>
        <span class="choice-name">{label}</span>
        {hint !== undefined && (
          <span class="hint" id={`${id}-hint`}>
            {hint}
          </span>
        )}
      </span>
    </label>
  );
}
