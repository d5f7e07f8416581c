// StarPO (State-Thinking-Actions-Reward Policy Optimisation; RAGEN, arXiv 2504.20073, §3), one file to be read top to bottom:
// roll out groups of whole episodes, keep the groups that say something, give every sampled token an advantage, and take clipped
// policy-gradient steps on the very tokens that were sampled. What is computed lives in algorithms/ as pure functions; how it runs,
// in engine/. A step that is written has its episodes, its metrics line and, where due, its checkpoint; a stop falls between steps.
import { RunStopped } from './run-control';
import { gaeAdvantages } from './algorithms/gae';
import { grpoAdvantages } from './algorithms/grpo';
import { learningRate } from './algorithms/learning-rate';
import { aggregationWeights } from './algorithms/loss-aggregation';
import { splitMiniBatches } from './algorithms/mini-batches';
import { reinforcePlusPlusAdvantages, reinforcePlusPlusBaselineAdvantages } from './algorithms/reinforce';
import { normalizeRewards } from './algorithms/reward-normalization';
import { rlooAdvantages } from './algorithms/rloo';
import { rolloutWeights } from './algorithms/rollout-correction';
import { filterLossScale, filterRollouts } from './algorithms/rollout-filter';
import { placeRewards, spreadOverTokens } from './algorithms/token-sequences';
import type { RunConfig } from './config/schema';
import { RandomStream } from './engine/random-stream';
import { passBudget } from './run';
import type { Run, TrainerState } from './run';
import { episodeRecord } from './rollout/episode-record';
import { isTrainable, sampledMask, sampledTokens } from './rollout/rollout-batch';
import type { RolloutEpisode, RolloutSample } from './rollout/rollout-batch';
import { deriveSeed } from './rollout/seeds';
import { Stopwatch } from './stopwatch';
import {
  describe,
  explainedVariance,
  finiteOnly,
  lengthsOf,
  meanOf,
  metricsOfRollout,
  validationSuccess,
} from './step-metrics';

/** Advantages by `algorithm.adv_estimator`; only gae asks the critic. */
const estimators: Record<Exclude<RunConfig['algorithm']['adv_estimator'], 'remax'>, Estimator> = {
  gae: (batch, { algorithm }) => gaeAdvantages(batch.sequences, algorithm),
  grpo: (batch, { algorithm }) => ({ advantages: spreadOverTokens(grpoAdvantages(batch, algorithm), batch.masks) }),
  rloo: batch => ({ advantages: spreadOverTokens(rlooAdvantages(batch), batch.masks) }),
  reinforce_plus_plus: (batch, { algorithm }) => ({
    advantages: reinforcePlusPlusAdvantages(batch.sequences, algorithm.gamma),
  }),
  reinforce_plus_plus_baseline: batch => ({ advantages: reinforcePlusPlusBaselineAdvantages(batch, batch.masks) }),
};

/** Trains until the last step or until the run is asked to stop. Errors leave everything committed on disk. */
export async function train(run: Run, state: TrainerState): Promise<'finished' | 'stopped'> {
  const { trainer } = run.config;
  try {
    if (!trainer.val_only) await run.tryLongest();
    if (state.step === 0 && (trainer.val_before_train || trainer.val_only))
      run.journal.metrics(0, await validate(run, 0));
    if (trainer.val_only) return 'finished';
    while (state.unvalidated || state.step < trainer.total_training_steps) {
      if (!state.unvalidated) {
        if (!(await run.control.gate())) return 'stopped';
        state.unvalidated = finiteOnly(await trainStep(run, state));
        state.step++;
      }
      const metrics = validationDue(trainer, state.step)
        ? await withValidation(run, state.step, state.unvalidated)
        : state.unvalidated;
      delete state.unvalidated;
      run.journal.metrics(state.step, metrics);
      run.progress(state.step, metrics);
      const due = trainer.save_freq > 0 && state.step % trainer.save_freq === 0;
      if (due || run.control.checkpointRequested) await run.checkpoint(state);
      const reason = earlyStop(run, state);
      if (reason) {
        run.journal.event('early_stop', reason);
        return 'finished';
      }
    }
    return 'finished';
  } catch (error) {
    if (error instanceof RunStopped) return 'stopped';
    throw error;
  }
}

