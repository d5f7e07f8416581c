// Plays an evaluation with a local model in waves. A wave consists of complete groups; groups are added until the wave
// has at least as many episodes as the engine decodes concurrently. The episodes of a wave are written together when
// the wave ends. A response's entropy is the entropy of the model's distribution over the whole vocabulary (temperature
// 1, no truncation), averaged over the sampled tokens.
import type { Episode } from '../../run-data/episode';
import { decodedRows } from '../../models/generation/generator';
import { episodeRecord } from '../rollout/episode-record';
import { sampledTokens } from '../rollout/rollout-batch';
import { sampledMask } from '../rollout/rollout-sample';
import type { RolloutEpisode } from '../rollout/rollout-batch';
import { passBudget } from '../run/pass-budget';
import type { Run } from '../run/run';
import type { Player, ValidationSlot } from './evaluate';
import { addedMetrics } from './evaluation-summary';

export class LocalPlayer implements Player {
  constructor(private readonly run: Run) {}

  async play(slots: readonly ValidationSlot[], finished: (episodes: readonly Episode[]) => void): Promise<void> {
    for (const wave of waves(slots)) {
      const [{ round, first: seed }] = wave;
      const only = new Set(wave.map(({ env_id }) => env_id));
      const { episodes } = await this.run.batches.playValidation({ round, seed, only });
      const entropies = await this.entropies(episodes);
      finished(
        episodes.map((episode, i) => {
          episode.metrics = { ...ownMetrics(episode), ...(entropies && { [addedMetrics.entropy]: entropies[i] }) };
          return episodeRecord(episode);
        }),
      );
    }
  }

  /** Returns each episode's mean entropy over its sampled tokens, in nats; null if `val_kwargs.logprobs` is 0. */
  private async entropies(episodes: readonly RolloutEpisode[]): Promise<number[] | null> {
    const { config, engine } = this.run;
    const { val_kwargs, log_prob_micro_batch_size_per_gpu: micro } = config.actor_rollout_ref.rollout;
    if (val_kwargs.logprobs === 0) return null;
    const samples = episodes.flatMap(episode => episode.samples.map(sample => ({ ...sample, episode })));
    const masks = samples.map(sampledMask);
    this.run.follow('entropies');
    const { entropies } = await engine.score(
      'actor',
      samples.map(({ ids, shows }, i) => ({ ids, mask: masks[i], shows })),
      passBudget(config, micro, samples.length),
      1,
    );
    if (!entropies) return null;
    const sums = new Map(episodes.map(episode => [episode, 0]));
    samples.forEach(({ episode }, i) => {
      const sum = entropies[i].reduce((total, entropy, t) => total + (masks[i][t] ? entropy : 0), 0);
      sums.set(episode, sums.get(episode)! + sum);
    });
    return episodes.map(episode => sums.get(episode)! / Math.max(1, sampledTokens(episode)));
  }
}

/** Metrics that the local player and the API player both record for an episode. */
export const ownMetrics = (episode: RolloutEpisode): Record<string, number> => ({
  [addedMetrics.tokens]: sampledTokens(episode),
  [addedMetrics.turns]: episode.turns.length,
  [addedMetrics.contextFull]: Number(episode.context_full),
  [addedMetrics.contextShortened]: Number(episode.context_shortened),
});

/**
 * Divides the episodes into waves. A wave has complete groups of one round; groups are added until the wave has at
 * least `decodedRows` episodes.
 */
function waves(slots: readonly ValidationSlot[]): ValidationSlot[][] {
  const all: ValidationSlot[][] = [];
  for (const slot of slots) {
    const wave = all.at(-1);
    const last = wave?.at(-1);
    const fits = last?.round === slot.round && (wave!.length < decodedRows || last.group_id === slot.group_id);
    if (wave && fits) wave.push(slot);
    else all.push([slot]);
  }
  return all;
}
