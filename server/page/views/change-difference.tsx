import { useEffect, useState } from 'preact/hooks';

import { SealBroken, SIDE_LIMIT_BYTES } from '../difference/broken.ts';
import type { Compared, Line } from '../difference/lines.ts';
import type { ManifestChange } from '../difference/manifest.ts';
import type { OpenedReview } from '../difference/opened-review.ts';
import { piecesOf } from '../difference/pieces.ts';
import type { CallRefused } from '../client.ts';
import { refusalFrom, usePage } from '../page.tsx';
import { Button } from '../parts/button.tsx';
import { Notice, Refused } from '../parts/notice.tsx';
import { Broken } from './broken.tsx';

/** Lines drawn before the person asks for the rest. */
const LINES_AT_FIRST = 400;

type Reading =
  | { readonly state: 'reading' }
  | { readonly state: 'read'; readonly compared: Compared }
  | { readonly state: 'broken'; readonly broken: SealBroken }
  | { readonly state: 'refused'; readonly refused: CallRefused };

async function readSides({ reader, compare }: OpenedReview, change: ManifestChange, index: number): Promise<Compared> {
  const side = async (of: 'before' | 'after'): Promise<Uint8Array | undefined> => {
    const stated = change[of];
    if (stated?.sha256 === undefined) return undefined;
    if ((stated.bytes ?? 0) > SIDE_LIMIT_BYTES) throw new SealBroken('too-large');
    return reader.read({ of, change: index }, stated.sha256);
  };
  return compare(await side('before'), await side('after'));
}

/** One change, opened and hashed on both sides, line by line. */
export function ChangeDifference({ opened, index }: { readonly opened: OpenedReview; readonly index: number }) {
  const { say } = usePage();
  const change = opened.changes[index];
  const [reading, setReading] = useState<Reading>({ state: 'reading' });
  const sameContent = change?.before?.sha256 === change?.after?.sha256;
  useEffect(() => {
    if (change === undefined || change.type === 'directory' || sameContent) return;
    readSides(opened, change, index).then(
      (compared) => setReading({ state: 'read', compared }),
      (error: unknown) =>
        setReading(
          error instanceof SealBroken
            ? { state: 'broken', broken: error }
            : { state: 'refused', refused: refusalFrom(error) },
        ),
    );
  }, [opened, change, index, sameContent]);
  if (change === undefined) return null;
  return (
    <div class="difference">
      <Modes change={change} />
      {change.type === 'file' && sameContent && <p class="hint">{say('difference.same')}</p>}
      {change.type === 'file' && !sameContent && <Read reading={reading} path={change.path} />}
    </div>
  );
}

function Modes({ change: { before, after, type } }: { readonly change: ManifestChange }) {
  const { say } = usePage();
  if (before !== null && after !== null && before.mode !== after.mode) {
    return <p>{say('difference.mode', { before: before.mode, after: after.mode })}</p>;
  }
  if (after !== null && before === null) {
    const runs = type === 'file' && /[1357]/.test(after.mode);
    return <p class="hint">{say(runs ? 'difference.mode-runs' : 'difference.mode-new', { mode: after.mode })}</p>;
  }
  return null;
}

function Read({ reading, path }: { readonly reading: Reading; readonly path: string }) {
  const { say } = usePage();
  switch (reading.state) {
    case 'reading':
      return <p role="status">{say('difference.reading')}</p>;
    case 'broken':
      return <Broken broken={reading.broken} />;
    case 'refused':
      return <Refused refused={reading.refused} />;
    case 'read':
      return <Shown compared={reading.compared} path={path} />;
  }
}

function Shown({ compared, path }: { readonly compared: Compared; readonly path: string }) {
  const { say } = usePage();
  const [all, setAll] = useState(false);
  if (compared.shown === 'nothing') return <p>{say(`difference.${compared.reason}`)}</p>;
  if (compared.hunks.length === 0) return <p class="hint">{say('difference.empty')}</p>;
  const lines = compared.hunks.flatMap((hunk, index): readonly (Line | undefined)[] =>
    index === 0 ? hunk : [undefined, ...hunk],
  );
  const hides = lines.some((line) => line !== undefined && piecesOf(line.text).some((piece) => piece.hidden));
  const drawn = all ? lines : lines.slice(0, LINES_AT_FIRST);
  return (
    <>
      {hides && (
        <Notice tone="warning">
          <p>{say('difference.unseen')}</p>
        </Notice>
      )}
      <div class="table-wrap" tabIndex={0} role="group" aria-label={say('difference.of', { path })}>
        <table class="lines">
          <caption class="only-heard">{say('difference.of', { path })}</caption>
          <thead class="only-heard">
            <tr>
              <th scope="col">{say('difference.before')}</th>
              <th scope="col">{say('difference.after')}</th>
              <th scope="col">{say('difference.line')}</th>
            </tr>
          </thead>
          <tbody>
            {drawn.map((line, index) => (line === undefined ? <Gap key={index} /> : <Row key={index} line={line} />))}
          </tbody>
        </table>
      </div>
      {drawn.length < lines.length && (
        <Button onPress={() => setAll(true)}>{say.count('difference.rest', lines.length - drawn.length)}</Button>
      )}
      <p class="hint">
        <Mark /> {say('difference.checked')}
      </p>
    </>
  );
}

const Mark = () => <span class="state good dot" aria-hidden="true" />;

function Gap() {
  return (
    <tr class="gap">
      <td colSpan={3}>⋯</td>
    </tr>
  );
}

const classes = { '+': 'added', '-': 'removed', ' ': undefined } as const;

function Row({ line }: { readonly line: Line }) {
  const { say } = usePage();
  return (
    <tr class={classes[line.mark]}>
      <td class="number">{line.before}</td>
      <td class="number">{line.after}</td>
      <td class="line">
        <span class="mark">{line.mark}</span>
        {piecesOf(line.text).map((piece, index) =>
          piece.hidden ? (
            <span key={index} class="unseen">
              {piece.text}
            </span>
          ) : (
            piece.text
          ),
        )}
        {line.open && <span class="unseen">{say('difference.no-break')}</span>}
      </td>
    </tr>
  );
}
