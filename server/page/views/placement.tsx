import { useState } from 'preact/hooks';

import type { Scope } from '../answers.ts';
import type { Placement } from '../calls.ts';
import { usePage, useSignedIn } from '../page.tsx';
import { optionsOf, ChoiceField, SelectField, TextField } from '../parts/field.tsx';

const scopes: readonly Scope[] = ['private', 'project', 'organization'];

/** Where a machine will belong, as chosen so far. */
export function usePlacement(label: string) {
  const { organisation } = useSignedIn();
  return useState<Placement>({
    label,
    scope: 'private',
    team: organisation.teams[0]?.id ?? '',
    project: null,
  });
}

/** Label, scope and team of a machine; the scope never changes afterwards (N-013), and the form says so. */
export function PlacementFields({
  placement,
  onPlacement,
}: {
  readonly placement: Placement;
  readonly onPlacement: (placement: Placement) => void;
}) {
  const { say } = usePage();
  const { organisation } = useSignedIn();
  const change = (part: Partial<Placement>): void => {
    const next = { ...placement, ...part };
    const ofTeam = organisation.projects.filter(({ team }) => team === next.team);
    const project = ofTeam.find(({ id }) => id === next.project) ?? ofTeam[0];
    onPlacement({ ...next, project: next.scope === 'project' ? (project?.id ?? null) : null });
  };
  return (
    <>
      <TextField
        label={say('pair.label')}
        hint={say('pair.label-hint')}
        value={placement.label}
        onValue={(label) => change({ label })}
        maxLength={64}
      />
      <ChoiceField
        label={say('pair.scope')}
        hint={say('pair.scope-hint')}
        value={placement.scope}
        onValue={(scope) => change({ scope })}
        options={scopes.map((scope) => ({
          value: scope,
          text: say(`scope.${scope}`),
          about: say(`scope.${scope}.about`),
        }))}
      />
      <div class="two">
        <SelectField
          label={say('place.team')}
          value={placement.team}
          onValue={(team) => change({ team })}
          options={optionsOf(organisation.teams)}
        />
        {placement.scope === 'project' && (
          <ProjectField placement={placement} onProject={(project) => change({ project })} />
        )}
      </div>
    </>
  );
}

function ProjectField({
  placement,
  onProject,
}: {
  readonly placement: Placement;
  readonly onProject: (project: string) => void;
}) {
  const { say } = usePage();
  const { organisation } = useSignedIn();
  const projects = organisation.projects.filter(({ team }) => team === placement.team);
  return (
    <SelectField
      label={say('place.project')}
      value={placement.project ?? ''}
      onValue={onProject}
      options={optionsOf(projects)}
    />
  );
}
