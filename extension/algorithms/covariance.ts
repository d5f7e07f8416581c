// Clip-Cov and KL-Cov (Cui et al., 2025, "The Entropy Mechanism of Reinforcement Learning"): restrain the few tokens whose
// log-prob and advantage are both far above their means, because their updates lower the entropy most. Clip-Cov leaves some
// of them out of the loss, KL-Cov adds a penalty to them. Formulas of verl; the covariance of a token is
// (A − mean A) · (log π − mean log π) over the sampled tokens. The tokens are selected over the whole mini-batch, in
// verl over each micro-batch. `ragen algo` evaluates this file; training uses graph operations
// (models/graphs/policy-loss-graph.ts) for the losses. A test compares the two, so change both.
import { seededRandom } from '../common/seeded-random';
import { tokenPolicyLoss, type TokenLoss } from './clipped-surrogate';
import { clamp } from './kl';
import {
  covarianceOf,
  largestLogRatio,
  lossModeOf,
  selectsTokens,
  type ClipOptions,
  type CovarianceOptions,
  type PolicyLossSettings,
} from './policy-loss-options';

/**
 * One sequence. All arrays have one entry per token; only entries with mask = 1 are read, except by `tokenLosses`.
 * Log-probs are in nats.
 */
export interface SampledSequence {
  logprobs: ArrayLike<number>;
  old_logprobs: ArrayLike<number>;
  advantages: ArrayLike<number>;
  mask: Uint8Array;
}

/** A sequence with the names of the interface of losses (`LossSequence`), in numbers of any precision. */
export interface LossInput extends Pick<SampledSequence, 'logprobs' | 'advantages' | 'mask'> {
  old: ArrayLike<number>;
}

export const lossInput = ({ logprobs, old_logprobs: old, advantages, mask }: SampledSequence): LossInput => ({
  ...{ logprobs, old, advantages, mask },
});

/** A sampled token, by sequence and position, and its covariance. */
interface Candidate {
  row: number;
  token: number;
  covariance: number;
}

/**
 * Returns 1 for each token of a mini-batch that Clip-Cov leaves out or that KL-Cov penalizes, and 0 for all other tokens, one array
 * per sequence. Undefined for the other loss modes.
 */
export function selectedTokens(
  sequences: readonly SampledSequence[],
  settings: PolicyLossSettings,
): Uint8Array[] | undefined {
  const mode = lossModeOf(settings);
  if (!selectsTokens(mode)) return undefined;
  const options = { ...settings, ...covarianceOf(settings), seed: settings.selection_seed ?? 0 };
  return (mode === 'kl_cov' ? klCovTokens : clipCovTokens)(sequences.map(lossInput), options);
}

/**
 * Returns 1 for each token that KL-Cov penalizes: those with the largest covariance, of equal ones the first. Their
 * number is the share `kl_cov_ratio` of the sampled tokens, rounded down, at least 1.
 */
export function klCovTokens(
  sequences: readonly LossInput[],
  { kl_cov_ratio }: Pick<CovarianceOptions, 'kl_cov_ratio'>,
): Uint8Array[] {
  const all = covariances(sequences);
  const largest = all.toSorted((a, b) => b.covariance - a.covariance);
  return marked(sequences, largest.slice(0, Math.max(Math.floor(kl_cov_ratio * all.length), 1)));
}

/**
 * Returns 1 for each token that Clip-Cov leaves out, chosen at random from the tokens whose covariance lies between
 * `clip_cov_lb` and `clip_cov_ub` and that the clip of the ratio leaves unchanged. Their number is the share
 * `clip_cov_ratio` of the sampled tokens, rounded down, at least 1.
 */
export function clipCovTokens(
  sequences: readonly LossInput[],
  settings: ClipOptions & Omit<CovarianceOptions, 'kl_cov_ratio' | 'ppo_kl_coef'> & { seed: number },
): Uint8Array[] {
  const { clip_cov_ratio, clip_cov_lb, clip_cov_ub, seed } = settings;
  const all = covariances(sequences);
  const candidates = all.filter(
    ({ row, token, covariance }) =>
      covariance > clip_cov_lb && covariance < clip_cov_ub && !isClipped(sequences[row], token, settings),
  );
  const count = Math.min(Math.max(Math.floor(clip_cov_ratio * all.length), 1), candidates.length);
  const random = seededRandom(seed);
  for (let i = 0; i < count; i++) {
    const j = i + Math.floor(random() * (candidates.length - i));
    [candidates[i], candidates[j]] = [candidates[j], candidates[i]];
  }
  return marked(sequences, candidates.slice(0, count));
}

/** Returns 1 for the chosen tokens and 0 for all others, one array per sequence. */
function marked(sequences: readonly LossInput[], chosen: readonly Candidate[]): Uint8Array[] {
  const marks = sequences.map(({ mask }) => new Uint8Array(mask.length));
  for (const { row, token } of chosen) marks[row][token] = 1;
  return marks;
}

/** Returns the covariance of every sampled token. */
function covariances(sequences: readonly LossInput[]): Candidate[] {
  const sampled = sequences.flatMap(({ mask }, row) =>
    Array.from(mask.keys()).flatMap(token => (mask[token] ? [{ row, token }] : [])),
  );
  const meanOf = (pick: (sequence: LossInput) => ArrayLike<number>): number =>
    sampled.reduce((sum, { row, token }) => sum + pick(sequences[row])[token], 0) / Math.max(sampled.length, 1);
  const [advantage, logprob] = [meanOf(s => s.advantages), meanOf(s => s.logprobs)];
  return sampled.map(({ row, token }) => {
    const { advantages, logprobs } = sequences[row];
    return { row, token, covariance: (advantages[token] - advantage) * (logprobs[token] - logprob) };
  });
}

/** Whether the clip of the ratio changes the loss of the token. */
const isClipped = ({ logprobs, old, advantages }: LossInput, token: number, options: ClipOptions): boolean =>
  clipOnly(logprobs[token] - old[token], advantages[token], options).clipped;

/** PPO's clipped surrogate without the dual clip. */
const clipOnly = (logRatio: number, advantage: number, options: ClipOptions): TokenLoss =>
  tokenPolicyLoss(logRatio, advantage, { ...options, clip_ratio_c: Infinity });

/** Returns the loss of one token under Clip-Cov; `selected` tokens have no loss and no gradient. */
export function clipCovTokenLoss(
  logRatio: number,
  advantage: number,
  selected: boolean,
  options: ClipOptions,
): TokenLoss {
  const { loss, slope } = clipOnly(logRatio, advantage, options);
  const share = selected ? 0 : 1;
  return { loss: share * loss, slope: share * slope, clipped: selected, clippedLower: false };
}

/**
 * Returns the loss of one token under KL-Cov, which clips no ratio: `selected` tokens have the penalty
 * `coefficient` · |log-ratio|. The log-ratio of the surrogate is bounded by ±20.
 */
export function klCovTokenLoss(logRatio: number, advantage: number, selected: boolean, coefficient: number): TokenLoss {
  const plain = -advantage * Math.exp(clamp(logRatio, -largestLogRatio, largestLogRatio));
  const penalty = selected ? coefficient : 0;
  return {
    loss: plain + penalty * Math.abs(logRatio),
    slope: (Math.abs(logRatio) > largestLogRatio ? 0 : plain) + penalty * Math.sign(logRatio),
    clipped: selected,
    clippedLower: false,
  };
}
