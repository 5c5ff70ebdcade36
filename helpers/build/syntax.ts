/** A node of @swc/core's tree, read without trusting its shape. */
export type Node = Readonly<Record<string, unknown>>;

/** Whether a part of the tree is an object at all. */
export const isNode = (value: unknown): value is Node => typeof value === 'object' && value !== null;

/** Every typed node below a part of the tree, itself included, in source order. */
export function* nodesOf(value: unknown): Generator<Node> {
  if (Array.isArray(value)) for (const item of value) yield* nodesOf(item);
  else if (isNode(value)) {
    if (typeof value['type'] === 'string') yield value;
    for (const item of Object.values(value)) if (isNode(item)) yield* nodesOf(item);
  }
}
