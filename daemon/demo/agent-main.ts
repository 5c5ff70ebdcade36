/*
 * `npm run agent -- "…"`: a small scripted MCP client for those who have none. It says one line to one tool.
 */
import fs from 'node:fs';
import path from 'node:path';
import { Agent } from './agent.ts';

const SETTLED = path.resolve(import.meta.dirname, '..', '..', '.nessie', 'settled.json');

const usage = `npm run agent -- "WORDS"

  list [FOLDER]              list a folder
  read FILE                  read a file
  search TEXT                search file contents
  write FILE TEXT            write a file into the draft
  append FILE TEXT           append a line in the draft
  delete FILE                remove a file in the draft
  review                     list what the draft changes; a person promotes it on the page
  tools                      list the tools of this agent

A draft belongs to one session: words joined by ";" are one session, as in
  npm run agent -- "write hello.txt Hello; append notes.txt eggs; review"`;

/** Tool and arguments for one line of words; undefined where the words are none of the above. */
function callOf(line: string): { name: string; input: Record<string, unknown> } | undefined {
  const [verb = '', subject = '', ...rest] = line.trim().split(/\s+/);
  const text = rest.join(' ');
  switch (verb) {
    case 'list':
      return { name: 'file_list', input: { path: subject || '.' } };
    case 'read':
      return { name: 'file_read', input: { path: subject, maxBytes: 65_536 } };
    case 'search':
      return { name: 'file_search', input: { query: [subject, text].filter(Boolean).join(' ') } };
    case 'write':
      return {
        name: 'file_write',
        input: { path: subject, content: `${text}\n`, overwrite: true, createParents: true },
      };
    case 'append':
      return { name: 'file_append', input: { path: subject, content: `${text}\n` } };
    case 'delete':
      return { name: 'file_delete', input: { path: subject } };
    case 'review':
      return { name: 'workspace_review', input: {} };
    default:
      return undefined;
  }
}

/** What stands between the marks of an answer, for a person: the frame is there for models. */
function unframed(text: string): string {
  const framed = /<<<([0-9a-f]{32})\n([\s\S]*?)\n\1>>>/.exec(text)?.[2];
  if (framed === undefined) return text;
  // Inside the marks stands one JSON object, the result of the operation.
  const { content, ...rest } = JSON.parse(framed) as { content?: string };
  return content ?? JSON.stringify(rest, undefined, 2);
}

async function main(): Promise<number> {
  const words = process.argv.slice(2).join(' ').trim();
  if (words === '' || words === 'help') {
    console.log(usage);
    return 0;
  }
  if (!fs.existsSync(SETTLED)) throw new Error('Nothing is started here; say `npm start` in another terminal first.');
  // start.ts wrote this file.
  const { endpoint, token } = JSON.parse(fs.readFileSync(SETTLED, 'utf8')) as { endpoint: string; token: string };
  const agent = new Agent(endpoint, token);
  await agent.connect();
  let failed = false;
  for (const line of words.split(';')) {
    const call = callOf(line);
    if (line.trim() === 'tools') console.log((await agent.tools()).join('\n'));
    else if (call === undefined) throw new Error(`"${line.trim()}" is not understood.\n\n${usage}`);
    else {
      const answer = await agent.call(call.name, call.input);
      failed ||= answer.failed;
      console.log(unframed(answer.text));
    }
  }
  // A session that drafted something stays, so that its draft can be reviewed; any other ends here.
  if (/\b(write|append|delete|review)\b/.test(words)) await agent.disconnect();
  else await agent.close();
  return failed ? 1 : 0;
}

try {
  process.exitCode = await main();
} catch (error) {
  console.error(error instanceof Error ? error.message : 'It did not work.');
  process.exitCode = 1;
}
