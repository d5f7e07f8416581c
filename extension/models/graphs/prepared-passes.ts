// Creates the passes of a batch with their feeds, and separately the feeds that contain the random numbers for dropout.
// A pass is packed directly before it runs.
import type { PassBudget } from '../../engine/training-samples';
import type { RandomStream } from '../../engine/sampling/random-stream';
import { float32 } from '../../engine/session/session';
import type { Tensor } from '../../engine/session/session';
import type { WorkUnits } from '../../engine/work-units';
import { batchFeeds, headChunks, logitsAtATime, maskedTokens } from './batch-feeds';
import type { BatchFeeds } from './batch-feeds';
import { passCosts, planPasses } from './pass-plan';
import type { Sample } from './pass-plan';
import type { Network } from './policy-graphs';
import { maximum, minimum } from '../../common/lists';

export interface PreparedPass<S extends Sample> extends BatchFeeds<S> {
  shared: boolean;
}

/**
 * Returns the passes of a batch, and the number of chunks in which the largest pass goes through the output head. Each
 * pass is packed only directly before it runs, because the masks and index arrays of 2048 tokens take about ten
 * megabytes. Each pass is a work unit. `headGradient` is the number of bytes of the output head's gradient, which each
 * chunk allocates; 0 if the head is not trained.
 */
export function preparePasses<S extends Sample>(
  { config }: Network,
  samples: readonly S[],
  budget: PassBudget,
  headGradient: number,
  units: WorkUnits,
): { passes: Iterable<PreparedPass<S>>; chunks: number; total: number } {
  const index = [...samples.keys()].filter(i => samples[i].mask.includes(1, 1));
  const plan = planPasses(
    index.map(i => samples[i]),
    budget,
    passCosts(config),
  ).map(({ shared, clusters }) => ({
    shared,
    clusters: clusters.map(c => ({ ...c, members: c.members.map(i => index[i]) })),
  }));
  const counts = plan.map(({ clusters }) =>
    clusters.reduce((sum, { members }) => sum + members.reduce((n, i) => n + maskedTokens(samples[i]), 0), 0),
  );
  const most = maximum(counts, 0);
  const least = minimum(counts);
  function* packed(): Generator<PreparedPass<S>> {
    for (const [k, pass] of plan.entries()) {
      units.next(k, plan.length);
      yield { shared: pass.shared, ...batchFeeds(pass, samples, config) };
    }
  }
  return {
    passes: packed(),
    chunks: Math.min(headChunks(most, config.vocabSize, logitsAtATime(headGradient)), headChunks(least, Infinity)),
    total: counts.reduce((sum, count) => sum + count, 0),
  };
}

/** Returns the feeds with the random numbers for the adapters' dropout in a pass; empty without dropout. */
export function dropoutFeeds({ plan }: Network, tokens: number, noise: RandomStream): Record<string, Tensor> {
  const { adapter, specs } = plan;
  if (!adapter || adapter.dropout === 0) return {};
  const features = maximum(specs.map(({ dims }) => dims.at(-1)!));
  const vector = (length: number): Tensor =>
    float32(
      Float32Array.from({ length }, () => 1 + 99 * noise.uniform()),
      [length],
    );
  return { dropout_rows: vector(tokens), dropout_columns: vector(features) };
}
