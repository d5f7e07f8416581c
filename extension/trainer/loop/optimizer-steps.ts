// The optimizer steps of a training step. The critic and the policy are each trained for ppo_epochs epochs over
// mini-batches, whose order depends on the seed. The loss weight of a sample depends only on its mini-batch. The result
// therefore does not depend on how the engine divides a mini-batch into forward and backward passes.
import { maximum } from '../../common/lists';
import { learningRate } from '../../algorithms/learning-rate';
import { aggregationWeights } from '../../algorithms/loss-aggregation';
import { splitMiniBatches } from '../../algorithms/mini-batches';
import { covarianceOf, gateOf } from '../../algorithms/policy-loss-options';
import type { CriticSample, WeightedSample } from '../../engine/training-samples';
import type { OptimizerOptions, PolicyLossOptions } from '../../engine/loss-options';
import type { RandomStream } from '../../engine/sampling/random-stream';
import { isPluginPath, type PluginPath } from '../config/plugin-path';
import { builtInLoss, usesOwnLoss } from '../plan/memory-input';
import { surrogateWith, unclipped, type SurrogateBatch } from '../plugins/plugin-loss';
import { passBudget } from '../run/pass-budget';
import type { Run } from '../run/run';
import { deriveSeed } from '../rollout/seeds';
import { averaged, describe, explainedVariance, numbersWhere } from './metric-statistics';
import type { BatchSample } from './training-batch';

/** A batch with all inputs of its update, one row per sample. */
export interface PreparedBatch {
  samples: readonly BatchSample[];
  /** Indices of the samples of the kept episodes, which metrics describe. */
  trained: readonly number[];
  /** Log-probs of the tokens: `old` under the policy before the update, `reference` under the reference policy. */
  old: readonly Float32Array[];
  reference: readonly Float32Array[];
  /** Log-probs under the teacher; absent without a teacher. */
  teacher?: readonly Float32Array[];
  values: readonly Float32Array[];
  /** Entropies under the policy before the update; absent if they were not computed. */
  entropies?: readonly Float32Array[];
  advantages: readonly Float32Array[];
  /** Training targets of the critic; absent without a critic. */
  returns?: readonly Float32Array[];
  /** 1 at tokens that have a target; by default, all tokens for which advantages are estimated. */
  targets?: readonly Uint8Array[];
  /** Indices of the samples to train on; an index may occur more than once. */
  order: readonly number[];
}

type Batching = Pick<
  Run['config']['critic'],
  'ppo_epochs' | 'ppo_mini_batch_size' | 'ppo_micro_batch_size_per_gpu' | 'loss_agg_mode' | 'optim' | 'grad_clip'
>;

/** Sample indices of a mini-batch, with the loss weight of each sample's tokens. */
interface MiniBatch {
  indices: number[];
  weights: Float32Array[];
}

/** Runs the critic's optimizer steps and returns their metrics, whose keys begin with `critic/`. */
export async function updateCritic(
  run: Run,
  step: number,
  batch: PreparedBatch & Required<Pick<PreparedBatch, 'returns'>>,
  stream: RandomStream,
): Promise<Record<string, number>> {
  const { config, engine } = run;
  const masks = batch.samples.map(({ estimated }, i) => batch.targets?.[i] ?? estimated);
  const budget = passBudget(config, config.critic.ppo_micro_batch_size_per_gpu, batch.order.length);
  const results: Record<string, number>[] = [];
  const batches = miniBatches(batch, masks, config.critic, stream);
  for (const [k, { indices, weights }] of batches.entries()) {
    run.follow('critic, mini-batch', { index: k, of: batches.length });
    const samples = indices.map((i, k): CriticSample => ({
      ids: batch.samples[i].ids,
      shows: batch.samples[i].shows,
      mask: masks[i],
      old_values: batch.values[i],
      returns: batch.returns[i],
      weights: weights[k],
    }));
    results.push(await engine.updateCritic(samples, budget, config.critic, optimizerAt(step, config.critic)));
  }
  const ofTrained = <Row>(rows: readonly Row[]): Row[] => batch.trained.map(index => rows[index]);
  const values = numbersWhere(ofTrained(batch.values), ofTrained(masks));
  const returns = numbersWhere(ofTrained(batch.returns), ofTrained(masks));
  return {
    ...describe('critic/values', values),
    ...describe('critic/returns', returns),
    'critic/vf_explained_var': explainedVariance(values, returns),
    ...counted('critic', results),
  };
}

/** Returns the mean of each metric over the optimizer steps, and the number of skipped optimizer steps. */
function counted(prefix: string, results: readonly Record<string, number>[]): Record<string, number> {
  const { [`${prefix}/skipped`]: skipped = 0, ...metrics } = averaged(prefix, results);
  return { ...metrics, [`${prefix}/skipped_updates`]: Math.round(skipped * results.length) };
}

