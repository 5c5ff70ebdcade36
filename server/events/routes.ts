/*
 * Server-sent events for the page: that something changed, never what. The page then asks for it through the routes that check who
 * may see it.
 */
import type { ServerResponse } from 'node:http';
import type { Change } from '../wake.ts';
import type { Context } from '../context.ts';
import type { App } from '../http.ts';
import { personOfRequest, sessionTimes } from '../accounts/sessions.ts';
import type { SignedIn } from '../accounts/sessions.ts';
import { requireDiscoverable } from '../executors/entitled.ts';
import { Refusal } from '../refusal.ts';
import type { Reader } from '../store/store.ts';
import { ProgressPace } from './pace.ts';
import type { PersonId, RunId } from '../../helpers/protocol/ids.ts';

/** A comment line that keeps proxies from closing a quiet stream, in ms. */
const QUIET_MS = 20_000;
/** Streams of one session; an older one ends when a page opens one more. */
const STREAM_LIMIT = 8;
/** Bytes that wait for a slow reader before its stream ends. */
const BACKLOG_LIMIT_BYTES = 65_536;

/** What the page hears of a change; `agents` is the person's own account and agents. */
const subjects = { executor: 'executor', run: 'run', pairing: 'pairing', account: 'agents' } as const;

/** GET /api/page/events: `event: changed` with `{subject, id}`, and `event: progress` with the progress of an own run's command. */
export function eventRoutes(app: App, context: Context): void {
  const streams = new Map<string, Set<ServerResponse>>();
  const listeners = new Set<(change: Change) => void>();
  const tellAll = (change: Change): void => {
    for (const listener of listeners) listener(change);
  };
  const pace = new ProgressPace((progress) => tellAll({ of: 'progress', id: progress.command, progress }));
  const ignore = context.wake.listen((change) => {
    if (listeners.size === 0) return;
    if (change.of === 'progress') pace.take(change.progress);
    else tellAll(change);
  });
  app.get('/api/page/events', { config: { stream: true }, schema: { hide: true } }, (request, reply) => {
    const by = personOfRequest(request);
    reply.hijack();
    const { raw } = reply;
    raw.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store', 'x-accel-buffering': 'no' });
    raw.write(': open\n\n');
    const own = streams.get(by.session) ?? new Set();
    streams.set(by.session, own.add(raw));
    if (own.size > STREAM_LIMIT) [...own][0]?.end();
    const listener = (change: Change): void => void tell(context, by, change, raw);
    listeners.add(listener);
    const quiet = setInterval(() => send(raw, ': quiet\n\n'), QUIET_MS);
    raw.on('close', () => {
      listeners.delete(listener);
      clearInterval(quiet);
      own.delete(raw);
      if (own.size === 0) streams.delete(by.session);
    });
  });
  app.addHook('preClose', (done) => {
    ignore();
    pace.stop();
    for (const own of streams.values()) for (const raw of own) raw.end();
    done();
  });
}

async function tell(context: Context, by: SignedIn, change: Change, raw: ServerResponse): Promise<void> {
  try {
    if (!(await stands(context, by))) return void raw.end();
    if (await concerns(context, by, change)) send(raw, eventText(change));
  } catch {
    // The store cannot say whether this may be told: the stream ends, and the page asks again.
    raw.end();
  }
}

async function ownsRun(reader: Reader, person: PersonId, id: RunId): Promise<boolean> {
  const run = await reader.selectFrom('runs').select('person').where('id', '=', id).executeTakeFirst();
  return run?.person === person;
}

function eventText(change: Change): string {
  if (change.of === 'progress') return `event: progress\ndata: ${JSON.stringify(change.progress)}\n\n`;
  return `event: changed\ndata: ${JSON.stringify({ subject: subjects[change.of], id: change.id })}\n\n`;
}

/** A session that ended hears nothing more. */
async function stands({ store, clock }: Context, { session }: SignedIn): Promise<boolean> {
  const row = await store.read
    .selectFrom('sessions')
    .select('id')
    .where('id', '=', session)
    .where('createdAt', '>', clock.now() - sessionTimes.absoluteMs)
    .executeTakeFirst();
  return row !== undefined;
}

/** Whether a person may know that this changed. */
async function concerns({ store }: Context, { person }: SignedIn, change: Change): Promise<boolean> {
  switch (change.of) {
    case 'account':
      return change.id === person;
    case 'pairing':
      return change.person === person;
    case 'run':
      return ownsRun(store.read, person, change.id);
    case 'progress':
      return ownsRun(store.read, person, change.progress.run);
    case 'executor':
      return requireDiscoverable(store.read, person, change.id).then(
        () => true,
        (error: unknown) => {
          if (error instanceof Refusal) return false;
          throw error;
        },
      );
  }
}

function send(raw: ServerResponse, text: string): void {
  if (raw.writableLength > BACKLOG_LIMIT_BYTES) raw.end();
  else if (!raw.writableEnded) raw.write(text);
}
