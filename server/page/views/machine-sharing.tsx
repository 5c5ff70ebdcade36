import { useState } from 'preact/hooks';

import type { ExecutorDetail, Named, SharingAnswer } from '../answers.ts';
import { useAnswer, useDeed, usePage, useSignedIn } from '../page.tsx';
import { Button } from '../parts/button.tsx';
import { optionsOf, SelectField } from '../parts/field.tsx';
import { Answered, Notice, Refused } from '../parts/notice.tsx';

/** Who may use or administer a machine beside its scope (N-189). */
export function MachineSharing({ machine }: { readonly machine: ExecutorDetail }) {
  const { say, calls } = usePage();
  const asked = useAnswer(machine.executor, () => calls.sharing(machine.executor), ['executor']);
  const ask = asked.state === 'there' ? asked.ask : () => undefined;
  return (
    <div class="stack">
      <p>{say(`sharing.scope.${machine.scope}`)}</p>
      {!machine.administers && (
        <Notice tone="info">
          <p>{say('sharing.administrator')}</p>
        </Notice>
      )}
      <Answered asked={asked}>
        {(sharing) => (
          <>
            <People machine={machine} sharing={sharing} onDone={ask} />
            <Groups
              machine={machine}
              kind="project"
              shared={sharing.projects}
              rest={sharing.candidates.projects}
              onDone={ask}
            />
            <Groups machine={machine} kind="team" shared={sharing.teams} rest={sharing.candidates.teams} onDone={ask} />
          </>
        )}
      </Answered>
    </div>
  );
}

interface Part {
  readonly machine: ExecutorDetail;
  readonly onDone: () => void;
}

/** Does a change and says so. */
function useChange(onDone: () => void) {
  const { announce } = usePage();
  const deed = useDeed();
  const change = async (work: () => Promise<unknown>, sentence: string): Promise<void> => {
    if (!(await deed.run(work))) return;
    announce(sentence);
    onDone();
  };
  return { deed, change };
}

function People({ machine, sharing, onDone }: Part & { readonly sharing: SharingAnswer }) {
  const { say } = usePage();
  return (
    <section aria-labelledby="people">
      <h2 id="people">{say('sharing.people')}</h2>
      {sharing.people.length === 0 && <p class="hint">{say('sharing.people.none')}</p>}
      <ul class="rows">
        {sharing.people.map((share) => (
          <li key={share.person}>
            <PersonShare machine={machine} share={share} onDone={onDone} />
          </li>
        ))}
      </ul>
      {machine.administers && <AddPerson machine={machine} sharing={sharing} onDone={onDone} />}
    </section>
  );
}

function PersonShare({ machine, share, onDone }: Part & { readonly share: SharingAnswer['people'][number] }) {
  const { say, calls } = usePage();
  const { person: me } = useSignedIn();
  const { deed, change } = useChange(onDone);
  const { person, name, login, role } = share;
  const assign = (next: 'use' | 'admin'): void =>
    void change(() => calls.assign(machine.executor, person, next), say(`sharing.done.${next}`, { name }));
  const remove = (): void =>
    void change(() => calls.unassign(machine.executor, person), say('sharing.done.removed', { name }));
  return (
    <>
      <div class="row">
        <div>
          <p class="row-name">
            {name} {person === me.id && <span class="quiet-text">{say('sharing.you')}</span>}
          </p>
          <p class="hint">{login}</p>
        </div>
        {machine.administers ? (
          <div class="row-actions">
            <select
              class="input small"
              aria-label={say('sharing.role-of', { name })}
              value={role}
              onChange={(event) => assign(event.currentTarget.value === 'admin' ? 'admin' : 'use')}
            >
              <option value="use">{say('role.use')}</option>
              <option value="admin">{say('role.admin')}</option>
            </select>
            <Button kind="quiet" busy={deed.busy} label={say('sharing.remove-name', { name })} onPress={remove}>
              {say('action.remove')}
            </Button>
          </div>
        ) : (
          <span>{say(`role.${role}`)}</span>
        )}
      </div>
      <Refused refused={deed.refused} />
    </>
  );
}

