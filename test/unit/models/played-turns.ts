// Turns of generation played from beginning to end, for tests that compare one way of generating with another.
import type { GeneratedRow, SamplingOptions } from '../../../extension/trainer/engine/engine';
import type { DecoderConfig } from '../../../extension/trainer/models/decoder-config';
import { openBank } from '../../../extension/trainer/models/device-parameters';
import { Generator } from '../../../extension/trainer/models/generator';
import type { GeneratorOptions } from '../../../extension/trainer/models/generator';
import { trainedNetwork } from '../../../extension/trainer/models/networks';
import type { Weights } from '../../../extension/trainer/models/weights';

export interface Turn {
  /** New ids by row. */
  append: Record<string, number[]>;
  sampling: SamplingOptions;
  /** Rows that are released before it. */
  release?: string[];
}

/** What the rows of every turn drew, with seeds by turn and row; all rows are released in the end. */
export async function playedTurns(
  config: DecoderConfig,
  weights: Weights,
  options: GeneratorOptions,
  turns: readonly Turn[],
): Promise<GeneratedRow[]> {
  const generator = new Generator(trainedNetwork(config), await openBank(weights, options), options);
  const result: GeneratedRow[] = [];
  for (const [t, { append, sampling, release = [] }] of turns.entries()) {
    await generator.release(release);
    const requests = Object.entries(append).map(([row, ids], i) => ({ row, append: ids, seed: 1000 * t + i }));
    result.push(...(await generator.generate(requests, sampling)));
  }
  await generator.release(turns.flatMap(({ append }) => Object.keys(append)));
  return result;
}

/**
 * The same turns, each row going through its own in calls of its own: all are in hand at once, and a row's next turn joins whatever is being
 * decoded when its last is answered. Results in the order of `playedTurns`.
 */
export async function playedApart(
  config: DecoderConfig,
  weights: Weights,
  options: GeneratorOptions,
  turns: readonly Turn[],
): Promise<GeneratedRow[]> {
  const generator = new Generator(trainedNetwork(config), await openBank(weights, options), options);
  const results = turns.map(({ append }) => Object.keys(append).map((): GeneratedRow | undefined => undefined));
  const rows = [...new Set(turns.flatMap(({ append }) => Object.keys(append)))];
  const playRow = async (row: string): Promise<void> => {
    for (const [t, { append, sampling, release = [] }] of turns.entries()) {
      if (release.includes(row)) await generator.release([row]);
      const i = Object.keys(append).indexOf(row);
      if (i < 0) continue;
      const request = { row, append: append[row], seed: 1000 * t + i };
      [results[t][i]] = await generator.generate([request], sampling);
    }
    await generator.release([row]);
  };
  await Promise.all(rows.map(playRow));
  return results.flat().map(result => result!);
}
