// Gradient analysis within a training step (RAGEN-2's gradient_reporter): the gradient of each part of the policy loss,
// for buckets of prompt groups with similar score std. Weights are not changed. Metrics use RAGEN's keys; cosines and
// signal-to-noise ratios are metrics that RAGEN does not have. The complete result is written to the run folder.
import { gradientsFile } from '../../run-data/diagnostics';
import type { GradientAnalysisRecord } from '../../run-data/diagnostics';
import { maximum, minimum } from '../../common/lists';
import type { GroupRow } from '../../run-data/step-lines';
import type { RunConfig } from '../config/schema';
import { varianceBuckets } from '../diagnostics/variance-buckets';
import type { UpdateMetrics } from '../../engine/loss-options';
import { RandomStream } from '../../engine/sampling/random-stream';
import { policyLossOptions, policyMiniBatches } from './optimizer-steps';
import type { PreparedBatch } from './optimizer-steps';
import { passBudget } from '../run/pass-budget';
import type { Run } from '../run/run';
import type { EnvGroups } from '../rollout/group-layout';
import { deriveSeed } from '../rollout/seeds';

type Analysis = GradientAnalysisRecord['analyses'][number];

/** Whether gradients are measured in a step: in step 1 and every `gradient_analysis_every` steps after it. */
export const gradientsDue = ({ trainer }: RunConfig, step: number): boolean =>
  trainer.gradient_analysis_mode && step > 0 && (step - 1) % trainer.gradient_analysis_every === 0;

/**
 * Returns the layout of a separate rollout for the analysis (`trainer.gradient_analysis_env_groups`, `_group_size`).
 * Its tags have the same proportions as in training. Returns null if the analysis uses the rollout of the step.
 */
export function gradientRollout({ trainer, es_manager: { train } }: RunConfig): EnvGroups | null {
  const { gradient_analysis_env_groups: groups, gradient_analysis_group_size: size } = trainer;
  if (groups === null && size === null) return null;
  const env_groups = groups ?? train.env_groups;
  const { tags, n_groups } = train.env_configs;
  return {
    env_groups,
    group_size: size ?? train.group_size,
    env_configs: { tags, n_groups: n_groups.map(n => (n * env_groups) / train.env_groups) },
  };
}

/**
 * Measures the gradients of the kept batch and, if given, of the unfiltered batch of the same rollout. Returns the
 * metrics.
 * @param groups group table of the rollout
 * @param batches `kept` is null if the filter kept nothing; `unfiltered` is null if the unfiltered batch is not
 * measured
 */
export async function diagnoseGradients(
  run: Run,
  step: number,
  groups: readonly GroupRow[],
  { kept, unfiltered }: { kept: PreparedBatch | null; unfiltered: PreparedBatch | null },
): Promise<Record<string, number>> {
  const analyses: Analysis[] = [];
  if (kept) analyses.push(await analysed(run, step, 'grad_norm', kept, groups));
  if (unfiltered) analyses.push(await analysed(run, step, 'grad_norm_prefilter', unfiltered, groups));
  const document: GradientAnalysisRecord = { step, analyses };
  if (analyses.length > 0) run.keepDiagnosis(gradientsFile(step), step, document);
  const aside = gradientRollout(run.config);
  const { env_groups, group_size } = aside ?? run.config.es_manager.train;
  return {
    ...Object.fromEntries(analyses.flatMap(analysis => Object.entries(metricsOf(analysis)))),
    'grad_analysis/source_env_groups': env_groups,
    'grad_analysis/source_group_size': group_size,
    'grad_analysis/source_batch_size': kept?.samples.length ?? 0,
    'grad_analysis/adjusted_batch_size': kept?.order.length ?? 0,
    'grad_analysis/uses_training_batch': Number(aside === null),
    'grad_analysis/empty_after_filter': Number(kept === null),
  };
}

