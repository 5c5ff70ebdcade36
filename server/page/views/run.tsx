import { useEffect, useState } from 'preact/hooks';

import type { CommandRow, RunDetail } from '../answers.ts';
import type { Progress } from '../changes.ts';
import { useAnswer, useDeed, usePage } from '../page.tsx';
import { Button } from '../parts/button.tsx';
import { Dialog, DialogActions } from '../parts/dialog.tsx';
import { Facts, Moment, Title } from '../parts/facts.tsx';
import { Answered, Empty, Notice, Refused } from '../parts/notice.tsx';
import { StateMark } from '../parts/standing.tsx';
import { addressOf, Link, useRouter } from '../router.tsx';
import type { Tone } from '../standing.ts';
import { ReviewRows } from './reviews.tsx';
import { RunState } from './run-list.tsx';

/** One run as it happens: every command with its state, never its content. */
export function Run({ run: id }: { readonly run: string }) {
  const { say, calls } = usePage();
  const asked = useAnswer(id, () => calls.run(id), ['run', 'executor']);
  const title =
    asked.state === 'there'
      ? say('run.name', { agent: asked.answer.agentName, machine: asked.answer.executorLabel ?? say('run.no-machine') })
      : say('run.title');
  return (
    <>
      <Title text={title} above={<Link to={addressOf('runs')}>{say('runs.title')}</Link>}>
        {asked.state === 'there' && (
          <div class="title-side">
            <RunState run={asked.answer} />
            <Actions run={asked.answer} onDone={asked.ask} />
          </div>
        )}
      </Title>
      <Answered asked={asked} lines={10}>
        {(run) => <Detail run={run} onDone={asked.state === 'there' ? asked.ask : () => undefined} />}
      </Answered>
    </>
  );
}

interface Part {
  readonly run: RunDetail;
  readonly onDone: () => void;
}

function Actions({ run, onDone }: Part) {
  const { say, calls, announce } = usePage();
  const { go } = useRouter();
  const [asking, setAsking] = useState(false);
  const stopping = useDeed();
  const reviewing = useDeed();
  const stop = async (): Promise<void> => {
    if (!(await stopping.run(() => calls.stopRun(run.run)))) return;
    setAsking(false);
    announce(say('run.stopped'));
    onDone();
  };
  const review = (): void =>
    void reviewing.run(async () => go(addressOf('review', { review: (await calls.makeReview(run.run)).review })));
  return (
    <>
      {run.executor !== null && (
        <Button busy={reviewing.busy} onPress={review}>
          {say('run.review')}
        </Button>
      )}
      {run.state === 'active' && (
        <Button kind="danger" onPress={() => setAsking(true)}>
          {say('run.stop')}
        </Button>
      )}
      <Refused refused={reviewing.refused} />
      {asking && (
        <Dialog title={say('run.stop.ask')} onClose={() => setAsking(false)}>
          <p>{say('run.stop.text')}</p>
          <Refused refused={stopping.refused} />
          <DialogActions>
            <Button onPress={() => setAsking(false)}>{say('action.keep')}</Button>
            <Button kind="danger" busy={stopping.busy} onPress={() => void stop()}>
              {say('run.stop')}
            </Button>
          </DialogActions>
        </Dialog>
      )}
    </>
  );
}

function Detail({ run, onDone }: Part) {
  const { say } = usePage();
  const missing = run.availability.filter(({ available }) => !available);
  const reasons = [...new Set(missing.map(({ reason }) => reason))].filter((reason) => reason !== null);
  const ended = run.endedBecause === null ? null : (say.find(`run.because.${run.endedBecause}`) ?? run.endedBecause);
  return (
    <div class="stack">
      <Facts
        facts={[
          { name: say('place.project'), value: run.projectName },
          { name: say('run.machine'), value: <MachineOf run={run} /> },
          { name: say('run.opened'), value: say(`run.opened.${run.openedBy}`) },
          { name: say('run.started'), value: <Moment at={run.startedAt} /> },
          ...(run.endedAt === null ? [] : [{ name: say('run.ended'), value: <Moment at={run.endedAt} /> }]),
          ...(ended === null ? [] : [{ name: say('run.because'), value: ended }]),
        ]}
      />
      {run.state === 'active' && run.commandCount === 0 && (
        <Notice tone="info">
          <p>{say('run.waits')}</p>
        </Notice>
      )}
      {run.state === 'active' && reasons.length > 0 && (
        <Notice tone="warning" title={say.count('run.unavailable', missing.length)}>
          <ul>
            {reasons.map((reason) => (
              <li key={reason}>{say.find(`reason.${reason}`) ?? reason}</li>
            ))}
          </ul>
        </Notice>
      )}
      {run.unknownCount > 0 && (
        <Notice tone="warning" title={say.count('run.unknown', run.unknownCount)}>
          <p>{say('run.unknown.text')}</p>
        </Notice>
      )}
      <section aria-labelledby="reviews">
        <h2 id="reviews">{say('reviews.title')}</h2>
        {run.reviews.length === 0 ? <p class="hint">{say('run.no-review')}</p> : <ReviewRows reviews={run.reviews} />}
      </section>
      <section aria-labelledby="commands">
        <h2 id="commands">{say('run.calls')}</h2>
        <Commands run={run} onDone={onDone} />
      </section>
    </div>
  );
}

