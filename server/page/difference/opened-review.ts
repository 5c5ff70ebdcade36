import type { compare } from './lines.ts';
import type { ManifestChange } from './manifest.ts';
import type { SealedReader } from './sealed.ts';

/** What a view holds once the manifest was opened and found to be the reviewed one. */
export interface OpenedReview {
  readonly reader: SealedReader;
  readonly changes: readonly ManifestChange[];
  readonly compare: typeof compare;
}
