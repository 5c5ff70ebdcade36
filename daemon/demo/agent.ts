/*
 * An agent, scripted: an unmodified MCP client of the official SDK over streamable HTTP.
 */
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

/** A tool's answer: whether it succeeded and the text that a model would read. */
export interface ToolAnswer {
  readonly failed: boolean;
  readonly text: string;
}

/** One MCP session. */
export class Agent {
  readonly #client = new Client({ name: 'nessie-agent', version: '0.1.0' });
  readonly #transport: StreamableHTTPClientTransport;

  constructor(endpoint: string, token: string) {
    this.#transport = new StreamableHTTPClientTransport(new URL(endpoint), {
      requestInit: { headers: { authorization: `Bearer ${token}` } },
    });
  }

  /** Opens the session. Rejects when the control plane does not take the token. */
  async connect(): Promise<void> {
    await this.#client.connect(this.#transport);
  }

  /** Names of the tools that this agent has now. */
  async tools(): Promise<string[]> {
    const { tools } = await this.#client.listTools();
    return tools.map(({ name }) => name);
  }

  async call(name: string, input: Record<string, unknown>, signal?: AbortSignal): Promise<ToolAnswer> {
    const answer = await this.#client.callTool({ name, arguments: input }, undefined, signal ? { signal } : undefined);
    const parts = Array.isArray(answer.content) ? answer.content : [];
    const text = parts
      .map((part: { type: string; text?: string }) => (part.type === 'text' ? (part.text ?? '') : ''))
      .join('\n');
    return { failed: answer.isError === true, text };
  }

  /** Goes away and leaves the session, whose run ends by itself after half an hour of silence. */
  async disconnect(): Promise<void> {
    await this.#client.close();
  }

  /** Ends the session, and with it the run that it opened. */
  async close(): Promise<void> {
    await this.#transport.terminateSession();
    await this.#client.close();
  }
}
