/*
 * The whole story, step by step, with real processes: two people, one machine, one agent. A step that does not show what it
 * says fails the demo.
 */
import { execFile } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { isDaemonUp } from '../cli/owner-client.ts';
import { placesIn } from '../cli/places.ts';
import type { Places } from '../cli/places.ts';
import { writeSetUp } from '../cli/set-up.ts';
import { Agent } from './agent.ts';
import { freePort, startExecutor, startServer, stopChild, until } from './children.ts';
import type { RunningServer } from './children.ts';
import { Person } from './person.ts';
import { confirmDescriptor, giveAccess, pair } from './settle.ts';

const PASSWORD = 'correct horse battery staple';
const run = promisify(execFile);

/** One step: what it shows, in one sentence, and how. Returns a detail worth telling. */
export interface Step {
  readonly name: string;
  readonly says: string;
  act(): Promise<string>;
}

/** The people, programs and folders of one telling. */
export class Story {
  readonly #dist: string;
  readonly #folder: string;
  readonly #root: string;
  readonly #places: Places;
  #server: RunningServer | undefined;
  #executor: ChildProcess | undefined;
  #person: Person | undefined;
  #agent: Agent | undefined;
  #paired = '';
  #access: { agent: string; token: string; endpoint: string } | undefined;

  /** `dist` is an installation, `folder` an empty folder that the story may fill. */
  constructor(dist: string, folder: string) {
    this.#dist = dist;
    this.#folder = folder;
    this.#root = path.join(folder, 'project');
    this.#places = placesIn(path.join(folder, 'executor'));
  }