function MachineOf({ run: { executor, executorLabel } }: { readonly run: RunDetail }) {
  const { say } = usePage();
  if (executor === null) return <>{say('run.no-machine')}</>;
  return <Link to={addressOf('machine', { executor })}>{executorLabel ?? executor}</Link>;
}

/** Progress of long commands as it is told, by command. */
function useProgress(run: string): ReadonlyMap<string, Progress> {
  const { changes } = usePage();
  const [progress, setProgress] = useState<ReadonlyMap<string, Progress>>(new Map());
  useEffect(
    () =>
      changes?.listen((told) => {
        if (told.type !== 'progress' || told.progress.run !== run) return;
        setProgress((before) => new Map(before).set(told.progress.command, told.progress));
      }),
    [changes, run],
  );
  return progress;
}

function Commands({ run, onDone }: Part) {
  const { say } = usePage();
  const progress = useProgress(run.run);
  if (run.commands.length === 0) return <Empty title={say('run.no-calls')}>{null}</Empty>;
  return (
    <ol class="rows" aria-labelledby="commands">
      {run.commands.map((command) => (
        <Command key={command.command} command={command} progress={progress.get(command.command)} onDone={onDone} />
      ))}
    </ol>
  );
}

const open: ReadonlySet<string> = new Set(['queued', 'leased', 'accepted', 'started', 'cancelling', 'replacing']);

function toneOf({ state, outcome }: CommandRow): Tone {
  if (open.has(state) || state === 'unknown') return 'waiting';
  if (outcome === 'succeeded' || state === 'succeeded') return 'good';
  return outcome === 'cancelled' || state === 'cancelled' ? 'quiet' : 'bad';
}

function Command({
  command,
  progress,
  onDone,
}: {
  readonly command: CommandRow;
  readonly progress: Progress | undefined;
  readonly onDone: () => void;
}) {
  const { say, calls } = usePage();
  const deed = useDeed();
  const isOpen = open.has(command.state);
  return (
    <li class="command">
      <code>{command.operation}</code>
      <div>
        <CommandState command={command} />
        {isOpen && progress !== undefined && progress.total > 0 && (
          <progress
            max={progress.total}
            value={progress.done}
            aria-label={say('command.progress', { operation: command.operation })}
          />
        )}
        <Refused refused={deed.refused} />
      </div>
      <span class="hint">
        <Moment at={command.endedAt ?? command.createdAt} />
      </span>
      {command.leasedAt !== null && !isOpen && <Receipts command={command} />}
      {isOpen && command.state !== 'cancelling' && (
        <Button
          kind="quiet"
          busy={deed.busy}
          label={say('command.cancel-of', { operation: command.operation })}
          onPress={() => void deed.run(() => calls.cancelCommand(command.command).then(onDone))}
        >
          {say('command.cancel')}
        </Button>
      )}
    </li>
  );
}

function CommandState({ command }: { readonly command: CommandRow }) {
  const { say } = usePage();
  const { state, code, gate } = command;
  return (
    <>
      <StateMark tone={toneOf(command)} text={say.find(`command.${state}`) ?? state} />
      {code !== null && (
        <span class="hint">
          {say.find(`code.${code}`) ?? say.find(`reason.${code}`)} <code class="quiet-code">{code}</code>{' '}
          {gate !== null && say('command.gate', { gate: say.find(`gate.${gate}`) ?? gate })}
        </span>
      )}
    </>
  );
}

/** The chain of receipts as a file, for `nessie-executor receipts verify`. */
function Receipts({ command: { command, operation } }: { readonly command: CommandRow }) {
  const { say } = usePage();
  return (
    <a
      class="button quiet"
      href={`/api/page/commands/${command}/receipts`}
      download={`receipts-${command}.json`}
      aria-label={say('command.receipts-of', { operation })}
    >
      {say('command.receipts')}
    </a>
  );
}
