// Estimates the CPU memory of a run before it starts, from the configurations of model and run. For each phase of the
// run, the rows of memory-rows.ts up to this phase are summed. Measured constants are in measured-memory.ts;
// test/unit/models/memory/memory-plan.runs.test.ts compares the plan with real processes, and planned-runs.test.ts
// compares the plan with complete runs. trainer/plan/run-plan.ts compares the plan with the available memory.
import type { PlanInput } from './plan-input';
import type { PlanRow, Phase } from './memory-rows';
import { MemoryRows, phases } from './memory-rows';

export interface MemoryPlan {
  rows: PlanRow[];
  /** Bytes in use at the end of each phase of the run. */
  phases: { phase: Phase; held: number }[];
  /** The phase with the most bytes in use, and the number of these bytes. */
  peak: { phase: Phase; bytes: number };
}

export function planMemory(input: PlanInput): MemoryPlan {
  return new Planner(input).plan(input);
}

/**
 * Returns the largest number of packed tokens per gradient pass (of the policy and of the critic) with which the plan
 * needs at most `limitBytes`. The result is a multiple of the maximum sequence length and at most 2²⁰. It is 0 if not
 * even one sequence fits.
 */
export function largestMicroBatchTokens(input: PlanInput, limitBytes: number): number {
  const planner = new Planner(input);
  const fits = (sequences: number): boolean => {
    const tokens = sequences * input.longest;
    return planner.plan({ updateTokens: tokens, criticTokens: tokens }).peak.bytes <= limitBytes;
  };
  const most = Math.max(1, Math.floor(mostTokens / input.longest));
  let [low, high] = [0, 1]; // `low` fits
  while (high <= most && fits(high)) [low, high] = [high, high * 2];
  high = Math.min(high, most + 1); // `high` does not fit or exceeds the maximum
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (fits(middle)) low = middle;
    else high = middle;
  }
  return low * input.longest;
}

/** Largest number of tokens per pass for which a plan is made. */
const mostTokens = 2 ** 20;

/** Plans one run for different pass sizes. */
class Planner {
  private readonly rows: MemoryRows;

  constructor(private readonly input: PlanInput) {
    this.rows = new MemoryRows(input);
  }

  plan(passes: Pick<PlanInput, 'updateTokens' | 'criticTokens'>): MemoryPlan {
    const rows = [
      ...this.rows.weightRows(),
      ...this.rows.rolloutRows(),
      ...(this.input.trains ? this.rows.trainingRows(passes) : []),
    ].filter(({ bytes }) => bytes > 0);
    const held = phases
      .filter(phase => rows.some(row => row.phase === phase))
      .map(phase => {
        const until = rows.filter(row => phases.indexOf(row.phase) <= phases.indexOf(phase));
        return { phase, held: until.reduce((sum, { bytes }) => sum + bytes, 0) };
      });
    const { phase, held: bytes } = held.at(-1)!;
    return { rows, phases: held, peak: { phase, bytes } };
  }
}