  /** The steps in their order. */
  get steps(): readonly Step[] {
    return [...this.#gettingThere, ...this.#atWork, ...this.#taking];
  }

  /** Ends whatever runs. */
  async end(): Promise<void> {
    if (this.#executor) await stopChild(this.#executor);
    if (this.#server) await stopChild(this.#server.process);
  }

  get #gettingThere(): readonly Step[] {
    return [
      {
        name: 'start',
        says: 'A control plane and one executor start; nothing listens on the machine.',
        act: () => this.#start(),
      },
      { name: 'set-up', says: 'A person opens the one-time address and becomes the owner.', act: () => this.#setUp() },
      {
        name: 'pair',
        says: 'The machine shows eight digits; a person on each side compares and confirms.',
        act: () => this.#pair(),
      },
      {
        name: 'review-machine',
        says: 'The person reads what the machine states and confirms it with the password.',
        act: () => this.#confirm(),
      },
      {
        name: 'give-access',
        says: 'The person makes an agent and switches its access to this machine on.',
        act: () => this.#give(),
      },
    ];
  }

  get #atWork(): readonly Step[] {
    return [
      {
        name: 'connect',
        says: 'An unmodified MCP client connects and sees the tools of this run.',
        act: () => this.#connect(),
      },
      { name: 'read', says: 'The agent lists, searches and reads the project.', act: () => this.#read() },
      {
        name: 'draft',
        says: 'The agent creates, changes and deletes files, and makes one executable: in a draft.',
        act: () => this.#draft(),
      },
      { name: 'untouched', says: "The person's files are what they were.", act: () => this.#untouched() },
      {
        name: 'refused',
        says: 'A path that leaves the project and a file that the owner ignores are refused.',
        act: () => this.#refused(),
      },
    ];
  }

  get #taking(): readonly Step[] {
    return [
      { name: 'review', says: 'The person reviews what the draft changes.', act: () => this.#review() },
      {
        name: 'promote',
        says: 'The person approves with the password; the machine applies it, all or nothing.',
        act: () => this.#promote(),
      },
      {
        name: 'audit',
        says: 'The kernel is asked whether every process may do what the table says, and no more.',
        act: () => this.#audit(),
      },
      {
        name: 'revoke',
        says: 'The person takes the access away in the middle of an operation; nothing goes on.',
        act: () => this.#revoke(),
      },
    ];
  }

  #reviewId = '';

  async #start(): Promise<string> {
    fs.mkdirSync(path.join(this.#root, 'src'), { recursive: true });
    fs.writeFileSync(path.join(this.#root, 'README.md'), '# Project\n\nA small project.\n');
    fs.writeFileSync(path.join(this.#root, 'src', 'main.txt'), 'one\ntwo\nthree\n');
    fs.writeFileSync(path.join(this.#root, 'src', 'old.txt'), 'to be removed\n');
    fs.writeFileSync(path.join(this.#root, '.env'), 'TOKEN=secret\n');
    this.#server = await startServer(this.#dist, path.join(this.#folder, 'server'), await freePort());
    writeSetUp({ places: this.#places, origin: this.#server.origin, root: this.#root });
    this.#executor = startExecutor(this.#dist, this.#places.stateDir, this.#folder);
    await until('the executor to answer', 20_000, () => isDaemonUp(this.#places.stateDir));
    return this.#server.origin;
  }

  async #setUp(): Promise<string> {
    const { origin, setup } = this.#started;
    assert.ok(setup, 'the control plane offers first-run setup');
    this.#person = new Person(origin);
    await this.#person.setUp(setup, {
      organisation: 'Example',
      team: 'Team',
      project: 'Project',
      login: 'owner',
      name: 'Owner',
      password: PASSWORD,
    });
    return 'signed in as owner';
  }

  async #pair(): Promise<string> {
    const { executor, compared } = await pair(this.#somebody, this.#places, 'demo-machine');
    this.#paired = executor;
    return `machine key ${compared.fingerprint.slice(0, 16)}…, command key ${compared.commandKeyFingerprint.slice(0, 16)}…`;
  }

  async #confirm(): Promise<string> {
    const { facts } = await confirmDescriptor(this.#somebody, this.#places, this.#paired, PASSWORD);
    return `${facts} facts confirmed`;
  }

  async #give(): Promise<string> {
    this.#access = await giveAccess(this.#somebody, this.#paired, 'Helper');
    return 'access on';
  }

  async #connect(): Promise<string> {
    if (!this.#access) throw new Error('no agent was made');
    this.#agent = new Agent(this.#access.endpoint, this.#access.token);
    await this.#agent.connect();
    const tools = await this.#agent.tools();
    assert.ok(tools.includes('file_read') && tools.includes('file_write'), 'file tools are offered');
    assert.ok(!tools.includes('workspace_promote'), 'promotion is offered to no agent');
    return `${tools.length} tools`;
  }

  async #read(): Promise<string> {
    assert.match(await this.#succeeds('file_list', {}), /README\.md/);
    assert.match(await this.#succeeds('file_read', { path: 'src/main.txt' }), /two/);
    assert.match(await this.#succeeds('file_search', { query: 'small' }), /README\.md/);
    return 'listed, read and searched';
  }

  async #draft(): Promise<string> {
    await this.#succeeds('file_write', { path: 'src/new.txt', content: 'made by an agent\n' });
    await this.#succeeds('file_write', { path: 'src/main.txt', content: 'one\n2\nthree\n', overwrite: true });
    await this.#succeeds('file_delete', { path: 'src/old.txt' });
    await this.#succeeds('file_write', { path: 'run.sh', content: '#!/bin/sh\necho run\n' });
    await this.#succeeds('file_chmod', { path: 'run.sh', executable: true });
    assert.match(await this.#succeeds('file_read', { path: 'src/main.txt' }), /2/);
    return '2 created, 1 changed, 1 deleted, 1 executable';
  }

  #untouched(): Promise<string> {
    assert.equal(fs.readFileSync(path.join(this.#root, 'src', 'main.txt'), 'utf8'), 'one\ntwo\nthree\n');
    assert.deepEqual(fs.readdirSync(path.join(this.#root, 'src')).toSorted(), ['main.txt', 'old.txt']);
    return Promise.resolve('not one byte differs');
  }

  async #refused(): Promise<string> {
    for (const outside of ['../outside.txt', '/etc/passwd', '.env']) {
      const answer = await this.#tool('file_read', { path: outside });
      assert.ok(answer.failed, `${outside} must be refused`);
      assert.ok(!answer.text.includes('secret'), 'an ignored file is not read');
    }
    return '3 of 3 refused';
  }

  async #review(): Promise<string> {
    await this.#succeeds('workspace_review', {});
    const { reviews } = await this.#somebody.get<{ reviews: { review: string; changeCount: number }[] }>(
      '/api/page/reviews',
    );
    const [newest] = reviews;
    assert.ok(newest, 'the review is there');
    assert.equal(newest.changeCount, 4);
    this.#reviewId = newest.review;
    return `${newest.changeCount} changes`;
  }

  async #promote(): Promise<string> {
    const person = this.#somebody;
    const { promotion } = await person.post<{ promotion: string }>(`/api/page/reviews/${this.#reviewId}/promotion`);
    await assert.rejects(person.post(`/api/page/promotions/${promotion}/approve`, { password: 'a wrong password' }));
    await person.post(`/api/page/promotions/${promotion}/approve`, { password: PASSWORD });
    const done = await until('the promotion to end', 30_000, async () => {
      const summary = await person.get<{ outcome: string | null; code: string | null }>(
        `/api/page/promotions/${promotion}`,
      );
      return summary.outcome === null ? undefined : summary;
    });
    assert.equal(done.outcome, 'promoted', done.code ?? '');
    assert.equal(fs.readFileSync(path.join(this.#root, 'src', 'main.txt'), 'utf8'), 'one\n2\nthree\n');
    assert.deepEqual(fs.readdirSync(path.join(this.#root, 'src')).toSorted(), ['main.txt', 'new.txt']);
    assert.equal(fs.statSync(path.join(this.#root, 'run.sh')).mode & 0o111, 0o111);
    assert.deepEqual(fs.readdirSync(this.#root).toSorted(), ['.env', 'README.md', 'run.sh', 'src']);
    return 'tree is the approved one, nothing of ours is left in it';
  }

  async #audit(): Promise<string> {
    const command = [path.join(this.#dist, 'cli.mjs'), '--in', path.join(this.#folder, 'executor'), 'audit', '--json'];
    // A difference ends the command with 1; what it printed says which.
    const { stdout } = await run(process.execPath, command, { maxBuffer: 16_777_216 }).catch(
      (error: { stdout: string }) => error,
    );
    // The form of `audit --json`.
    const { differences } = JSON.parse(stdout) as { differences: unknown[] };
    assert.deepEqual(differences, []);
    return 'no difference';
  }

  async #revoke(): Promise<string> {
    const started = performance.now();
    const running = this.#tool('file_search', { query: '(a|aa)+$', syntax: 'pattern' }).catch((error: unknown) => ({
      failed: true,
      text: String(error),
    }));
    await this.#somebody.put(`/api/page/executors/${this.#paired}/agents/${this.#access?.agent}`, { access: 'off' });
    await running;
    const after = await this.#tool('file_read', { path: 'README.md' }).catch((error: unknown) => ({
      failed: true,
      text: String(error),
    }));
    assert.ok(after.failed, 'no access is left');
    return `${Math.round(performance.now() - started)} ms from the press of the button`;
  }

  get #started(): RunningServer {
    if (!this.#server) throw new Error('the control plane was not started');
    return this.#server;
  }

  get #somebody(): Person {
    if (!this.#person) throw new Error('nobody is signed in');
    return this.#person;
  }

  #tool(name: string, input: Record<string, unknown>) {
    if (!this.#agent) throw new Error('no agent is connected');
    return this.#agent.call(name, input);
  }

  async #succeeds(name: string, input: Record<string, unknown>): Promise<string> {
    const answer = await this.#tool(name, input);
    assert.ok(!answer.failed, `${name} failed: ${answer.text}`);
    return answer.text;
  }
}
