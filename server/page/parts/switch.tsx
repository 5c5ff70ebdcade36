import { usePage } from '../page.tsx';

/** On or off, at once. */
export function Switch({
  on,
  label,
  busy,
  disabled,
  onChange,
}: {
  readonly on: boolean;
  readonly label: string;
  readonly busy: boolean;
  readonly disabled: boolean;
  readonly onChange: (on: boolean) => void;
}) {
  const { say } = usePage();
  return (
    <button
      type="button"
      role="switch"
      class="switch"
      aria-checked={on}
      aria-label={label}
      aria-busy={busy}
      disabled={disabled}
      onClick={busy ? undefined : () => onChange(!on)}
    >
      <span class="switch-track" aria-hidden="true" />
      <span aria-hidden="true">{say(on ? 'switch.on' : 'switch.off')}</span>
    </button>
  );
}
