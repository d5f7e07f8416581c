// The policy loss of the training graph against its definition, for every combination of options that a configuration
// accepts: loss mode, aggregation, KL estimator, entropy bonus, rollout correction, and batches with samples of which
// nothing is trained. The lists come from the schema, so a new value is compared too. Log-probs are multiples of 1/64,
// so that their differences are exact in float32. The surrogate with which the trainer applies the losses of plug-ins has
// the gradient of the graph for every built-in loss.
import { afterAll, describe, expect, it } from 'vitest';
import { builtInLosses } from '../../../../extension/algorithms/built-in-losses';
import { tokenKl } from '../../../../extension/algorithms/kl';
import { aggregationWeights } from '../../../../extension/algorithms/loss-aggregation';
import {
  policyLoss,
  policyLossGradient,
  tokenLosses,
  type PolicySequence,
} from '../../../../extension/algorithms/policy-loss';
import { selectedTokens } from '../../../../extension/algorithms/covariance';
import {
  covarianceOf,
  gateOf,
  type KlKind,
  type LossMode,
  type PolicyLossSettings,
} from '../../../../extension/algorithms/policy-loss-options';
import { rolloutWeights } from '../../../../extension/algorithms/rollout-correction';
import { actorRolloutRef } from '../../../../extension/trainer/config/schema-policy';
import { gradients } from '../../../../extension/engine/graph/autodiff';
import type { WeightedSample } from '../../../../extension/engine/training-samples';
import { Graph } from '../../../../extension/engine/graph/graph';
import { sumAll } from '../../../../extension/engine/graph/ops';
import { RandomStream } from '../../../../extension/engine/sampling/random-stream';
import { float32, Session } from '../../../../extension/engine/session/session';
import { batchFeeds, scalarFeeds } from '../../../../extension/models/graphs/batch-feeds';
import { planPasses } from '../../../../extension/models/graphs/pass-plan';
import { chunkLoss, lossInputs, sequenceLogRatios } from '../../../../extension/models/graphs/policy-loss-graph';
import type { CallablePlugin } from '../../../../extension/trainer/plugins/checked-values';
import { surrogateWith, unclipped } from '../../../../extension/trainer/plugins/plugin-loss';
import { tinyConfig, wholeBatch } from '../../../support/small-models';

const { actor } = actorRolloutRef.shape;
const lossModes = actor.shape.policy_loss.shape.loss_mode.options[0].options;
const lossAggModes = actor.shape.loss_agg_mode.options;
const klKinds = [null, ...actor.shape.kl_loss_type.options];
const switches = [false, true];

const clip = { clip_ratio_low: 0.2, clip_ratio_high: 0.28, clip_ratio_c: 3 };
const gate = { tau_pos: 0.75, tau_neg: 1.5 };
const covariance = { clip_cov_ratio: 0.1, clip_cov_lb: 0.1, clip_cov_ub: 4, kl_cov_ratio: 0.15, ppo_kl_coef: 0.5 };

/** Log-ratios inside and outside every clip region, and beyond the clamps, never at a kink of a loss. */
const logRatios = [0, 0.125, -0.125, 0.5, -0.5, 1, 1.5, -2, 3, 25, -25];
/** Differences to the reference policy, inside and outside the clamps of k3. */
const differences = [0.25, -0.25, 0.5, -0.5, 1.5, -1.5, 5, -4, 14, -25];

interface Token extends PolicySequence {
  entropies: Float32Array;
  ref_logprobs: Float32Array;
  /** Log-probs under the sampler. */
  rollout: Float32Array;
}

/** Sequences of different lengths; some have one sign of the advantage and log-ratios around a common value. */
function sequences(withEmptyRows: boolean): Token[] {
  const stream = new RandomStream(11);
  const pick = (from: readonly number[]): number => from[stream.integer(from.length)];
  const grid = (from: number, to: number): number => (64 * from + stream.integer(64 * (to - from))) / 64;
  return [9, 4, 12, 7, 10, 5].map((length, row) => {
    const isEmpty = withEmptyRows && row % 3 === 1;
    const around = [0, 0.125, -0.5, 0.375, 11, -0.125][row];
    const row32 = (value: (token: number) => number): Float32Array => Float32Array.from({ length }, (_, t) => value(t));
    const logprobs = row32(() => grid(-6, 0));
    return {
      logprobs,
      old_logprobs: row32(t => logprobs[t] - (row % 2 ? around : pick(logRatios))),
      ref_logprobs: row32(t => logprobs[t] - pick(differences)),
      rollout: row32(t => logprobs[t] - grid(-1, 1)),
      advantages: row32(() => (row % 2 ? (row === 3 ? 1 : -0.75) : grid(-2, 2))),
      entropies: row32(() => grid(0, 3)),
      mask: Uint8Array.from({ length }, (_, t) => (!isEmpty && t > 0 && stream.uniform() < 0.8 ? 1 : 0)),
    };
  });
}

