import * as z from 'zod';
import { personIdSchema, projectIdSchema, teamIdSchema } from '../../helpers/protocol/ids.ts';
import type { Context } from '../context.ts';
import { offboardPerson } from '../executors/offboard.ts';
import { DONE, doneSchema } from '../http.ts';
import type { App } from '../http.ts';
import { organisationSchema } from './answers.ts';
import { loginSchema, nameSchema } from './fields.ts';
import {
  createProject,
  createTeam,
  invitePerson,
  readOrganisation,
  renewInvitation,
  setProjectMember,
  setTeamMember,
} from './people.ts';
import { personOfRequest } from './sessions.ts';

const organisationRole = z.enum(['owner', 'admin', 'member']);

/** Routes of people: who there is, taking in, a new link, offboarding. */
export function peopleRoutes(app: App, context: Context): void {
  const params = z.strictObject({ person: personIdSchema });
  app.get('/api/page/organisation', { schema: { response: { 200: organisationSchema } } }, (request) =>
    readOrganisation(context.store.read, personOfRequest(request)),
  );
  app.post(
    '/api/page/people',
    {
      schema: {
        body: z.strictObject({
          login: loginSchema,
          name: nameSchema,
          role: organisationRole.default('member'),
          team: teamIdSchema,
        }),
        response: { 200: z.strictObject({ person: personIdSchema, address: z.string() }) },
      },
    },
    (request) => invitePerson(context, personOfRequest(request), request.body),
  );
  app.post(
    '/api/page/people/:person/link',
    { schema: { params, response: { 200: z.strictObject({ address: z.string() }) } } },
    (request) => renewInvitation(context, personOfRequest(request), request.params.person),
  );
  app.post(
    '/api/page/people/:person/offboard',
    { schema: { params, response: { 200: doneSchema } } },
    async (request) => {
      await offboardPerson(context, personOfRequest(request), request.params.person);
      return DONE;
    },
  );
}

/** Routes of teams and projects and who is in them. */
export function groupRoutes(app: App, context: Context): void {
  app.post(
    '/api/page/teams',
    {
      schema: { body: z.strictObject({ name: nameSchema }), response: { 200: z.strictObject({ team: teamIdSchema }) } },
    },
    async (request) => ({ team: await createTeam(context, personOfRequest(request), request.body.name) }),
  );
  app.post(
    '/api/page/projects',
    {
      schema: {
        body: z.strictObject({ team: teamIdSchema, name: nameSchema }),
        response: { 200: z.strictObject({ project: projectIdSchema }) },
      },
    },
    async (request) => ({
      project: await createProject(context, personOfRequest(request), request.body.team, request.body.name),
    }),
  );
  app.put(
    '/api/page/teams/:team/members/:person',
    {
      schema: {
        params: z.strictObject({ team: teamIdSchema, person: personIdSchema }),
        body: z.strictObject({ role: z.enum(['admin', 'member']).nullable() }),
        response: { 200: doneSchema },
      },
    },
    async (request) => {
      const { team, person } = request.params;
      await setTeamMember(context, personOfRequest(request), team, person, request.body.role);
      return DONE;
    },
  );
  projectMemberRoute(app, context);
}

function projectMemberRoute(app: App, context: Context): void {
  app.put(
    '/api/page/projects/:project/members/:person',
    {
      schema: {
        params: z.strictObject({ project: projectIdSchema, person: personIdSchema }),
        body: z.strictObject({ role: z.enum(['owner', 'admin', 'member']).nullable() }),
        response: { 200: doneSchema },
      },
    },
    async (request) => {
      const { project, person } = request.params;
      await setProjectMember(context, personOfRequest(request), project, person, request.body.role);
      return DONE;
    },
  );
}
