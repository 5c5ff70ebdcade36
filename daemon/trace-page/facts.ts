/*
 * What a trace page is given, as JSON in the page. Every text of the trace has passed `visible`, so that what a browser would obey or
 * hide is written out; the page itself puts text into text alone and never into markup.
 */
import type { TraceLine } from '../../machines/trace/format.ts';
import type { Way } from '../../machines/trace/ways.ts';

/** A line without its place, its actor and its payload; lines that are equal but for those share one. */
export type Kind = Pick<TraceLine, 'machine' | 'version' | 'before' | 'after' | 'actions'> & {
  readonly type: string;
  readonly ways: readonly Way[];
};

/** One actor from its first line to its last; `lane` is its own between the two. */
export type ActorFacts = {
  readonly name: string;
  readonly machine: string;
  readonly lane: number;
  readonly first: number;
  readonly last: number;
};

/** What a state says of itself. */
export type StateFacts = { readonly name: string; readonly holds: string; readonly permits: readonly string[] };

/** A machine of this program that the trace names. */
export type MachineFacts = { readonly id: string; readonly subject: string; readonly states: readonly StateFacts[] };

/** One line: places of its actor and its kind in their lists, and its payload. */
export type LineFacts = readonly [actor: number, kind: number, payload: TraceLine['event']['payload']];

/** Everything that a page shows. */
export type Facts = {
  readonly machines: readonly MachineFacts[];
  readonly actors: readonly ActorFacts[];
  readonly kinds: readonly Kind[];
  readonly lines: readonly LineFacts[];
  /** Number of lanes that are needed at once. */
  readonly lanes: number;
  /** Where the machines of this program do otherwise, by the line that says so; `line` counts from 1. */
  readonly differences: readonly { readonly line: number; readonly why: string }[];
};

/** Parts of the page as the build writes them beside the programs; no diagram holds a style, which `style` has once for all. */
export type PageParts = {
  readonly markup: string;
  readonly style: string;
  readonly script: string;
  readonly diagrams: { readonly [machine: string]: string };
};
