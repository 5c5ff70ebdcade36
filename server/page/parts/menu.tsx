import { useId, useLayoutEffect, useRef, useState } from 'preact/hooks';

import { Down } from './icons.tsx';

/** One thing that a menu offers. */
export interface MenuItem {
  readonly key: string;
  readonly text: string;
  readonly about: string;
  readonly danger: boolean;
  readonly onChoose: () => void;
}

/** Which of `count` items a key leads to from the one that has the focus, -1 where none has; undefined for another key. */
function stepTo(key: string, at: number, count: number): number | undefined {
  switch (key) {
    case 'ArrowDown':
      return (at + 1) % count;
    case 'ArrowUp':
      return at <= 0 ? count - 1 : at - 1;
    case 'Home':
      return 0;
    case 'End':
      return count - 1;
    default:
      return undefined;
  }
}

function drawnIn(menu: HTMLElement | null): readonly HTMLElement[] {
  return [...(menu?.querySelectorAll<HTMLElement>('[role=menuitem]') ?? [])];
}

/** A menu button: arrows walk, Home and End jump, Escape and Tab close, and the focus goes back to the button. */
export function Menu({ label, items }: { readonly label: string; readonly items: readonly MenuItem[] }) {
  const id = useId();
  const [open, setOpen] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  const whole = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    if (open) drawnIn(whole.current)[0]?.focus();
  }, [open]);
  const close = (): void => {
    setOpen(false);
    button.current?.focus();
  };
  // The focus itself says where the person is: keys may come faster than the screen is drawn.
  const walk = (event: KeyboardEvent): void => {
    const list = drawnIn(whole.current);
    const at = list.findIndex((item) => item === document.activeElement);
    const next = list.length === 0 ? undefined : stepTo(event.key, at, list.length);
    if (event.key === 'Tab') return setOpen(false);
    if (next !== undefined) list[next]?.focus();
    else if (event.key === 'ArrowDown' || event.key === 'ArrowUp') setOpen(true);
    else if (event.key === 'Escape' && open) close();
    else return;
    event.preventDefault();
  };
  const left = ({ relatedTarget: to }: FocusEvent): void => {
    if (!(to instanceof Node) || !whole.current?.contains(to)) setOpen(false);
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
        onClick={() => setOpen(!open)}
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
