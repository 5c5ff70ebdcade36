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

/** A menu button: arrows walk, Home and End jump, Escape and Tab close, and the focus goes back to the button. */
export function Menu({ label, items }: { readonly label: string; readonly items: readonly MenuItem[] }) {
  const id = useId();
  const [at, setAt] = useState<number | undefined>(undefined);
  const button = useRef<HTMLButtonElement>(null);
  const list = useRef<HTMLDivElement>(null);
  const open = at !== undefined;
  useEffect(() => {
    if (at !== undefined) list.current?.querySelectorAll<HTMLElement>('[role=menuitem]')[at]?.focus();
  }, [at]);
  const close = (): void => {
    setAt(undefined);
    button.current?.focus();
  };
  const walk = (event: KeyboardEvent): void => {
    const last = items.length - 1;
    const next = {
      ArrowDown: at === undefined || at === last ? 0 : at + 1,
      ArrowUp: at === undefined || at === 0 ? last : at - 1,
      Home: 0,
      End: last,
    }[event.key];
    if (next !== undefined) setAt(next);
    else if (event.key === 'Escape' && open) close();
    else if (event.key === 'Tab' && open) return setAt(undefined);
    else return;
    event.preventDefault();
  };
  const left = (event: FocusEvent): void => {
    const to = event.relatedTarget;
    if (open && (!(to instanceof Node) || !list.current?.parentElement?.contains(to))) setAt(undefined);
  };
  return (
    <div class="menu" onKeyDown={walk} onFocusOut={left}>
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
        <div ref={list} id={id} role="menu" aria-label={label} class="menu-list">
          {items.map((item) => (
            <button
              key={item.key}
              type="button"
              role="menuitem"
              tabIndex={-1}
              class={item.danger ? 'menu-item danger' : 'menu-item'}
              onClick={() => {
                close();
                item.onChoose();
              }}
            >
              <span class="menu-name">{item.text}</span>
              <span class="hint">{item.about}</span>
            </button>
          ))}
        </div>
      )}
    </div>
  );
}
