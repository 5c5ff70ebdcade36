import type { Tool } from '@modelcontextprotocol/sdk/types.js';
import * as z from 'zod';
import { findOperation, operations, toolName, workspaceBundle } from '../../helpers/protocol/operations.ts';
import type { Operation, OperationKey } from '../../helpers/protocol/operations.ts';

/** What ends or takes away something, in the draft alone. */
const destructive: ReadonlySet<OperationKey> = new Set(['file.write', 'file.delete', 'file.rename', 'sandbox.stop']);

const byName: ReadonlyMap<string, OperationKey> = new Map(workspaceBundle.map((key) => [toolName(key), key]));
const tools: ReadonlyMap<OperationKey, Tool> = new Map(
  operations.filter(({ caller }) => caller === 'agent').map((operation) => [operation.key, toolOf(operation)]),
);

function toolOf(operation: Operation): Tool {
  const { $schema: _, ...schema } = z.toJSONSchema(operation.arguments, { io: 'input' });
  return {
    name: toolName(operation.key),
    description: operation.description,
    // Arguments of every operation are a strict object, so its JSON Schema says `type: object`.
    inputSchema: schema as Tool['inputSchema'],
    annotations: {
      title: operation.key,
      readOnlyHint: !operation.writes && operation.key !== 'sandbox.stop',
      destructiveHint: destructive.has(operation.key),
      openWorldHint: false,
    },
  };
}

/** Tools for some keys, in the order of the list of operations; keys that no agent may call have none. */
export function toolsFor(keys: ReadonlySet<string>): Tool[] {
  return [...tools].filter(([key]) => keys.has(key)).map(([, tool]) => tool);
}

/** The operation behind a tool's name, or undefined. */
export function operationOfTool(name: string): Operation | undefined {
  const key = byName.get(name);
  return key && findOperation(key);
}
