// The trace of an episode: one line of state, reward and flags per step. test/golden/make/envs_trace.py writes the same
// trace for the original environments.
import { createHash } from 'node:crypto';
import type { StepResult } from '../../../envs/api/environment';

/** A number formatted like a Python float. */
const pythonFloat = (value: number): string => (Number.isInteger(value) ? value.toFixed(1) : String(value));

export class Trace {
  private readonly lines: string[];

  constructor(state: string | number) {
    this.lines = [String(state)];
  }

  step(state: string | number, { reward, terminated, truncated }: StepResult): void {
    this.lines.push(`${state} ${pythonFloat(reward)} ${Number(terminated)}${Number(truncated)}`);
  }

  /** First ten hex digits of the sha256 of the trace. */
  get digest(): string {
    return createHash('sha256').update(this.lines.join('\n')).digest('hex').slice(0, 10);
  }
}

/**
 * Checks all rows in one test, because a separate test per seed takes longer than the checks themselves. An error names
 * the seed.
 */
export function checkSeeds<Row extends readonly [seed: number, ...rest: unknown[]]>(
  rows: readonly Row[],
  check: (...row: Row) => void,
): void {
  for (const row of rows)
    try {
      check(...row);
    } catch (error) {
      (error as Error).message = `seed ${row[0]}: ${(error as Error).message}`;
      throw error;
    }
}