function AddPerson({ machine, sharing, onDone }: Part & { readonly sharing: SharingAnswer }) {
  const { say, calls } = usePage();
  const { deed, change } = useChange(onDone);
  const [wanted, setWanted] = useState('');
  const [role, setRole] = useState<'use' | 'admin'>('use');
  const { people } = sharing.candidates;
  if (people.length === 0) return <p class="hint">{say('sharing.people.all')}</p>;
  const person = people.find((one) => one.person === wanted) ?? people[0];
  const add = (event: Event): void => {
    event.preventDefault();
    if (person === undefined) return;
    void change(
      () => calls.assign(machine.executor, person.person, role),
      say(`sharing.done.${role}`, { name: person.name }),
    );
  };
  return (
    <form class="inline-form" onSubmit={add}>
      <SelectField
        label={say('sharing.person')}
        value={person?.person ?? ''}
        onValue={setWanted}
        options={people.map(({ person: value, name, login }) => ({ value, text: `${name} (${login})` }))}
      />
      <SelectField
        label={say('sharing.role')}
        value={role}
        onValue={(value) => setRole(value === 'admin' ? 'admin' : 'use')}
        options={[
          { value: 'use', text: say('role.use') },
          { value: 'admin', text: say('role.admin') },
        ]}
      />
      <Button submit busy={deed.busy}>
        {say('action.add')}
      </Button>
      <Refused refused={deed.refused} />
    </form>
  );
}

type Group = Part & { readonly kind: 'project' | 'team' };

function Groups({
  machine,
  kind,
  shared,
  rest,
  onDone,
}: Group & { readonly shared: readonly Named[]; readonly rest: readonly Named[] }) {
  const { say, calls } = usePage();
  const { deed, change } = useChange(onDone);
  const remove = ({ id, name }: Named): void =>
    void change(() => calls.unshare(machine.executor, kind, id), say('sharing.done.removed', { name }));
  return (
    <section aria-labelledby={`${kind}s`}>
      <h2 id={`${kind}s`}>{say(`sharing.${kind}s`)}</h2>
      <p class="hint">{say(`sharing.${kind}s.text`)}</p>
      <ul class="rows">
        {shared.map((group) => (
          <li key={group.id}>
            <div class="row">
              <p class="row-name">{group.name}</p>
              {machine.administers && (
                <Button
                  kind="quiet"
                  busy={deed.busy}
                  label={say('sharing.remove-name', { name: group.name })}
                  onPress={() => remove(group)}
                >
                  {say('action.remove')}
                </Button>
              )}
            </div>
          </li>
        ))}
      </ul>
      <Refused refused={deed.refused} />
      {machine.administers && rest.length > 0 && <AddGroup machine={machine} kind={kind} rest={rest} onDone={onDone} />}
    </section>
  );
}

function AddGroup({ machine, kind, rest, onDone }: Group & { readonly rest: readonly Named[] }) {
  const { say, calls } = usePage();
  const { deed, change } = useChange(onDone);
  const [wanted, setWanted] = useState('');
  const group = rest.find(({ id }) => id === wanted) ?? rest[0];
  const add = (event: Event): void => {
    event.preventDefault();
    if (group === undefined) return;
    void change(() => calls.share(machine.executor, kind, group.id), say('sharing.done.shared', { name: group.name }));
  };
  return (
    <form class="inline-form" onSubmit={add}>
      <SelectField label={say(`place.${kind}`)} value={group?.id ?? ''} onValue={setWanted} options={optionsOf(rest)} />
      <Button submit busy={deed.busy}>
        {say('action.share')}
      </Button>
      <Refused refused={deed.refused} />
    </form>
  );
}
