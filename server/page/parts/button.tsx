import type { ComponentChildren } from 'preact';

/** A button; while busy it stays where it is and says so. */
export function Button({
  kind = 'plain',
  busy = false,
  disabled = false,
  submit = false,
  onPress,
  describedBy,
  label,
  children,
}: {
  readonly kind?: 'primary' | 'plain' | 'danger' | 'quiet';
  readonly busy?: boolean;
  readonly disabled?: boolean;
  readonly submit?: boolean;
  readonly onPress?: () => void;
  readonly describedBy?: string;
  /** What a screen reader says where the visible text alone is not enough. */
  readonly label?: string;
  readonly children: ComponentChildren;
}) {
  return (
    <button
      type={submit ? 'submit' : 'button'}
      class={`button ${kind}`}
      aria-busy={busy}
      aria-disabled={busy}
      aria-describedby={describedBy}
      aria-label={label}
      disabled={disabled}
      onClick={busy ? undefined : onPress}
    >
      {children}
    </button>
  );
}
