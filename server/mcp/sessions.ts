import { aboutError } from '../about-error.ts';
import type { AgentIdentity } from '../accounts/agents.ts';
import type { Work } from '../commands/work.ts';
import { endRun } from '../runs/store.ts';
import { McpSession } from './session.ts';
import { endSession, findSession, makeSession } from './store.ts';

/** Sessions of this process; the store knows all of them, and a session that is not here is taken up again by its id. */
export class McpSessions {
  readonly #work: Work;
  readonly #sessions = new Map<string, Promise<McpSession>>();
  readonly #unlisten: () => void;

  constructor(work: Work) {
    this.#work = work;
    this.#unlisten = work.wake.listen((change) => {
      if (change.of === 'run' || change.of === 'executor') void this.#changed(change.of, change.id);
    });
  }

  /** Makes a session for a client that initializes. Throws what makeSession throws. */
  async make(identity: AgentIdentity, initialize: unknown): Promise<McpSession> {
    const id = this.#work.random(24).toString('base64url');
    await this.#prune();
    const { run } = await makeSession(this.#work, identity, id, initialize);
    const session = new McpSession(this.#work, identity, id, run);
    await session.start();
    this.#sessions.set(id, Promise.resolve(session));
    return session;
  }

  /** The session of an id, if it stands and is this identity's; taken up again after a restart, never by a second run. */
  async find(identity: AgentIdentity, id: string): Promise<McpSession | undefined> {
    const known = await this.#sessions.get(id);
    if (known?.isSilent) {
      await this.#drop(known);
      return undefined;
    }
    if (known) return isSame(known.identity, identity) ? known : undefined;
    if (id.length > 64) return undefined;
    const found = await findSession(this.#work, identity, id);
    if (!found) return undefined;
    const resumed = this.#sessions.get(id) ?? this.#resume(identity, id, found);
    this.#sessions.set(id, resumed);
    return resumed.catch((error: unknown) => {
      // What could not be taken up is not kept: the client's next request tries again.
      if (this.#sessions.get(id) === resumed) this.#sessions.delete(id);
      throw error;
    });
  }

  /** The client ended its session, and with it the run that it opened itself. */
  async end(session: McpSession): Promise<void> {
    this.#sessions.delete(session.id);
    await endSession(this.#work, session.id);
    if (session.run?.openedBy === 'agent') await endRun(this.#work, session.run.id, 'closed-by-client');
    await session.close();
  }

  /** Ends every session of this process; their clients take them up again. */
  async stop(): Promise<void> {
    this.#unlisten();
    await this.#forEach((session) => session.close());
    this.#sessions.clear();
  }

  /** Replays the client's own initialize, so that protocol and transport stand where they stood. */
  async #resume(
    identity: AgentIdentity,
    id: string,
    { session: row, run }: NonNullable<Awaited<ReturnType<typeof findSession>>>,
  ): Promise<McpSession> {
    const session = new McpSession(this.#work, identity, id, run);
    await session.start();
    const params: unknown = JSON.parse(row.initialize);
    for (const message of [
      { jsonrpc: '2.0', id: 'resume', method: 'initialize', params },
      { jsonrpc: '2.0', method: 'notifications/initialized' },
    ]) {
      const headers = {
        accept: 'application/json, text/event-stream',
        'content-type': 'application/json',
        'mcp-session-id': id,
      };
      const request = new Request('http://localhost/mcp', { method: 'POST', headers });
      const response = await session.transport.handleRequest(request, { parsedBody: message });
      await response.text();
    }
    return session;
  }

  async #changed(of: 'run' | 'executor', id: string): Promise<void> {
    await this.#forEach(async (session) => {
      if (of === 'executor') await session.stirred();
      else if (session.run?.id === id) await this.#runChanged(session);
    });
  }

  /** Sessions that nobody has used for half an hour hold memory and nothing else. */
  async #prune(): Promise<void> {
    await this.#forEach(async (session) => {
      if (session.isSilent) await this.#drop(session);
    });
  }

  /** Does something with every session, one after the other; what fails for one of them is logged and keeps nobody else waiting. */
  async #forEach(action: (session: McpSession) => Promise<void>): Promise<void> {
    for (const waiting of this.#sessions.values()) {
      // Whoever asked for a session that could not be taken up was told so.
      const session = await waiting.catch(() => undefined);
      if (!session) continue;
      await action(session).catch((error: unknown) =>
        this.#work.log.error(aboutError(error), 'a session could not follow a change'),
      );
    }
  }

  async #drop(session: McpSession): Promise<void> {
    this.#sessions.delete(session.id);
    await endSession(this.#work, session.id);
    await session.close();
  }

  /** A run that the agent opened itself and left silent takes its session with it; one that a person stopped leaves it to say so. */
  async #runChanged(session: McpSession): Promise<void> {
    const run = session.run;
    if (run?.openedBy !== 'agent') return;
    const row = await this.#work.store.read
      .selectFrom('runs')
      .select('endedBecause')
      .where('id', '=', run.id)
      .executeTakeFirst();
    if (row?.endedBecause === 'silent') await this.#drop(session);
  }
}

function isSame(one: AgentIdentity, other: AgentIdentity): boolean {
  return one.person === other.person && one.agent === other.agent && one.project === other.project;
}
