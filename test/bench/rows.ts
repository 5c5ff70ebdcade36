/*
 * The rows of the budget table, in its order. A row is measured or says why it was not.
 */

/** One figure against its budget. */
export type Row =
  | {
      readonly value: number;
      readonly unit: string;
      readonly budget: number;
      readonly ok: boolean;
      readonly against?: Record<string, number>;
    }
  | { readonly value: null; readonly unit: string; readonly budget: number; readonly ok: null; readonly why: string };

/** Names, units and budgets; `at-least` rows want more, the others less. */
export const budgets = {
  roundtrip_p50_ms: { unit: 'ms', budget: 8 },
  roundtrip_p99_ms: { unit: 'ms', budget: 30 },
  roundtrip_vs_ssh: { unit: 'ratio', budget: 0.2 },
  pickup_p50_ms: { unit: 'ms', budget: 3 },
  revocation_p99_ms: { unit: 'ms', budget: 1000 },
  sustained_per_s: { unit: 'commands/s', budget: 200, atLeast: true },
  sustained_100_per_s: { unit: 'commands/s', budget: 500, atLeast: true },
  draft_first_write_ratio: { unit: 'ratio', budget: 1.2 },
  promote_vs_cp: { unit: 'ratio', budget: 2 },
  rest_pss_mib: { unit: 'MiB', budget: 120 },
  rest_cpu_pct: { unit: '% of a core', budget: 0.5 },
  status_cold_ms: { unit: 'ms', budget: 150 },
  gateway_vs_relay: { unit: 'ratio', budget: 0.6, atLeast: true },
  guest_cold_ms: { unit: 'ms', budget: 10_000 },
  guest_fork_p50_ms: { unit: 'ms', budget: 500 },
  guest_first_output_p50_ms: { unit: 'ms', budget: 2000 },
  guest_rest_mib: { unit: 'MiB', budget: 200 },
} as const satisfies Record<string, { unit: string; budget: number; atLeast?: true }>;
export type RowName = keyof typeof budgets;

/** A measured row. */
export function measured(name: RowName, value: number, against?: Record<string, number>): Row {
  const row: { unit: string; budget: number; atLeast?: true } = budgets[name];
  const rounded = Math.round(value * 1000) / 1000;
  const ok = row.atLeast ? rounded >= row.budget : rounded <= row.budget;
  return { value: rounded, unit: row.unit, budget: row.budget, ok, ...(against ? { against } : {}) };
}

/** A row that could not be measured. */
export function unmeasured(name: RowName, why: string): Row {
  const { unit, budget } = budgets[name];
  return { value: null, unit, budget, ok: null, why };
}

/** The value below which `share` of the sorted samples lie. */
export function quantile(samples: readonly number[], share: number): number {
  const sorted = samples.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}
