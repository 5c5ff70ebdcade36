import type { ExecutorSummary } from '../answers.ts';
import { usePage } from '../page.tsx';
import { standingOf, type Tone } from '../standing.ts';
import { Moment } from './facts.tsx';

/** A state by its word, with a sign of its own beside the colour. */
export function StateMark({ tone, text }: { readonly tone: Tone; readonly text: string }) {
  return <span class={`state ${tone}`}>{text}</span>;
}

/** What a machine is doing, in one word. */
export function MachineState({ executor }: { readonly executor: ExecutorSummary }) {
  const { say } = usePage();
  const { tone, word } = standingOf(executor);
  return <StateMark tone={tone} text={say(word)} />;
}

/** When a machine last proved that it is there. */
export function LastSeen({ at }: { readonly at: number | null }) {
  const { say } = usePage();
  if (at === null) return <>{say('machine.never-seen')}</>;
  return <>{say.parts('machine.seen', { when: <Moment at={at} /> })}</>;
}
