import type { SealBroken } from '../difference/broken.ts';
import { usePage } from '../page.tsx';
import { Notice } from '../parts/notice.tsx';

/** What was received is not what the review states: nothing of it is shown, and nothing should be promoted. */
export function Broken({ broken }: { readonly broken: SealBroken }) {
  const { say } = usePage();
  if (broken.fault === 'too-large') {
    return (
      <Notice tone="info" title={say('difference.too-large')}>
        <p>{say('difference.too-large.text')}</p>
      </Notice>
    );
  }
  return (
    <Notice tone="error" title={say('difference.broken')} alert>
      <p>{say(`difference.broken.${broken.fault}`)}</p>
      <p>{say('difference.broken.do')}</p>
    </Notice>
  );
}
