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
    generator.release(release);
    const requests = Object.entries(append).map(([row, ids], i) => ({ row, append: ids, seed: 1000 * t + i }));
    result.push(...(await generator.generate(requests, sampling)));
  }
  generator.release(turns.flatMap(({ append }) => Object.keys(append)));
  return result;
}