async function analysed(
  run: Run,
  step: number,
  name: string,
  batch: PreparedBatch,
  groups: readonly GroupRow[],
): Promise<Analysis> {
  const { config, engine } = run;
  const { actor, rollout } = config.actor_rollout_ref;
  const present = new Set(batch.order.map(i => batch.samples[i].episode.group_id));
  const rows = groups.filter(({ group_id }) => present.has(group_id));
  const once = { ...config, actor_rollout_ref: { ...config.actor_rollout_ref, actor: { ...actor, ppo_epochs: 1 } } };
  const seed = deriveSeed('gradient-analysis', config.seed.train, step);
  const buckets = varianceBuckets(
    rows.map(({ reward_std }) => reward_std),
    rollout.gradient_analysis_bucket_mode,
    rollout.gradient_analysis_num_buckets,
  ).map(bucket => {
    const members = bucket.groups.map(i => rows[i]);
    const ids = new Set(members.map(({ group_id }) => group_id));
    const order = batch.order.filter(i => ids.has(batch.samples[i].episode.group_id));
    return {
      name: bucket.name,
      members,
      order,
      batches: policyMiniBatches({ ...batch, order }, once, new RandomStream(seed)),
    };
  });
  const budget = passBudget(config, actor.ppo_micro_batch_size_per_gpu, batch.order.length);
  run.follow('gradients of the loss, mini-batch');
  const found = await engine.analyseGradients(
    buckets.map(({ batches }) => batches),
    budget,
    policyLossOptions(config),
    seed,
  );
  return {
    name,
    parts: found.parts,
    cosines: found.cosines,
    buckets: buckets.map(({ name: bucket, members, order }, i) => ({
      name: bucket,
      groups: members.map(({ group_id, reward_std }) => ({ group_id, reward_std })),
      samples: order.length,
      tokens: order.reduce((sum, at) => sum + batch.samples[at].mask.reduce((n, bit) => n + bit, 0), 0),
      gradients: found.buckets[i].gradients,
      metrics: withTotal(found.buckets[i].metrics, actor),
    })),
  };
}

/** Adds the metric `total_loss`, the weighted sum of the parts of the loss. */
function withTotal(
  metrics: UpdateMetrics,
  { entropy_coeff, use_kl_loss, kl_loss_coef }: RunConfig['actor_rollout_ref']['actor'],
): UpdateMetrics {
  const penalty = use_kl_loss ? kl_loss_coef * metrics.kl_loss : 0;
  return { ...metrics, total_loss: metrics.pg_loss - entropy_coeff * metrics.entropy_loss + penalty };
}

/**
 * Returns the metrics of all buckets under RAGEN's keys; the metrics of the bucket `all` are repeated under keys
 * without a bucket name. Cosines and signal-to-noise ratios have separate prefixes.
 */
function metricsOf({ name, parts, buckets, cosines }: Analysis): Record<string, number> {
  const metrics: Record<string, number> = {};
  const all = buckets.find(bucket => bucket.name === 'all');
  const own = (prefix: string): string => name.replace('grad_norm', prefix);
  for (const bucket of buckets) {
    const found = bucketMetrics(bucket, parts, all?.samples ?? bucket.samples);
    for (const [key, value] of Object.entries(found)) {
      metrics[`${name}/${bucket.name}/${key}`] = value;
      if (bucket === all) metrics[`${name}/${key}`] = value;
    }
    bucket.gradients.forEach(({ snr }, p) => {
      if (snr !== null) metrics[`${own('grad_snr')}/${bucket.name}/${parts[p]}`] = snr;
    });
  }
  const angle = (a: number, p: number, b: number, q: number, key: string): void => {
    const value = cosines[a * parts.length + p][b * parts.length + q];
    if (value !== null) metrics[`${own('grad_cosine')}/${key}`] = value;
  };
  buckets.forEach((bucket, a) => {
    for (let p = 0; p < parts.length; p++) {
      for (let q = p + 1; q < parts.length; q++) angle(a, p, a, q, `${bucket.name}/${parts[p]}_${parts[q]}`);
      for (let b = a + 1; b < buckets.length; b++) angle(a, p, b, p, `${bucket.name}/${buckets[b].name}/${parts[p]}`);
    }
  });
  return metrics;
}

function bucketMetrics(
  { gradients, groups, samples, tokens, metrics: loss }: Analysis['buckets'][number],
  parts: readonly string[],
  allSamples: number,
): Record<string, number> {
  const stds = groups.map(({ reward_std }) => reward_std);
  const metrics: Record<string, number> = {
    'loss/policy': loss.pg_loss,
    'loss/entropy': loss.entropy_loss,
    ...(parts.includes('kl') && { 'loss/kl': loss.kl_loss }),
    'loss/total': loss.total_loss,
    entropy_mean: loss.entropy,
    pg_clipfrac: loss.pg_clipfrac,
    pg_clipfrac_lower: loss.pg_clipfrac_lower,
    ppo_kl: loss.ppo_kl,
    sample_count: samples,
    sample_pct: (100 * samples) / allSamples,
    reward_std_mean: stds.reduce((sum, std) => sum + std, 0) / stds.length,
    reward_std_min: minimum(stds),
    reward_std_max: maximum(stds),
    group_rv_count: stds.length,
  };
  gradients.forEach(({ norm }, p) => {
    metrics[parts[p]] = norm;
    metrics[`per_sample/${parts[p]}`] = norm / samples;
    metrics[`per_token/${parts[p]}`] = norm / tokens;
  });
  return metrics;
}
