import { useState } from 'preact/hooks';

import type { AgentRow, IssuedToken } from '../answers.ts';
import { useDeed, usePage, useSignedIn } from '../page.tsx';
import { Button } from '../parts/button.tsx';
import { Dialog, DialogActions } from '../parts/dialog.tsx';
import { CopyBlock, Moment } from '../parts/facts.tsx';
import { CheckField, optionsOf, SelectField } from '../parts/field.tsx';
import { Notice, Refused } from '../parts/notice.tsx';

interface Part {
  readonly agent: AgentRow;
  readonly onDone: () => void;
}

/** Tokens of an agent: those that stand, a new one shown once with the settings of its client, and issuing one. */
export function AgentTokens({ agent, onDone }: Part) {
  const { say } = usePage();
  const [issued, setIssued] = useState<IssuedToken>();
  return (
    <section aria-labelledby="tokens">
      <h2 id="tokens">{say('agent.tokens')}</h2>
      <p>{say('agent.tokens.text')}</p>
      {issued !== undefined && <Issued issued={issued} />}
      <Tokens agent={agent} onDone={onDone} />
      <IssueForm
        agent={agent}
        onIssued={(token) => {
          setIssued(token);
          onDone();
        }}
      />
    </section>
  );
}

function Issued({ issued }: { readonly issued: IssuedToken }) {
  const { say } = usePage();
  const settings = JSON.stringify(
    {
      mcpServers: {
        nessie: {
          type: 'http',
          url: issued.endpoint,
          headers: { Authorization: `Bearer ${issued.token}` },
        },
      },
    },
    null,
    2,
  );
  return (
    <div class="panel" role="status">
      <Notice tone="done" title={say('token.issued')}>
        <p>{say('token.once')}</p>
      </Notice>
      <h3>{say('token.token')}</h3>
      <CopyBlock text={issued.token} label={say('token.token')} />
      <h3>{say('token.settings')}</h3>
      <CopyBlock text={settings} label={say('token.settings')} />
    </div>
  );
}

function Tokens({ agent, onDone }: Part) {
  const { say, calls, announce } = usePage();
  const deed = useDeed();
  const [ending, setEnding] = useState<string>();
  const end = async (token: string): Promise<void> => {
    if (!(await deed.run(() => calls.endToken(agent.id, token)))) return;
    setEnding(undefined);
    announce(say('token.ended'));
    onDone();
  };
  if (agent.tokens.length === 0) return <p class="hint">{say('token.none')}</p>;
  return (
    <>
      <ul class="rows" aria-label={say('agent.tokens')}>
        {agent.tokens.map((token) => (
          <li key={token.id}>
            <div class="row">
              <div>
                <p class="row-name">{token.projectName}</p>
                <p class="hint">
                  {say(token.mayOpenRuns ? 'token.opens' : 'token.waits')} · <Moment at={token.createdAt} />
                </p>
              </div>
              <Button
                kind="quiet"
                label={say('token.end-of', { project: token.projectName })}
                onPress={() => setEnding(token.id)}
              >
                {say('token.end')}
              </Button>
            </div>
          </li>
        ))}
      </ul>
      {ending !== undefined && (
        <Dialog title={say('token.end.ask')} onClose={() => setEnding(undefined)}>
          <p>{say('token.end.text')}</p>
          <Refused refused={deed.refused} />
          <DialogActions>
            <Button onPress={() => setEnding(undefined)}>{say('action.keep')}</Button>
            <Button kind="danger" busy={deed.busy} onPress={() => void end(ending)}>
              {say('token.end')}
            </Button>
          </DialogActions>
        </Dialog>
      )}
    </>
  );
}

function IssueForm({ agent, onIssued }: { readonly agent: AgentRow; readonly onIssued: (token: IssuedToken) => void }) {
  const { say, calls, announce } = usePage();
  const { organisation } = useSignedIn();
  const [project, setProject] = useState(organisation.projects[0]?.id ?? '');
  const [mayOpenRuns, setMayOpenRuns] = useState(true);
  const deed = useDeed();
  const submit = (event: Event): void => {
    event.preventDefault();
    void deed.run(async () => {
      onIssued(await calls.issueToken(agent.id, { project, mayOpenRuns }));
      announce(say('token.issued'));
    });
  };
  if (organisation.projects.length === 0) {
    return (
      <Notice tone="info">
        <p>{say('project.none')}</p>
      </Notice>
    );
  }
  return (
    <form class="panel" onSubmit={submit}>
      <h3>{say('token.issue')}</h3>
      <SelectField
        label={say('place.project')}
        hint={say('token.project-hint')}
        value={project}
        onValue={setProject}
        options={optionsOf(organisation.projects)}
      />
      <CheckField
        label={say('token.may-open')}
        hint={say('token.may-open-hint')}
        checked={mayOpenRuns}
        onChecked={setMayOpenRuns}
      />
      <Refused refused={deed.refused} />
      <div class="actions">
        <Button submit kind="primary" busy={deed.busy}>
          {say('token.issue')}
        </Button>
      </div>
    </form>
  );
}