/** One step: rollout, filter, advantages, update. Gives the step's metrics. */
async function trainStep(run: Run, state: TrainerState): Promise<Record<string, number>> {
  const { config, journal, engine } = run;
  const { rollout: sampling } = config.actor_rollout_ref;
  const step = state.step + 1;
  const clock = new Stopwatch();

  // Rollout: env_groups prompts × group_size whole episodes under the present policy.
  journal.update({ phase: 'rollout' });
  const rollout = await clock.time('gen', () => run.rollout('train', step));
  const metrics = metricsOfRollout(rollout, 'train');

  // Filter: groups whose episodes all scored alike carry no signal (RAGEN-2, SNR-adaptive filtering).
  const trainable = rollout.episodes.filter(isTrainable);
  const filtered = filterRollouts(
    {
      groups: trainable.map(e => e.group_id),
      scores: trainable.map(e => e.score),
      lengths: trainable.map(sampledTokens),
    },
    sampling,
  );
  Object.assign(metrics, filtered.metrics);
  const kept = trainable.filter((_, i) => filtered.kept[i]);
  state.emptySteps = kept.length === 0 ? state.emptySteps + 1 : 0;
  Object.assign(metrics, {
    'rollout/empty_after_filter': Number(kept.length === 0),
    'rollout/empty_steps': state.emptySteps,
  });

  const advantagesOf =
    kept.length > 0
      ? await update(run, step, trainable, kept, filtered.keptRatio, clock, metrics)
      : new Map<RolloutSample, Float32Array>();
  await engine.release(rollout.episodes.map(e => e.id)); // their keys and values belong to the old weights

  const trained = new Set(kept);
  await clock.time('dump_rollouts', async () =>
    journal.episodes(
      'train',
      step,
      rollout.episodes.map(e =>
        trained.has(e)
          ? episodeRecord(e, { kept: true, advantages: e.samples.map(sample => advantagesOf.get(sample)!) })
          : episodeRecord(e, { kept: false }),
      ),
    ),
  );

  const tokensOf = (episodes: readonly RolloutEpisode[]) =>
    episodes.reduce((n, e) => n + e.samples.reduce((m, { ids }) => m + ids.length, 0), 0);
  const tokens = tokensOf(rollout.episodes);
  const sampled = rollout.episodes.reduce((n, e) => n + sampledTokens(e), 0);
  return {
    ...metrics,
    ...clock.metrics(),
    'perf/total_num_tokens': tokens,
    'perf/throughput': tokens / clock.total,
    'perf/time_per_step': clock.total,
    'perf/rollout_tokens_per_s': sampled / clock.seconds('gen'),
    'perf/rss_mb': process.memoryUsage.rss() / 2 ** 20,
    ...(kept.length > 0 && {
      'perf/train_tokens_per_s': tokensOf(kept) / clock.seconds('update_actor'),
    }),
  };
}