/** `sequences` with advantages weighted by the importance ratio of each token, as before an update. */
function corrected(batch: readonly Token[]): Token[] {
  const rows = { old: batch.map(s => Float32Array.from(s.old_logprobs)), rollout: batch.map(s => s.rollout) };
  const masks = batch.map(({ mask }) => mask);
  const { weights } = rolloutWeights({ ...rows, masks }, { rollout_is: 'token', rollout_is_threshold: 2 });
  return batch.map((sequence, row) => ({
    ...sequence,
    advantages: Float32Array.from(sequence.advantages, (advantage, t) => advantage * weights[row][t]),
  }));
}

const sessions = new Map<string, Promise<Session>>();
afterAll(async () => {
  for (const session of sessions.values()) await (await session).release();
});

/**
 * A graph of the loss alone: log-probs and entropies are inputs, and its gradients with respect to them are outputs.
 */
function lossSession(mode: LossMode, kl: KlKind | null, entropy: boolean): Promise<Session> {
  const key = `${mode} ${kl} ${entropy}`;
  const known = sessions.get(key);
  if (known) return known;
  const g = new Graph('loss', 'cpu');
  const terms = { mode, kl, entropy };
  const logprob = g.input('logprob', 'float32', ['n']);
  const entropies = g.input('entropy', 'float32', ['n']);
  const inputs = lossInputs(g, terms, vector => [vector]);
  const tokens = { logprob, entropy: entropies, entropySum: sumAll(g, entropies) };
  const ofSequence = () => sequenceLogRatios(g, terms, inputs, [logprob], vector => [vector])[0];
  const { total, sums } = chunkLoss(g, terms, inputs, 0, tokens, ofSequence);
  const slopes = gradients(g, total, entropy ? [logprob, entropies] : [logprob]);
  g.output('loss', total);
  for (const name of outputs) g.output(name, sums[name]);
  slopes.forEach((slope, i) => g.output(['logprob_slope', 'entropy_slope'][i], slope));
  const made = Session.create(g, { threads: 1 });
  sessions.set(key, made);
  return made;
}

const outputs = ['pg_loss', 'entropy_loss', 'kl_loss', 'clipped', 'clipped_lower', 'minus_log_ratio'] as const;

interface GraphLoss {
  loss: number;
  sums: Record<(typeof outputs)[number], number>;
  logprobSlopes: Float32Array[];
  entropySlopes: Float32Array[];
}

type GraphSample = WeightedSample & Pick<Token, 'entropies'> & { logprobs: Float32Array; selected: Float32Array };

