import { useState } from 'preact/hooks';

import type { ReviewDetail, ReviewedChange } from '../answers.ts';
import { SealBroken } from '../difference/broken.ts';
import type { OpenedReview } from '../difference/opened-review.ts';
import { refusalFrom, usePage } from '../page.tsx';
import { Button } from '../parts/button.tsx';
import { CopyBlock, Fingerprint } from '../parts/facts.tsx';
import { Notice, Refused } from '../parts/notice.tsx';
import type { CallRefused } from '../client.ts';
import { Broken } from './broken.tsx';
import { ChangeDifference } from './change-difference.tsx';

/** Changes of one page of the list. */
const PAGE = 100;

type Opening =
  | { readonly state: 'closed' }
  | { readonly state: 'opening'; readonly fingerprint: string | undefined }
  | { readonly state: 'open'; readonly opened: OpenedReview }
  | { readonly state: 'broken'; readonly broken: SealBroken }
  | { readonly state: 'refused'; readonly refused: CallRefused };

/** The list of changes, a hundred a page, and the way to see what each of them is. */
export function ReviewChanges({
  review,
  offset,
  onOffset,
}: {
  readonly review: ReviewDetail;
  readonly offset: number;
  readonly onOffset: (offset: number) => void;
}) {
  const { say, calls } = usePage();
  const [opening, setOpening] = useState<Opening>({ state: 'closed' });
  const open = async (): Promise<void> => {
    setOpening({ state: 'opening', fingerprint: undefined });
    try {
      const { createReader, readManifest, compare } = await import('../difference/opened.ts');
      const reader = await createReader((wanted) => calls.difference(review.review, wanted));
      setOpening({ state: 'opening', fingerprint: reader.fingerprint });
      const changes = readManifest(await reader.read({ of: 'manifest' }, review.manifestDigest));
      setOpening({ state: 'open', opened: { reader, changes, compare } });
    } catch (error) {
      if (error instanceof SealBroken) setOpening({ state: 'broken', broken: error });
      else setOpening({ state: 'refused', refused: refusalFrom(error) });
    }
  };
  return (
    <section aria-labelledby="changes">
      <h2 id="changes">{say('review.changes')}</h2>
      {review.difference === 'page' ? (
        <DifferenceIntroduction opening={opening} onOpen={() => void open()} />
      ) : (
        <Notice tone="info" title={say('difference.machine')}>
          <p>{say('difference.machine.text')}</p>
          <CopyBlock text={`nessie-executor review ${review.run}`} label={say('difference.command')} />
        </Notice>
      )}
      <p class="hint">{say('review.belongings')}</p>
      <ul class="rows changes" aria-labelledby="changes">
        {review.changes.map((change) => (
          <li key={`${change.path} ${change.kind}`}>
            <ChangeRow change={change} opened={opening.state === 'open' ? opening.opened : undefined} />
          </li>
        ))}
      </ul>
      <Pages review={review} offset={offset} onOffset={onOffset} />
    </section>
  );
}

function Pages({
  review,
  offset,
  onOffset,
}: {
  readonly review: ReviewDetail;
  readonly offset: number;
  readonly onOffset: (offset: number) => void;
}) {
  const { say } = usePage();
  if (review.changeCount <= PAGE) return null;
  const last = Math.min(offset + PAGE, review.changeCount);
  return (
    <div class="actions">
      <p role="status">{say('review.page', { first: offset + 1, last, all: review.changeCount })}</p>
      <Button disabled={offset === 0} onPress={() => onOffset(offset - PAGE)}>
        {say('review.previous')}
      </Button>
      <Button disabled={last === review.changeCount} onPress={() => onOffset(offset + PAGE)}>
        {say('review.next')}
      </Button>
    </div>
  );
}

function DifferenceIntroduction({ opening, onOpen }: { readonly opening: Opening; readonly onOpen: () => void }) {
  const { say } = usePage();
  const fingerprint =
    opening.state === 'open'
      ? opening.opened.reader.fingerprint
      : opening.state === 'opening'
        ? opening.fingerprint
        : undefined;
  return (
    <div class="panel sealed" aria-live="polite">
      {opening.state === 'broken' && <Broken broken={opening.broken} />}
      {opening.state === 'refused' && <Refused refused={opening.refused} />}
      {opening.state === 'open' && (
        <Notice tone="done" title={say('difference.open')}>
          <p>{say('difference.open.text')}</p>
        </Notice>
      )}
      <p>{say('difference.protects')}</p>
      <p>{say('difference.protects-not')}</p>
      {fingerprint !== undefined && (
        <>
          <h3>{say('difference.key')}</h3>
          <Fingerprint digits={fingerprint} label={say('difference.key')} />
        </>
      )}
      {opening.state !== 'open' && (
        <div class="actions">
          <Button kind="primary" busy={opening.state === 'opening'} onPress={onOpen}>
            {say(opening.state === 'opening' ? 'difference.opening' : 'difference.show')}
          </Button>
        </div>
      )}
    </div>
  );
}

function ChangeRow({ change, opened }: { readonly change: ReviewedChange; readonly opened: OpenedReview | undefined }) {
  const { say } = usePage();
  const [shown, setShown] = useState(false);
  const index = opened?.changes.findIndex(
    ({ path, kind, type }) => path === change.path && kind === change.kind && type === change.type,
  );
  return (
    <>
      <div class="row">
        <div class="change-name">
          <span class={`kind ${change.kind}`}>{say(`kind.${change.kind}`)}</span>
          <code class="path">{change.type === 'directory' ? `${change.path}/` : change.path}</code>
        </div>
        <div class="row-actions">
          {change.hostChanged && <span class="flag">{say('review.host-changed')}</span>}
          {change.lost !== undefined && (
            <span class="flag">{say('review.lost', { what: change.lost.join(', ') })}</span>
          )}
          {change.type === 'file' && <span class="hint">{say.count('bytes', change.byteCount)}</span>}
          {opened !== undefined && index !== -1 && (
            <Button
              kind="quiet"
              label={say(shown ? 'difference.hide-of' : 'difference.show-of', { path: change.path })}
              onPress={() => setShown(!shown)}
            >
              {say(shown ? 'difference.hide' : 'difference.show-one')}
            </Button>
          )}
        </div>
      </div>
      {index === -1 && (
        <Notice tone="error" title={say('difference.broken')} alert>
          <p>{say('difference.not-in-manifest')}</p>
        </Notice>
      )}
      {shown && opened !== undefined && index !== undefined && index >= 0 && (
        <ChangeDifference opened={opened} index={index} />
      )}
    </>
  );
}
