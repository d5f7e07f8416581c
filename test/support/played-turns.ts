// Plays turns of generation from start to end, for tests that compare two ways of generating.
import type { GeneratedRow, SamplingOptions } from '../../extension/engine/generation-calls';
import type { DecoderConfig } from '../../extension/models/decoder/decoder-config';
import { openBank } from '../../extension/models/weights/device-parameters';
import { Generator } from '../../extension/models/generation/generator';
import type { GeneratorOptions } from '../../extension/models/generation/generator-options';
import { trainedNetwork } from '../../extension/models/decoder/networks';
import type { Weights } from '../../extension/models/weights/weights';

export interface Turn {
  /** Ids to append before the turn, by row. */
  append: Record<string, number[]>;
  sampling: SamplingOptions;
  /** Rows to release before the turn. */
  release?: string[];
}

/** Tokens that the rows sample in every turn, with a seed per turn and row; all rows are released at the end. */
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
 * Runs the same turns with separate calls per row. All rows are active at once; a row's next turn joins the running
 * decoding when the row's last turn has been answered. Results are in the order of `playedTurns`.
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