/** Advantages for the kept episodes, then optimizer steps of critic and actor. Gives the advantages of each kept sample by token. */
async function update(
  run: Run,
  step: number,
  trainable: readonly RolloutEpisode[],
  kept: readonly RolloutEpisode[],
  keptRatio: number,
  clock: Stopwatch,
  metrics: Record<string, number>,
): Promise<Map<RolloutSample, Float32Array>> {
  const { config, engine, journal } = run;
  const { actor, ref, rollout: sampling } = config.actor_rollout_ref;
  const { algorithm } = config;
  journal.update({ phase: 'update' });
  // What is trained on: one sample an episode where the whole chat is shown, one a turn in a windowed context.
  const samples = kept.flatMap(e => e.samples.map(sample => ({ ...sample, episode: e, sampled: sampledMask(sample) })));
  const masks = samples.map(s => s.mask);
  const lengths = samples.map(s => s.ids.length);
  const bare = samples.map(({ ids, mask }) => ({ ids, mask }));
  const budget = (episodes: number) => passBudget(config, episodes, samples.length);

  // Log-probs of the sampled tokens under the policy before its update, and under the reference policy.
  const scored = (which: 'actor' | 'reference', episodes: number) =>
    engine.score(which, bare, budget(episodes), sampling.temperature);
  const bypass = algorithm.rollout_correction.bypass_mode;
  const old = bypass
    ? samples.map(s => s.logprobs)
    : await clock.time('old_log_prob', async () => {
        const scores = await scored('actor', sampling.log_prob_micro_batch_size_per_gpu);
        metrics['actor/entropy'] = meanOf(scores.entropies, masks);
        return scores.logprobs;
      });
  const reference = run.usesReference
    ? await clock.time('ref', async () => (await scored('reference', ref.log_prob_micro_batch_size_per_gpu)).logprobs)
    : lengths.map(n => new Float32Array(n));
  if (run.usesReference) metrics['rollout/ref_log_prob'] = meanOf(reference, masks);
  const correction = rolloutWeights(
    { old, rollout: samples.map(s => s.logprobs), masks: samples.map(s => s.sampled) },
    algorithm.rollout_correction,
  );
  if (!bypass) Object.assign(metrics, correction.metrics);

  // Scores become token rewards on the last sampled token; the estimator turns them into advantages.
  const normalized = normalizeRewards(
    { scores: trainable.map(e => e.score), groups: trainable.map(e => e.group_id), tags: trainable.map(e => e.tag) },
    config.agent_proxy.reward_normalization,
  );
  const scoreOf = new Map(trainable.map((episode, i) => [episode, normalized[i]]));
  const scores = samples.map(s => scoreOf.get(s.episode)!);
  const rewards = samples.map((s, i) => placeRewards(lengths[i], [s.mask.lastIndexOf(1)], [scores[i]]));
  const values = run.usesCritic
    ? await clock.time('values', () => engine.values(bare, budget(config.critic.ppo_micro_batch_size_per_gpu)))
    : lengths.map(n => new Float32Array(n));
  const batch: AdvantageBatch = {
    scores,
    groups: samples.map(s => s.episode.group_id),
    episodes: samples.map(s => s.episode.env_id),
    masks,
    sequences: samples.map((s, i) => ({ rewards: rewards[i], values: values[i], mask: s.mask })),
  };
  if (algorithm.adv_estimator === 'remax') throw new Error('train: remax is refused by the configuration checks');
  const { advantages, returns } = estimators[algorithm.adv_estimator](batch, config);
  const share = filterLossScale(actor.filter_loss_scaling, keptRatio);
  advantages.forEach((row, i) =>
    row.forEach((a, t) => (row[t] = algorithm.zero_task_advantage ? 0 : a * share * correction.weights[i][t])),
  );
  Object.assign(metrics, describe('critic/score', scores), describe('critic/rewards', scores));
  Object.assign(metrics, describe('critic/advantages', sampledOf(advantages, masks)), lengthsOf(samples));

  // Optimizer steps: ppo_epochs passes over seeded mini-batches.
  const order = new RandomStream(deriveSeed('mini-batches', config.seed.train, step));
  const work = (settings: { ppo_epochs: number; ppo_mini_batch_size: number }) =>
    Array.from({ length: settings.ppo_epochs }, () =>
      splitMiniBatches(samples.length, settings.ppo_mini_batch_size, order).map(mini => Array.from(mini)),
    ).flat();
  const shares = (mini: readonly number[], mode: typeof actor.loss_agg_mode) => {
    const weights = aggregationWeights(
      mini.map(i => trainedTokens(masks[i])),
      mode,
      Math.max(...mini.map(i => lengths[i])),
    );
    return mini.map((i, k) => new Float32Array(lengths[i]).fill(weights[k]));
  };

  if (returns) {
    Object.assign(metrics, describe('critic/values', sampledOf(values, masks)));
    Object.assign(metrics, describe('critic/returns', sampledOf(returns, masks)));
    metrics['critic/vf_explained_var'] = explainedVariance(sampledOf(values, masks), sampledOf(returns, masks));
    const optimizer = {
      ...config.critic.optim,
      lr: learningRate(step, config.critic.optim),
      grad_clip: config.critic.grad_clip,
    };
    await clock.time('update_critic', async () => {
      const results: Record<string, number>[] = [];
      for (const mini of work(config.critic)) {
        const weights = shares(mini, config.critic.loss_agg_mode);
        const batch = mini.map((i, k) => ({
          ...bare[i],
          old_values: values[i],
          returns: returns[i],
          weights: weights[k],
        }));
        const pass = budget(config.critic.ppo_micro_batch_size_per_gpu);
        results.push(await engine.updateCritic(batch, pass, config.critic, optimizer));
      }
      Object.assign(metrics, averaged('critic', results));
    });
  }
  if (step >= config.trainer.critic_warmup || !run.usesCritic) {
    const optimizer = { ...actor.optim, lr: learningRate(step, actor.optim), grad_clip: actor.grad_clip };
    await clock.time('update_actor', async () => {
      const results: Record<string, number>[] = [];
      const batches = work(actor);
      for (const [k, mini] of batches.entries()) {
        const weights = shares(mini, actor.loss_agg_mode);
        const batch = mini.map((i, j) => ({
          ...bare[i],
          old_logprobs: old[i],
          ref_logprobs: reference[i],
          advantages: advantages[i],
          weights: weights[j],
        }));
        const loss = { ...actor, temperature: sampling.temperature };
        const seed = deriveSeed('adapter-dropout', config.seed.train, step, k);
        results.push(await engine.update(batch, budget(actor.ppo_micro_batch_size_per_gpu), loss, optimizer, seed));
        journal.progress((k + 1) / batches.length);
      }
      const { 'actor/skipped': skipped = 0, 'actor/entropy': entropy, ...rest } = averaged('actor', results);
      Object.assign(metrics, rest, { 'actor/skipped_updates': skipped * results.length });
      metrics['actor/entropy'] ??= entropy; // measured during the update where no pass before it did
      Object.assign(metrics, { 'train/batch_size': samples.length, 'train/num_mini_batches': results.length });
    });
  }
  return new Map(kept.flatMap(e => e.samples).map((sample, i) => [sample, advantages[i]]));
}

