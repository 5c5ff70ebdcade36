import { useState } from 'preact/hooks';

import type { AgentRow, IssuedToken } from '../answers.ts';
import { useAnswer, useDeed, usePage, useSignedIn } from '../page.tsx';
import { Button } from '../parts/button.tsx';
import { Dialog, DialogActions } from '../parts/dialog.tsx';
import { CopyBlock, Moment, Title } from '../parts/facts.tsx';
import { optionsOf, CheckField, SelectField } from '../parts/field.tsx';
import { Answered, Notice, Refused } from '../parts/notice.tsx';
import { addressOf, Link, useRouter } from '../router.tsx';

/** One agent: its tokens, the settings for an MCP client, and what to do next. */
export function Agent({ agent: id }: { readonly agent: string }) {
  const { say, calls } = usePage();
  const asked = useAnswer('agents', calls.agents, ['agents']);
  const found = asked.state === 'there' ? asked.answer.agents.find((agent) => agent.id === id) : undefined;
  return (
    <>
      <Title
        text={found?.name ?? say('agent.title')}
        above={<Link to={addressOf('agents')}>{say('agents.title')}</Link>}
      />
      <Answered asked={asked}>
        {() =>
          found === undefined ? (
            <Notice tone="info">
              <p>{say('agent.absent')}</p>
            </Notice>
          ) : (
            <Known agent={found} onDone={asked.state === 'there' ? asked.ask : () => undefined} />
          )
        }
      </Answered>
    </>
  );
}

interface Part {
  readonly agent: AgentRow;
  readonly onDone: () => void;
}

function Known({ agent, onDone }: Part) {
  const { say } = usePage();
  const [issued, setIssued] = useState<IssuedToken>();
  return (
    <div class="stack">
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
      <section aria-labelledby="tools">
        <h2 id="tools">{say('agent.tools')}</h2>
        <p>{say('agent.tools.text')}</p>
        <p class="operations">
          {agent.tools.map((tool) => (
            <code key={tool}>{tool}</code>
          ))}
        </p>
      </section>
      <section aria-labelledby="next">
        <h2 id="next">{say('agent.next')}</h2>
        <p>
          {say.parts('agent.next.text', { machines: <Link to={addressOf('machines')}>{say('machines.title')}</Link> })}
        </p>
      </section>
      <EndAgent agent={agent} />
    </div>
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

function EndAgent({ agent: { id, name } }: { readonly agent: AgentRow }) {
  const { say, calls, announce } = usePage();
  const { go } = useRouter();
  const [asking, setAsking] = useState(false);
  const deed = useDeed();
  const end = async (): Promise<void> => {
    if (!(await deed.run(() => calls.endAgent(id)))) return;
    announce(say('agent.ended', { name }));
    go(addressOf('agents'));
  };
  return (
    <div class="actions">
      <Button kind="danger" onPress={() => setAsking(true)}>
        {say('agent.end')}
      </Button>
      {asking && (
        <Dialog title={say('agent.end.ask', { name })} onClose={() => setAsking(false)}>
          <p>{say('agent.end.text')}</p>
          <Refused refused={deed.refused} />
          <DialogActions>
            <Button onPress={() => setAsking(false)}>{say('action.keep')}</Button>
            <Button kind="danger" busy={deed.busy} onPress={() => void end()}>
              {say('agent.end')}
            </Button>
          </DialogActions>
        </Dialog>
      )}
    </div>
  );
}
