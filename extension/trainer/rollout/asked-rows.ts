// Rows to generate whose calls set limits of their own. The sampling options belong to a call of the generator, so rows
// with equal limits are generated in one call. Calls overlap, and a row's tokens do not depend on its batch.
import type { GeneratedRow, GenerationRow, SamplingOptions } from '../../engine/generation-calls';
import type { CallLimits } from './call-context';
import type { TextGenerator } from './rollout-request';

/** A row to generate, and the limits that the program's call sets; undefined without a program. */
export interface AskedRow {
  row: GenerationRow;
  limits: CallLimits | undefined;
}

/** Generates rows. Returns the results in the order of `rows`. */
export async function generateRows(
  generator: TextGenerator,
  rows: readonly AskedRow[],
  sampling: SamplingOptions,
  onTokens: (sampled: number) => void,
  weights: string | undefined,
): Promise<GeneratedRow[]> {
  const parts = new Map<string, number[]>();
  rows.forEach(({ limits }, index) => {
    const key = JSON.stringify(limits ?? null);
    parts.set(key, [...(parts.get(key) ?? []), index]);
  });
  const results = new Array<GeneratedRow>(rows.length);
  await Promise.all(
    Array.from(parts.values(), async part => {
      const { limits } = rows[part[0]];
      const own = limits && { max_new_tokens: limits.max_new_tokens, stop: [...sampling.stop, ...limits.stop] };
      const asked = part.map(index => rows[index].row);
      const generated = await generator.generate(asked, { ...sampling, ...own }, onTokens, weights);
      generated.forEach((row, i) => (results[part[i]] = row));
    }),
  );
  return results;
}
