import type { Named, PersonRow, Role } from '../answers.ts';
import { useDeed, usePage, useSignedIn } from '../page.tsx';
import { Button } from '../parts/button.tsx';
import { Dialog, DialogActions } from '../parts/dialog.tsx';
import { SelectField } from '../parts/field.tsx';
import { Refused } from '../parts/notice.tsx';

const NONE = 'none';

/** Teams and projects that one person belongs to, each changed at once. */
export function Memberships({
  row,
  onClose,
  onDone,
}: {
  readonly row: PersonRow;
  readonly onClose: () => void;
  readonly onDone: () => void;
}) {
  const { say, calls, announce } = usePage();
  const { organisation } = useSignedIn();
  const deed = useDeed();
  const change = async (work: () => Promise<unknown>): Promise<void> => {
    if (!(await deed.run(work))) return;
    announce(say('members.done', { name: row.name }));
    onDone();
  };
  return (
    <Dialog title={say('members.title', { name: row.name })} onClose={onClose}>
      {organisation.teams.map((team) => (
        <RoleIn
          key={team.id}
          group={team}
          kind={say('place.team')}
          role={row.teams.find((one) => one.team === team.id)?.role}
          onRole={(role) => void change(() => calls.setTeamMember(team.id, row.id, role))}
        />
      ))}
      {organisation.projects.map((project) => (
        <RoleIn
          key={project.id}
          group={project}
          kind={say('place.project')}
          role={row.projects.find((one) => one.project === project.id)?.role}
          onRole={(role) => void change(() => calls.setProjectMember(project.id, row.id, role))}
        />
      ))}
      <Refused refused={deed.refused} />
      <DialogActions>
        <Button onPress={onClose}>{say('action.close')}</Button>
      </DialogActions>
    </Dialog>
  );
}

function RoleIn({
  group,
  kind,
  role,
  onRole,
}: {
  readonly group: Named;
  readonly kind: string;
  readonly role: Role | undefined;
  readonly onRole: (role: 'admin' | 'member' | null) => void;
}) {
  const { say } = usePage();
  const options = [
    { value: NONE, text: say('members.none') },
    { value: 'member', text: say('role.member') },
    { value: 'admin', text: say('role.admin') },
    ...(role === 'owner' ? [{ value: 'owner', text: say('role.owner') }] : []),
  ];
  return (
    <SelectField
      label={`${kind}: ${group.name}`}
      value={role ?? NONE}
      onValue={(value) => {
        if (value !== 'owner') onRole(value === 'admin' || value === 'member' ? value : null);
      }}
      options={options}
    />
  );
}
