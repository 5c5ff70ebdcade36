import * as z from 'zod';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { aboutError } from '../about-error.ts';
import { decode, encode } from '../../helpers/protocol/codec.ts';
import {
  pairingIdSchema,
  projectIdSchema,
  teamIdSchema,
  timeSchema,
  digestTextSchema,
  executorIdSchema,
} from '../../helpers/protocol/ids.ts';
import { addressSubject, limits, takeLimit } from '../accounts/limits.ts';
import { personOfRequest } from '../accounts/sessions.ts';
import type { Context } from '../context.ts';
import type { App } from '../http.ts';
import { pairingCalls } from '../protocol.ts';
import { Refusal } from '../refusal.ts';
import { cancelPairing, confirmPairing, fetchClaim, pollPairing, replacePairing } from './answer.ts';
import { shownPairingSchema } from './answers.ts';
import { enrol, startPairing } from './begin.ts';
import { claimPairing, lookUpCode } from './claim.ts';
import { confirmEnrolment, issueEnrolment } from './enrolment.ts';
import { cancelByPerson, showPairing } from './show.ts';

/** Largest body of a pairing call, in bytes. */
const CALL_LIMIT_BYTES = 131_072;
const MSGPACK = 'application/msgpack';

const destinationSchema = z.strictObject({
  label: z.string().trim().min(1).max(64),
  scope: z.enum(['private', 'project', 'organization']),
  team: teamIdSchema,
  project: projectIdSchema.nullable().default(null),
});
const pairingParams = z.strictObject({ pairing: pairingIdSchema });

type Call = keyof typeof pairingCalls;

/** The msgpack calls of machines below /api/pairing/ and the page's routes of the same subject. */
export function pairingRoutes(app: App, context: Context): void {
  void app.register((machine, _, done) => {
    machine.addContentTypeParser(
      MSGPACK,
      { parseAs: 'buffer', bodyLimit: CALL_LIMIT_BYTES },
      (_request, body, parsed) => {
        parsed(null, body);
      },
    );
    machine.setErrorHandler((error, _request, reply) => answerRefusal(context, error, reply));
    const call = <Name extends Call>(
      name: Name,
      answer: (body: z.infer<(typeof pairingCalls)[Name]['body']>, request: FastifyRequest) => Promise<unknown>,
    ): void => {
      machine.post(`/api/pairing/${name}`, { schema: { hide: true } }, async (request, reply) => {
        await takeLimit(context, limits.machineCallsOfAddress, address(request));
        return reply.type(MSGPACK).send(encode(await answer(readBody(name, request.body), request)));
      });
    };
    call('enrol', (body) => enrol(context, body));
    call('start', (body, request) => startPairing(context, address(request), body));
    call('poll', (body) => pollPairing(context, body));
    call('claim', (body) => fetchClaim(context, body));
    call('confirm', (body) => confirmPairing(context, body));
    call('cancel', (body) => cancelPairing(context, body));
    call('replace', (body) => replacePairing(context, body));
    done();
  });
  pageRoutes(app, context);
  enrolmentRoutes(app, context);
}

function address(request: FastifyRequest): string {
  return addressSubject(request.ip);
}

function readBody<Name extends Call>(name: Name, body: unknown): z.infer<(typeof pairingCalls)[Name]['body']> {
  try {
    if (!(body instanceof Uint8Array)) throw new TypeError('no bytes');
    // The schema of `name` decides the shape; the compiler cannot follow an indexed lookup through parse.
    return pairingCalls[name].body.parse(decode(body)) as z.infer<(typeof pairingCalls)[Name]['body']>;
  } catch {
    // Whatever it is, it is not this call of this version.
    throw new Refusal(
      'VERSION_UNSUPPORTED',
      'This is not the call that this control plane knows by that name: update the older of the two.',
      { status: 400 },
    );
  }
}

function answerRefusal(context: Context, error: unknown, reply: FastifyReply): FastifyReply {
  if (error instanceof Refusal) {
    return reply
      .status(error.status)
      .type(MSGPACK)
      .send(encode({ code: error.code, message: error.message }));
  }
  const status = error instanceof Error && 'statusCode' in error ? Number(error.statusCode) : 500;
  if (status >= 400 && status < 500) {
    return reply
      .status(status)
      .type(MSGPACK)
      .send(encode({ code: 'VERSION_UNSUPPORTED', message: 'This is no pairing call.' }));
  }
  context.log.error(aboutError(error), 'pairing call failed');
  return reply
    .status(503)
    .type(MSGPACK)
    .send(encode({ code: 'UNAVAILABLE', message: 'This cannot be done now; try again.' }));
}

function pageRoutes(app: App, context: Context): void {
  app.post(
    '/api/page/pairings/lookup',
    { schema: { body: z.strictObject({ code: z.string().regex(/^\d{8}$/) }), response: { 200: shownPairingSchema } } },
    (request) => lookUpCode(context, personOfRequest(request), request.ip, request.body.code),
  );
  app.get(
    '/api/page/pairings/:pairing',
    { schema: { params: pairingParams, response: { 200: shownPairingSchema } } },
    (request) => showPairing(context, personOfRequest(request), request.params.pairing),
  );
  app.post(
    '/api/page/pairings/:pairing/claim',
    {
      schema: {
        params: pairingParams,
        body: destinationSchema.extend({ fingerprint: digestTextSchema }),
        response: { 200: shownPairingSchema },
      },
    },
    (request) => claimPairing(context, personOfRequest(request), request.params.pairing, request.body),
  );
  app.post(
    '/api/page/pairings/:pairing/confirm',
    {
      schema: {
        params: pairingParams,
        body: z.strictObject({ fingerprint: digestTextSchema }),
        response: { 200: shownPairingSchema },
      },
    },
    (request) => confirmEnrolment(context, personOfRequest(request), request.params.pairing, request.body.fingerprint),
  );
  app.post(
    '/api/page/pairings/:pairing/cancel',
    { schema: { params: pairingParams, response: { 200: shownPairingSchema } } },
    (request) => cancelByPerson(context, personOfRequest(request), request.params.pairing),
  );
}

function enrolmentRoutes(app: App, context: Context): void {
  app.post(
    '/api/page/enrolments',
    {
      schema: {
        body: destinationSchema,
        response: {
          200: z.strictObject({
            pairing: pairingIdSchema,
            executor: executorIdSchema,
            requestId: z.string(),
            /** 32 bytes as base64url; shown once. */
            challenge: z.base64url().length(43),
            expiresAt: timeSchema,
          }),
        },
      },
    },
    (request) => issueEnrolment(context, personOfRequest(request), request.body),
  );
}
