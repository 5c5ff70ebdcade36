/** What the server says changed: a kind of thing and its id, no content. */
export interface Change {
  readonly subject: 'executor' | 'run' | 'pairing' | 'agents';
  readonly id: string;
}
/** How far a long command is. */
export interface Progress {
  readonly run: string;
  readonly command: string;
  readonly operation: string;
  readonly done: number;
  readonly total: number;
  readonly phase: string;
}
/** One thing that the stream says; `again` means that changes may have been missed. */
export type Told =
  | { readonly type: 'changed'; readonly change: Change }
  | { readonly type: 'progress'; readonly progress: Progress }
  | { readonly type: 'again' }
  | { readonly type: 'lost' };

/** The live side of the page: server-sent events, opened once a session. */
export interface Changes {
  /** Hears what is told until the returned function is called. */
  listen(listener: (told: Told) => void): () => void;
  close(): void;
}

/** Opens the stream; the browser connects again by itself, and then everything on screen is asked for again. */
export function openChanges(): Changes {
  const listeners = new Set<(told: Told) => void>();
  const tell = (told: Told): void => {
    for (const listener of listeners) listener(told);
  };
  const stream = new EventSource('/api/page/events');
  // TRUST: both events come from the server that served this page, over its own connection.
  stream.addEventListener('changed', (event) => tell({ type: 'changed', change: JSON.parse(event.data) as Change }));
  stream.addEventListener('progress', (event) => {
    // As above.
    tell({ type: 'progress', progress: JSON.parse(event.data) as Progress });
  });
  stream.addEventListener('open', () => tell({ type: 'again' }));
  stream.addEventListener('error', () => tell({ type: 'lost' }));
  return {
    listen: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    close: () => stream.close(),
  };
}
