import type { Lanes } from '../channel/lanes.ts';
import type { Context } from '../context.ts';
import type { KeyRing } from '../payloads/key-ring.ts';
import type { Dispatcher } from './dispatcher.ts';
import type { Outcomes } from './outcomes.ts';

/** What channels, runs, commands, model clients and drafts work with beside the context of every subject. */
export interface Work extends Context {
  readonly keys: KeyRing;
  /** How long sealed arguments and results are kept, in ms. */
  readonly keptMs: number;
  readonly lanes: Lanes;
  readonly outcomes: Outcomes;
  readonly dispatcher: Dispatcher;
}
