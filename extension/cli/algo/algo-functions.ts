// The functions that `ragen algo` evaluates: each function has an input schema (zod) and returns a result. The
// functions call the algorithms that training uses; this file only converts numbers to arrays and back. Inputs are
// rounded to float32, because the tensors of the original implementations are float32. Contract: results have the keys
// listed in docs/TERMINAL.md; for an invalid case, a function throws a UserError whose message begins with the invalid
// key.
import { z } from 'zod';
import { lossAggModes, lossModes } from '../../algorithms/policy-loss-options';
import { UserError } from '../../common/user-error';
import { selectGroups } from '../../algorithms/group-selection';
import { klKindNamed, tokenKl } from '../../algorithms/kl';
import { policyLoss, tokenLosses } from '../../algorithms/policy-loss';
import { normalizeRewards } from '../../algorithms/reward-normalization';
import { valueLoss } from '../../algorithms/value-loss';
import { collapseMetrics } from '../../trainer/diagnostics/collapse-metrics';
import { advantage } from './algo-advantage';
import {
  define,
  ids,
  index,
  maskOf,
  maskRows,
  numbered,
  numbers,
  rows,
  sameLength,
  sameShape,
  shortest,
} from './algo-forms';
import type { AlgoFunction } from './algo-forms';

const filter = define(
  z.object({
    scores: z.array(z.number().nullable()),
    rollout_filter_value: z.number().default(1),
    rollout_filter_strategy: z.string().default('top_p'),
    rollout_filter_type: z.string().default('largest'),
    rollout_filter_include_zero: z.boolean().default(true),
    rollout_filter_top_p_prob_mode: z.string().default('linear'),
    rollout_filter_selection_eps: z.number().default(0.01),
  }),
  ({ scores, ...options }) => {
    try {
      const kept = selectGroups(
        Float32Array.from(scores, score => score ?? NaN),
        options as Parameters<typeof selectGroups>[1],
      );
      return { kept: kept.toSorted((a, b) => a - b) };
    } catch (error) {
      if (error instanceof UserError) return { error: error.message };
      throw error;
    }
  },
);

const policy = define(
  z.object({
    logprob: rows,
    old_logprob: rows,
    advantages: rows,
    mask: maskRows.optional(),
    clip_low: z.number().default(0.2),
    clip_high: z.number().default(0.28),
    dual_clip: z.number().gt(1).default(3),
    tau_pos: z.number().positive().optional(),
    tau_neg: z.number().positive().optional(),
    clip_cov_ratio: z.number().min(0).max(1).optional(),
    clip_cov_lb: z.number().optional(),
    clip_cov_ub: z.number().optional(),
    kl_cov_ratio: z.number().min(0).max(1).optional(),
    ppo_kl_coef: z.number().min(0).optional(),
    selection_seed: z.number().int().optional(),
    loss_agg_mode: z.enum(lossAggModes).default('token-mean'),
    loss_mode: z.enum(lossModes).default('vanilla'),
  }),
  ({ logprob, old_logprob, advantages, mask, loss_agg_mode, loss_mode, ...bounds }) => {
    sameShape('logprob', logprob, { old_logprob, advantages, mask });
    const sequences = logprob.map((row, i) => ({
      logprobs: Float32Array.from(row),
      old_logprobs: Float32Array.from(old_logprob[i]),
      advantages: Float32Array.from(advantages[i]),
      mask: maskOf(mask?.[i], row.length),
    }));
    const { clip_low, clip_high, dual_clip, tau_pos, tau_neg, selection_seed, ...covariance } = bounds;
    const clip = { clip_ratio_low: clip_low, clip_ratio_high: clip_high, clip_ratio_c: dual_clip, tau_pos, tau_neg };
    const terms = { entropy_coeff: 0, use_kl_loss: false, kl_loss_coef: 0, kl_loss_type: 'kl' } as const;
    const policy_loss = { loss_mode, ...covariance };
    const settings = { ...clip, ...terms, loss_agg_mode, policy_loss, selection_seed };
    const loss = policyLoss(sequences, settings);
    return {
      per_token: tokenLosses(sequences, settings).map(({ loss }) => [...loss]),
      loss: loss.pg_loss,
      clipfrac: loss.pg_clipfrac,
      ppo_kl: loss.ppo_kl,
    };
  },
);

const value = define(
  z.object({
    vpreds: rows,
    returns: rows,
    old_values: rows,
    mask: maskRows.optional(),
    clip: z.number().min(0).default(0.5),
  }),
  ({ vpreds, returns, old_values, mask, clip }) => {
    sameShape('vpreds', vpreds, { returns, old_values, mask });
    const sequences = vpreds.map((row, i) => ({
      values: Float32Array.from(row),
      old_values: Float32Array.from(old_values[i]),
      returns: Float32Array.from(returns[i]),
      mask: maskOf(mask?.[i], row.length),
    }));
    const { vf_loss, vf_clipfrac } = valueLoss(sequences, clip);
    return { loss: vf_loss, clipfrac: vf_clipfrac };
  },
);

const kl = define(z.object({ logprob: rows, ref: rows, kind: z.string() }), ({ logprob, ref, kind }) => {
  sameShape('logprob', logprob, { ref });
  const known = klKindNamed(kind);
  if (!known) throw new UserError(`"kind" is ${JSON.stringify(kind)}: use kl, k1, abs, mse, k2, low_var_kl or k3`);
  return {
    per_token: logprob.map((row, i) => row.map((x, t) => tokenKl(known, Math.fround(x) - Math.fround(ref[i][t])))),
  };
});

const normalise = define(
  z.object({
    scores: numbers,
    penalties: numbers.optional(),
    group: ids.optional(),
    tag: ids.optional(),
    grouping: z.enum(['state', 'inductive', 'batch']).default('state'),
    method: z.enum(['identity', 'mean', 'mean_std', 'asym_clip']).default('identity'),
  }),
  ({ scores, penalties, group, tag, grouping, method }) => {
    sameLength('scores', scores, { penalties, group, tag });
    const needed = { state: { group }, inductive: { tag }, batch: {} }[grouping];
    for (const [key, given] of Object.entries(needed))
      if (!given)
        throw new UserError(`the key "${key}" is missing, but "grouping" is ${grouping}: give one entry per score`);
    const episodes = {
      scores: scores.map((score, i) => Math.fround(score) + Math.fround(penalties?.[i] ?? 0)),
      groups: numbered(group ?? []),
      tags: (tag ?? []).map(String),
    };
    return { scores: Array.from(normalizeRewards(episodes, { grouping, method }), shortest) };
  },
);

const collapse = define(
  z.object({
    log_probs_per_token: rows,
    lengths: z.array(index),
    column: z.array(index),
    signatures: z.array(z.json()),
  }),
  ({ log_probs_per_token, lengths, column, signatures }) => {
    const perToken = log_probs_per_token.map(row => Float32Array.from(row));
    const scores = { perToken, lengths, columns: column, signatures: signatures.map(one => JSON.stringify(one)) };
    return { metrics: collapseMetrics(scores).metrics };
  },
);

/** All functions, by their names on the command line. */
export const algoFunctions: Readonly<Record<string, AlgoFunction>> = {
  advantage,
  filter,
  'policy-loss': policy,
  'value-loss': value,
  kl,
  normalise,
  collapse,
};
