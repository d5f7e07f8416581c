// Collects what a training step writes: the results for each token of each sample, the records of the step's episodes,
// and the step's throughput. Every episode of the rollout has a record; only the kept episodes have results per token.
import type { PreparedBatch } from './optimizer-steps';
import type { Run } from '../run/run';
import { episodeRecord } from '../rollout/episode-record';
import type { TrainedTokens } from '../rollout/episode-record';
import { sampledTokens } from '../rollout/rollout-batch';
import type { RolloutEpisode } from '../rollout/rollout-batch';
import type { RolloutSample } from '../rollout/rollout-sample';
import { timesPerToken } from './step-times';
import type { Stopwatch } from './stopwatch';
import type { BatchSample } from './training-batch';
import type { Episode } from '../../run-data/episode';

/**
 * Returns the results per token for each sample in `own`, which contains the samples before RAGEN's batch adjustment.
 * If this adjustment dropped a sample, the advantages of the sample are 0.
 */
export function trainedTokens(
  run: Run,
  own: readonly BatchSample[],
  { samples, advantages, entropies, reference, teacher, values }: PreparedBatch,
): Map<RolloutSample, TrainedTokens> {
  const trained = new Map(
    samples.map(({ sample }, i): [RolloutSample, TrainedTokens] => [
      sample,
      {
        advantages: advantages[i],
        ...(entropies && { entropies: entropies[i] }),
        ...(run.usesReference && { reference: reference[i] }),
        ...(teacher && { teacher: teacher[i] }),
        ...(run.usesCritic && { values: values[i] }),
      },
    ]),
  );
  const untrained = ({ ids }: RolloutSample): TrainedTokens => ({ advantages: new Float32Array(ids.length) });
  return new Map(own.map(({ sample }) => [sample, trained.get(sample) ?? untrained(sample)]));
}

/** Returns the records of a step's episodes; the records of kept episodes include the results per token. */
export function trainingRecords(
  episodes: readonly RolloutEpisode[],
  kept: readonly RolloutEpisode[],
  made: ReadonlyMap<RolloutSample, TrainedTokens>,
): Episode[] {
  const trained = new Set(kept);
  return episodes.map(e =>
    trained.has(e)
      ? episodeRecord(e, {
          kept: true,
          samples: e.samples.map(sample => made.get(sample)!),
        })
      : episodeRecord(e, { kept: false }),
  );
}

/** Returns times, tokens per second of each phase, and the trainer's memory, of a step. */
export function throughput(
  clock: Stopwatch,
  episodes: readonly RolloutEpisode[],
  kept: readonly RolloutEpisode[],
): Record<string, number> {
  const tokens = tokensOf(episodes);
  const sampled = episodes.reduce((n, e) => n + sampledTokens(e), 0);
  return {
    ...clock.metrics(),
    ...timesPerToken(clock, { sampled, trained: tokensOf(kept) }),
    'perf/total_num_tokens': tokens,
    'perf/throughput': tokens / clock.total,
    'perf/time_per_step': clock.total,
    'perf/rollout_tokens_per_s': sampled / clock.seconds('gen'),
    'perf/rss_mb': process.memoryUsage.rss() / 2 ** 20,
    ...(kept.length > 0 && {
      'perf/train_tokens_per_s': tokensOf(kept) / clock.seconds('update_actor'),
    }),
    ...tokenRate('perf/log_prob_tokens_per_s', kept, clock.seconds('old_log_prob')),
    ...tokenRate('perf/ref_tokens_per_s', kept, clock.seconds('ref')),
  };
}

/** Returns the tokens per second of a phase; nothing if the step had no such phase. */
const tokenRate = (key: string, kept: readonly RolloutEpisode[], seconds: number): Record<string, number> =>
  kept.length > 0 && seconds > 0 ? { [key]: tokensOf(kept) / seconds } : {};

const tokensOf = (episodes: readonly RolloutEpisode[]): number =>
  episodes.reduce((n, e) => n + e.samples.reduce((m, { ids }) => m + ids.length, 0), 0);
