import { useState } from 'preact/hooks';

import { useDeed, usePage, useSignedIn } from '../page.tsx';
import { Button } from '../parts/button.tsx';
import { optionsOf, SelectField, TextField } from '../parts/field.tsx';
import { Refused } from '../parts/notice.tsx';

/** Team of a project to make; empty makes a team instead. */
const NEW_TEAM = '';

/** Makes a project in a team, or a team. */
export function MakeProject({ onDone }: { readonly onDone: () => void }) {
  const { say, calls, announce, renew } = usePage();
  const { organisation } = useSignedIn();
  const [name, setName] = useState('');
  const [team, setTeam] = useState<string>(organisation.teams[0]?.id ?? NEW_TEAM);
  const deed = useDeed();
  const make = (): Promise<unknown> => (team === NEW_TEAM ? calls.makeTeam(name) : calls.makeProject(team, name));
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    if (!(await deed.run(() => make().then(renew)))) return;
    announce(say('groups.made', { name }));
    setName('');
    onDone();
  };
  return (
    <form class="panel" onSubmit={(event) => void submit(event)}>
      <h2>{say('groups.make')}</h2>
      <SelectField
        label={say('groups.where')}
        value={team}
        onValue={setTeam}
        options={[...optionsOf(organisation.teams), { value: NEW_TEAM, text: say('groups.new-team') }]}
      />
      <TextField label={say('groups.name')} value={name} onValue={setName} maxLength={64} />
      <Refused refused={deed.refused} />
      <div class="actions">
        <Button submit busy={deed.busy}>
          {say('groups.do')}
        </Button>
      </div>
    </form>
  );
}