/** Loss and gradients of the graph, through the feeds of an update. */
async function graphLoss(batch: readonly Token[], settings: PolicyLossSettings): Promise<GraphLoss> {
  const { loss_mode } = settings.policy_loss!;
  const kl = settings.use_kl_loss ? settings.kl_loss_type : null;
  const session = await lossSession(loss_mode, kl, settings.entropy_coeff !== 0);
  const longest = Math.max(...batch.map(({ mask }) => mask.length));
  const lengths = batch.map(({ mask }) => mask.reduce((sum, bit) => sum + bit, 0));
  const shares = aggregationWeights(lengths, settings.loss_agg_mode, longest);
  const trained = [...batch.keys()].filter(row => lengths[row] > 0);
  const selected = selectedTokens(batch, settings);
  const samples = trained.map((row): GraphSample => ({
    ids: Int32Array.from(batch[row].mask, (_, t) => 1 + row + t),
    mask: batch[row].mask,
    logprobs: Float32Array.from(batch[row].logprobs),
    entropies: batch[row].entropies,
    old_logprobs: Float32Array.from(batch[row].old_logprobs),
    ref_logprobs: batch[row].ref_logprobs,
    advantages: Float32Array.from(batch[row].advantages),
    weights: new Float32Array(batch[row].mask.length).fill(shares[row]),
    selected: Float32Array.from(selected?.[row] ?? batch[row].mask.map(() => 0)),
  }));
  const zeros = (): Float32Array[] => batch.map(({ mask }) => new Float32Array(mask.length));
  const sums = { pg_loss: 0, entropy_loss: 0, kl_loss: 0, clipped: 0, clipped_lower: 0, minus_log_ratio: 0 };
  const found = { loss: 0, sums, logprobSlopes: zeros(), entropySlopes: zeros() };
  for (const pass of planPasses(samples, wholeBatch, { token: 1, pass: 1e6 })) {
    const { gather, scatter, memberships, count } = batchFeeds(pass, samples, tinyConfig);
    const result = await session.run({
      logprob: gather(s => s.logprobs),
      entropy: gather(s => s.entropies),
      old_logprob: gather(s => s.old_logprobs),
      ref_logprob: gather(s => s.ref_logprobs),
      advantage: gather(s => s.advantages),
      weight: gather(s => s.weights),
      memberships: memberships(),
      ...(selected && { selected: gather(s => s.selected) }),
      ...scalarFeeds({
        clip_low: settings.clip_ratio_low,
        clip_high: settings.clip_ratio_high,
        clip_c: settings.clip_ratio_c,
        entropy_coeff: settings.entropy_coeff,
        kl_coef: settings.kl_loss_coef,
        ...gateOf(settings),
        ppo_kl_coef: covarianceOf(settings).ppo_kl_coef,
      }),
    });
    found.loss += (result.loss.data as Float32Array)[0];
    for (const name of outputs) sums[name] += (result[name].data as Float32Array)[0];
    const { entropy_slope = float32(new Float32Array(count), [count]) } = result;
    for (const [slopes, of] of [
      [result.logprob_slope, found.logprobSlopes],
      [entropy_slope, found.entropySlopes],
    ] as const) {
      const rows: Float32Array[] = [];
      scatter(slopes.data as Float32Array, rows);
      rows.forEach((values, sample) => (of[trained[sample]] = values));
    }
  }
  return found;
}

/** Compares numbers with a relative error of at most 1e-6; `size` is that of the terms of a sum, else the largest. */
function expectSame(
  what: string,
  found: ArrayLike<number>,
  expected: ArrayLike<number>,
  size = Array.from(expected).reduce((most, x) => Math.max(most, Math.abs(x)), 0),
): void {
  const worst = Array.from(expected).reduce((most, x, i) => Math.max(most, Math.abs(found[i] - x)), 0);
  expect(found.length, what).toBe(expected.length);
  expect(worst, what).toBeLessThanOrEqual(1e-6 * size);
}

/** Sums of the absolute terms of the loss: terms of both signs may cancel in the loss itself. */
function sizesOf(batch: readonly Token[], settings: PolicyLossSettings, shares: Float64Array) {
  const sizes = { surrogate: 0, entropy: 0, kl: 0, logRatio: 0 };
  const all = tokenLosses(batch, settings);
  batch.forEach((sequence, row) => {
    const losses = all[row];
    sequence.mask.forEach((bit, t) => {
      if (!bit) return;
      const difference = sequence.logprobs[t] - sequence.ref_logprobs[t];
      sizes.surrogate += shares[row] * Math.abs(losses.loss[t]);
      sizes.entropy += shares[row] * sequence.entropies[t];
      sizes.kl += settings.use_kl_loss ? shares[row] * Math.abs(tokenKl(settings.kl_loss_type, difference)) : 0;
      sizes.logRatio += Math.abs(sequence.logprobs[t] - sequence.old_logprobs[t]);
    });
  });
  return sizes;
}