/** Plays the validation groups, whose seeds are the same each time, and writes their episodes. */
export async function validate(run: Run, step: number): Promise<Record<string, number>> {
  const before = run.journal.status.phase;
  run.journal.update({ phase: 'validation' });
  const rollout = await run.rollout('val', step);
  run.journal.episodes(
    'val',
    step,
    rollout.episodes.map(e => episodeRecord(e)),
  );
  const metrics = metricsOfRollout(rollout, 'val-env');
  run.journal.update({ phase: before });
  run.showValidation(validationSuccess(metrics));
  return metrics;
}

const validationDue = ({ test_freq, total_training_steps }: RunConfig['trainer'], step: number): boolean =>
  (test_freq > 0 && step % test_freq === 0) || step === total_training_steps;

/** A finished step's metrics with those of its validation, whose time counts to the step. */
async function withValidation(
  run: Run,
  step: number,
  metrics: Record<string, number>,
): Promise<Record<string, number>> {
  const clock = new Stopwatch();
  const validation = await clock.time('testing', () => validate(run, step));
  const seconds = metrics['timing_s/step'] + clock.total;
  return {
    ...metrics,
    ...validation,
    'timing_s/testing': clock.seconds('testing'),
    'timing_s/step': seconds,
    'perf/time_per_step': seconds,
    'perf/throughput': metrics['perf/total_num_tokens'] / seconds,
  };
}

/** Why the run should end before its last step, if it should. */
function earlyStop(run: Run, { emptySteps }: TrainerState): string | null {
  const limit = run.config.actor_rollout_ref.rollout.rollout_filter_empty_stop_steps;
  if (limit === 0 || emptySteps < limit) return null;
  return `the rollout filter kept no group in ${emptySteps} steps in a row (rollout_filter_empty_stop_steps): all episodes of a group score alike`;
}

interface AdvantageBatch {
  /** Per sample: normalised score and prompt group. */
  scores: ArrayLike<number>;
  groups: ArrayLike<number>;
  /** Episode of each sample: it counts once in its group's statistics. */
  episodes: ArrayLike<number>;
  masks: readonly Uint8Array[];
  sequences: readonly { rewards: Float32Array; values: Float32Array; mask: Uint8Array }[];
}

type Estimator = (batch: AdvantageBatch, config: RunConfig) => { advantages: Float32Array[]; returns?: Float32Array[] };

const trainedTokens = (mask: Uint8Array): number => mask.reduce((n, bit) => n + bit, 0);

const sampledOf = (rows: readonly Float32Array[], masks: readonly Uint8Array[]): number[] =>
  rows.flatMap((row, i) => Array.from(row).filter((_, t) => masks[i][t]));

/** Means over the optimizer steps of a step, under `prefix/`. */
function averaged(prefix: string, results: readonly Record<string, number>[]): Record<string, number> {
  const keys = Object.keys(results[0] ?? {});
  return Object.fromEntries(
    keys.map(key => [`${prefix}/${key}`, results.reduce((sum, result) => sum + result[key], 0) / results.length]),
  );
}
