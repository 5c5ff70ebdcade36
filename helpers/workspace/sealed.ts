/* A manifest under its digest, and the last one that was sealed. */
import type { Manifest } from '../files/manifest.ts';
import type { OpenDraft } from './open-draft.ts';
import type { Rules } from './rules.ts';

/** A manifest with its canonical bytes and their digest. */
export interface Sealed {
  readonly manifest: Manifest;
  readonly bytes: Buffer;
  readonly digest: string;
}

/** The manifest that was sealed last: the pages of a review of 20,000 changes come one after the other, and each would seal it anew. */
export class LastSealed {
  #of:
    | { readonly draft: OpenDraft; readonly revision: number; readonly rules: Rules; readonly sealed: Sealed }
    | undefined;

  /** What `seal` answers for a draft and rules, or answered while both were as they are. */
  take(draft: OpenDraft, rules: Rules, seal: () => Sealed): Sealed {
    const last = this.#of;
    if (last?.draft === draft && last.revision === draft.revision && last.rules === rules) return last.sealed;
    const sealed = seal();
    this.#of = { draft, revision: draft.revision, rules, sealed };
    return sealed;
  }
}