describe.each(lossModes)('%s', loss_mode => {
  describe.each(lossAggModes)('%s', loss_agg_mode => {
    it.each(klKinds)('with KL estimator %s equals its definition, with its gradient', async kl => {
      for (const withEmptyRows of switches)
        for (const isCorrected of switches)
          for (const entropy_coeff of [0, 0.125]) {
            const drawn = sequences(withEmptyRows);
            const batch = isCorrected ? corrected(drawn) : drawn;
            const settings: PolicyLossSettings = {
              ...clip,
              ...gate,
              policy_loss: { loss_mode, ...covariance },
              loss_agg_mode,
              entropy_coeff,
              use_kl_loss: kl !== null,
              kl_loss_coef: 0.25,
              kl_loss_type: kl ?? 'kl',
            };
            const at = JSON.stringify({ loss_mode, loss_agg_mode, kl, withEmptyRows, isCorrected, entropy_coeff });
            const lengths = batch.map(({ mask }) => mask.reduce((sum, bit) => sum + bit, 0));
            const tokens = lengths.reduce((sum, length) => sum + length, 0);
            const shares = aggregationWeights(lengths, loss_agg_mode, Math.max(...batch.map(s => s.mask.length)));
            const size = sizesOf(batch, settings, shares);
            const expected = policyLoss(batch, settings);
            const { loss, sums, logprobSlopes, entropySlopes } = await graphLoss(batch, settings);
            const all = size.surrogate + entropy_coeff * size.entropy + settings.kl_loss_coef * size.kl;
            expectSame(`loss of ${at}`, [loss], [expected.loss], all);
            expectSame(`pg_loss of ${at}`, [sums.pg_loss], [expected.pg_loss], size.surrogate);
            expectSame(`entropy of ${at}`, [sums.entropy_loss], [expected.entropy]);
            expectSame(`kl_loss of ${at}`, [sums.kl_loss], [expected.kl_loss], size.kl);
            expectSame(`pg_clipfrac of ${at}`, [sums.clipped / tokens], [expected.pg_clipfrac]);
            expectSame(`pg_clipfrac_lower of ${at}`, [sums.clipped_lower / tokens], [expected.pg_clipfrac_lower]);
            expectSame(`ppo_kl of ${at}`, [sums.minus_log_ratio], [expected.ppo_kl * tokens], size.logRatio);
            const slopes = policyLossGradient(batch, settings);
            expectSame(
              `gradient of ${at}`,
              logprobSlopes.flatMap(row => [...row]),
              slopes.flatMap(row => [...row]),
            );
            expect(slopes.flatMap(row => [...row]).some(slope => slope !== 0)).toBe(true);
            expectSame(
              `entropy gradient of ${at}`,
              entropySlopes.flatMap(row => [...row]),
              batch.flatMap(({ mask }, row) => Array.from(mask, bit => (bit ? -entropy_coeff * shares[row] : 0))),
            );
          }
    });
  });
});

it.each(lossModes)('the surrogate of a plug-in that computes %s has the gradient of its graph', async loss_mode => {
  const batch = sequences(true);
  const policy_loss = { loss_mode, ...covariance };
  const terms = { entropy_coeff: 0, use_kl_loss: false, kl_loss_coef: 0, kl_loss_type: 'kl' } as const;
  const settings = { ...clip, ...gate, ...terms, loss_agg_mode: 'token-mean', policy_loss, selection_seed: 5 } as const;
  const lengths = batch.map(({ mask }) => mask.reduce((sum, bit) => sum + bit, 0));
  const shares = aggregationWeights(lengths, settings.loss_agg_mode, Math.max(...batch.map(s => s.mask.length)));
  const plugin: CallablePlugin = {
    path: 'plugins/own.ts',
    description: { kind: 'loss', name: 'own', functions: ['loss'], properties: {} },
    call: async (_function: string, ...args: unknown[]) =>
      builtInLosses[loss_mode].loss(...(args as Parameters<(typeof builtInLosses)[LossMode]['loss']>)),
  };
  const samples = batch.map(({ mask, old_logprobs, ref_logprobs, advantages }, row): WeightedSample => ({
    ...{ ids: new Int32Array(mask.length), mask, ref_logprobs },
    old_logprobs: Float32Array.from(old_logprobs),
    advantages: Float32Array.from(advantages),
    weights: new Float32Array(mask.length).fill(shares[row]),
  }));
  const logprobs = batch.map(sequence => Float32Array.from(sequence.logprobs));
  const given = { ...clip, ...gate, ...covariance, step: 1, seed: settings.selection_seed };
  const surrogate = await surrogateWith(plugin, samples, logprobs, given);

  const expected = await graphLoss(batch, settings);
  const moved = batch.map((sequence, row) => ({
    ...sequence,
    old_logprobs: surrogate.samples[row].old_logprobs,
    advantages: surrogate.samples[row].advantages,
  }));
  const found = await graphLoss(moved, { ...settings, ...unclipped, policy_loss: { loss_mode: 'vanilla' } });
  const flat = (rows: readonly Float32Array[]): number[] => rows.flatMap(row => [...row]);
  expectSame('gradient', flat(found.logprobSlopes), flat(expected.logprobSlopes));
  const { pg_loss, pg_clipfrac, pg_clipfrac_lower } = surrogate.metrics;
  const tokens = lengths.reduce((sum, length) => sum + length, 0);
  expectSame('pg_loss', [pg_loss], [expected.sums.pg_loss], sizesOf(batch, settings, shares).surrogate);
  expectSame('pg_clipfrac', [pg_clipfrac], [expected.sums.clipped / tokens]);
  expectSame('pg_clipfrac_lower', [pg_clipfrac_lower], [expected.sums.clipped_lower / tokens]);
});
