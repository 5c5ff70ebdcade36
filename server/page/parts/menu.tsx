import { useEffect, useId, useRef, useState } from 'preact/hooks';

import { Down } from './icons.tsx';

/** One thing that a menu offers. */
export interface MenuItem {
  readonly key: string;
  readonly text: string;
  readonly about: string;
  readonly danger: boolean;
  readonly onChoose: () => void;
}

/** Which item a key leads to; undefined where the key is no way through a menu. */
function stepTo(key: string, at: number | undefined, last: number): number | undefined {
  switch (key) {
    case 'ArrowDown':
      return at === undefined || at === last ? 0 : at + 1;
    case 'ArrowUp':
      return at === undefined || at === 0 ? last : at - 1;
    case 'Home':
      return 0;
    case 'End':
      return last;
    default:
      return undefined;
  }
}

/** A menu button: arrows walk, Home and End jump, Escape and Tab close, and the focus goes back to the button. */
export function Menu({ label, items }: { readonly label: string; readonly items: readonly MenuItem[] }) {
  const id = useId();
  const [at, setAt] = useState<number | undefined>(undefined);
  const button = useRef<HTMLButtonElement>(null);
  const whole = useRef<HTMLDivElement>(null);
  const open = at !== undefined;
  useEffect(() => {
    if (at !== undefined) whole.current?.querySelectorAll<HTMLElement>('[role=menuitem]')[at]?.focus();
  }, [at]);
  const close = (): void => {
    setAt(undefined);
    button.current?.focus();
  };
  const walk = (event: KeyboardEvent): void => {
    const next = stepTo(event.key, at, items.length - 1);
    if (event.key === 'Tab') return setAt(undefined);
    if (next !== undefined) setAt(next);
    else if (event.key === 'Escape' && open) close();
    else return;
    event.preventDefault();
  };
  const left = ({ relatedTarget: to }: FocusEvent): void => {
    if (!(to instanceof Node) || !whole.current?.contains(to)) setAt(undefined);
  };
  return (
    <div ref={whole} class="menu" onKeyDown={walk} onFocusOut={left}>
      <button
        ref={button}
        type="button"
        class="button plain"
        aria-haspopup="menu"
        aria-expanded={open}
        aria-controls={open ? id : undefined}
        onClick={() => setAt(open ? undefined : 0)}
      >
        {label}
        <Down />
      </button>
      {open && (
        <div id={id} role="menu" aria-label={label} class="menu-list">
          {items.map((item) => (
            <Item key={item.key} item={item} onClose={close} />
          ))}
        </div>
      )}
    </div>
  );
}

function Item({ item, onClose }: { readonly item: MenuItem; readonly onClose: () => void }) {
  return (
    <button
      type="button"
      role="menuitem"
      tabIndex={-1}
      class={item.danger ? 'menu-item danger' : 'menu-item'}
      onClick={() => {
        onClose();
        item.onChoose();
      }}
    >
      <span class="menu-name">{item.text}</span>
      <span class="hint">{item.about}</span>
    </button>
  );
}