/** Runs the policy's optimizer steps and returns their metrics, whose keys begin with `actor/` or `train/`. */
export async function updateActor(
  run: Run,
  step: number,
  batch: PreparedBatch,
  stream: RandomStream,
): Promise<Record<string, number>> {
  const { config, engine } = run;
  const { actor } = config.actor_rollout_ref;
  const optimizer = optimizerAt(step, actor);
  const loss = policyLossOptions(config);
  const budget = passBudget(config, actor.ppo_micro_batch_size_per_gpu, batch.order.length);
  const results: Record<string, number>[] = [];
  const mode = actor.policy_loss.loss_mode;
  const batches = policyMiniBatches(batch, config, stream);
  for (const [k, samples] of batches.entries()) {
    run.follow('policy, mini-batch', { index: k, of: batches.length });
    const seed = deriveSeed('adapter-dropout', config.seed.train, step, k);
    const selection_seed = deriveSeed('clip-cov', config.seed.train, step, k);
    const own = isPluginPath(mode) ? await surrogateOf(run, mode, samples, { step, k }) : null;
    const metrics = await engine.update(own?.samples ?? samples, budget, { ...loss, selection_seed }, optimizer, seed);
    results.push({ ...metrics, ...own?.metrics });
  }
  return {
    ...counted('actor', results),
    'train/batch_size': batch.order.length,
    'train/num_mini_batches': results.length,
  };
}

/** Returns the mini-batch with which the engine applies the gradient of the loss that a plug-in computes. */
async function surrogateOf(
  { config, engine, plugins }: Run,
  path: PluginPath,
  samples: readonly WeightedSample[],
  { step, k }: { step: number; k: number },
): Promise<SurrogateBatch> {
  const { actor, rollout } = config.actor_rollout_ref;
  const { clip_ratio_low, clip_ratio_high, clip_ratio_c } = actor;
  const scored = await engine.score(
    'actor',
    samples.map(({ ids, mask, shows }) => ({ ids, mask, shows })),
    passBudget(config, actor.ppo_micro_batch_size_per_gpu, samples.length),
    rollout.temperature,
  );
  return surrogateWith(plugins.set.plugin(path), samples, scored.logprobs, {
    ...{ clip_ratio_low, clip_ratio_high, clip_ratio_c, step },
    ...{ ...gateOf(actor), ...covarianceOf(actor) },
    seed: deriveSeed('loss', config.seed.train, step, k),
  });
}

/** Returns the policy's mini-batches of one training step in the engine's input format. */
export function policyMiniBatches(
  batch: PreparedBatch,
  { actor_rollout_ref: { actor } }: Run['config'],
  stream: RandomStream,
): WeightedSample[][] {
  const masks = batch.samples.map(({ mask }) => mask);
  return miniBatches(batch, masks, actor, stream).map(({ indices, weights }) =>
    indices.map((i, k) => ({
      ids: batch.samples[i].ids,
      shows: batch.samples[i].shows,
      mask: masks[i],
      old_logprobs: batch.old[i],
      ref_logprobs: batch.reference[i],
      advantages: batch.advantages[i],
      weights: weights[k],
    })),
  );
}

/** Returns the options of the policy loss in the engine's input format. */
export function policyLossOptions(config: Run['config']): PolicyLossOptions {
  const { actor, rollout } = config.actor_rollout_ref;
  return {
    ...actor,
    policy_loss: { ...actor.policy_loss, loss_mode: builtInLoss(config) },
    ...(usesOwnLoss(config) && unclipped),
    temperature: rollout.temperature,
  };
}

function miniBatches(
  { samples, order }: PreparedBatch,
  masks: readonly Uint8Array[],
  { ppo_epochs, ppo_mini_batch_size, loss_agg_mode }: Batching,
  stream: RandomStream,
): MiniBatch[] {
  return Array.from({ length: ppo_epochs }, () => splitMiniBatches(order.length, ppo_mini_batch_size, stream))
    .flat()
    .map(positions => {
      const indices = Array.from(positions, position => order[position]);
      const shares = aggregationWeights(
        indices.map(i => masks[i].reduce((count, bit) => count + bit, 0)),
        loss_agg_mode,
        maximum(indices.map(i => samples[i].ids.length)),
      );
      return { indices, weights: indices.map((i, k) => new Float32Array(samples[i].ids.length).fill(shares[k])) };
    });
}

const optimizerAt = (step: number, { optim, grad_clip }: Pick<Batching, 'optim' | 'grad_clip'>): OptimizerOptions => ({
  ...optim,
  lr: learningRate(step, optim),
  grad_clip,
});
