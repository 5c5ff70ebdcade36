import type { ComponentChildren } from 'preact';
import { useId, useLayoutEffect, useRef } from 'preact/hooks';

import { usePage } from '../page.tsx';
import { Button } from './button.tsx';
import { Cross } from './icons.tsx';

/** A question over the page: the rest is inert, Escape closes it, and the focus goes back to where it came from. */
export function Dialog({
  title,
  onClose,
  wide = false,
  children,
}: {
  readonly title: string;
  readonly onClose: () => void;
  readonly wide?: boolean;
  readonly children: ComponentChildren;
}) {
  const { say } = usePage();
  const id = useId();
  const dialog = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => {
    const opener = document.activeElement;
    const shown = dialog.current;
    shown?.showModal();
    return () => {
      shown?.close();
      if (opener instanceof HTMLElement && opener.isConnected) opener.focus();
    };
  }, []);
  return (
    <dialog
      ref={dialog}
      class={wide ? 'dialog wide' : 'dialog'}
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
    >
      <div class="dialog-head">
        <h2 id={id}>{title}</h2>
        <Button kind="quiet" onPress={onClose} label={say('action.close')}>
          <Cross />
        </Button>
      </div>
      {children}
    </dialog>
  );
}

/** The row of buttons that ends a dialog; the way out stands first, so that it is reached first. */
export function DialogActions({ children }: { readonly children: ComponentChildren }) {
  return <div class="actions end">{children}</div>;
}
