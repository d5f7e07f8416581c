// Metrics of template collapse (RAGEN-2): how strongly a reasoning text depends on the prompt after which it was
// sampled. The input is a matrix of log p(z_i | x_j): each reasoning text scored under each prompt (cross-scoring). The
// outputs are mutual information, entropies and retrieval accuracy, under RAGEN's names. For the marginal per token,
// RAGEN's code averages length-normalised probabilities. The RAGEN-2 paper instead divides the log-prob of the mixture
// by the length. Metrics that use the paper's formula have names that begin with `paper_`. Pure functions in double
// precision; results agree with a float32 implementation to 1e-5.
import { maximum } from '../../common/lists';
import type { RegimeHistory } from '../../run-data/regimes';
import { UserError } from '../../common/user-error';

/**
 * Result of cross-scoring: one row per sample (reasoning text z_i), one column per prompt x_j. Logarithms are natural.
 */
export interface CrossScores {
  /** Mean log-prob per token of z_i after prompt x_j, in nats; every row has one entry per column. */
  perToken: readonly ArrayLike<number>[];
  /** Number of tokens of each z_i; 0 is treated as 1. */
  lengths: ArrayLike<number>;
  /** Column index of the prompt with which each z_i was sampled. */
  columns: ArrayLike<number>;
  /** One signature per column; columns with equal signatures belong to the same prompt. */
  signatures: readonly (string | number)[];
}

/** Exponential moving averages of the standard deviation of the marginal log-prob, per token and per sequence. */
export type MarginalSpread = { token: number; sequence: number };

/** State of the diagnosis between steps, stored in checkpoints. */
export type CollapseState = {
  /** Moving averages, by name of the pair family. */
  spread: Record<string, MarginalSpread>;
  /**
   * Earlier values from which the next regime is judged, by name of the pair family; absent from checkpoints of
   * versions before 0.2.
   */
  regimes?: Record<string, RegimeHistory>;
  /** Seconds spent on all diagnoses of the run. */
  seconds: number;
};

export const nothingDiagnosed: CollapseState = { spread: {}, regimes: {}, seconds: 0 };

/**
 * RAGEN's hard-coded constants: the term added to the denominator of z-scores, and the decay of the moving averages.
 */
const collapseConstants = { stdEps: 1e-3, emaDecay: 0.9 } as const;

export interface CollapseMetrics {
  /**
   * Values by RAGEN's metric names, without the name of the family. Metrics that use the paper's formula have names
   * that begin with `paper_`.
   */
  metrics: Record<string, number>;
  spread: MarginalSpread;
  /** Values per sample, from which confidence intervals are computed. */
  samples: SampleStatistics;
}

/**
 * Arrays have one entry per sample; log-probs are in nats. `matched` and `marginal` are means per token. Fields with
 * the suffix `Seq` are sums over the sequence. `marginalPaper` is the marginal per token according to the paper's
 * formula.
 */
export interface SampleStatistics {
  matched: Float64Array;
  marginal: Float64Array;
  matchedSeq: Float64Array;
  marginalSeq: Float64Array;
  marginalPaper: Float64Array;
  /** 1 if the reasoning text has its highest log-prob under its own prompt, otherwise 0. */
  retrieved: Float64Array;
}

const retrievalDepths = [2, 4, 8] as const;

/**
 * Computes all metrics of a cross-scoring matrix.
 * @param spread moving averages after the previous diagnosis of the same family; null for the first diagnosis
 * @throws UserError if the shapes are inconsistent, or the matrix has no rows or no columns
 */
export function collapseMetrics(
  scores: CrossScores,
  spread: MarginalSpread | null = null,
  { stdEps, emaDecay }: { stdEps: number; emaDecay: number } = collapseConstants,
): CollapseMetrics {
  requireShapes(scores);
  const samples = sampleStatistics(scores);
  const { matched, marginal, matchedSeq, marginalSeq, marginalPaper } = samples;
  const width = scores.signatures.length;
  const present = { token: deviation(marginal), sequence: deviation(marginalSeq) };
  const average = (kind: keyof MarginalSpread): number =>
    spread === null ? present[kind] : emaDecay * spread[kind] + (1 - emaDecay) * present[kind];
  const next = { token: average('token'), sequence: average('sequence') };
  const information = mean(difference(matched, marginal));
  const informationSeq = mean(difference(matchedSeq, marginalSeq));
  const informationPaper = mean(difference(matched, marginalPaper));
  const spreadPaper = deviation(marginalPaper);
  return {
    samples,
    spread: next,
    metrics: {
      mi_estimate: information,
      mi_seq_estimate: informationSeq,
      mi_upper_bound: Math.log(width),
      matched_log_prob_mean: mean(matched),
      marginal_log_prob_mean: mean(marginal),
      conditional_entropy_est: -mean(matched),
      conditional_entropy_seq_est: -mean(matchedSeq),
      reasoning_entropy_est: -mean(marginal),
      reasoning_entropy_seq_est: -mean(marginalSeq),
      ...retrieval(scores, samples.retrieved),
      marginal_std: present.token,
      marginal_std_seq: present.sequence,
      mi_zscore: information / (present.token + stdEps),
      mi_zscore_seq: informationSeq / (present.sequence + stdEps),
      marginal_std_ema: next.token,
      marginal_std_ema_seq: next.sequence,
      mi_zscore_ema: information / (next.token + stdEps),
      mi_zscore_ema_seq: informationSeq / (next.sequence + stdEps),
      paper_mi_estimate: informationPaper,
      paper_marginal_log_prob_mean: mean(marginalPaper),
      paper_reasoning_entropy_est: -mean(marginalPaper),
      paper_marginal_std: spreadPaper,
      paper_mi_zscore: informationPaper / (spreadPaper + stdEps),
    },
  };
}

function sampleStatistics(scores: CrossScores): SampleStatistics {
  const { perToken, lengths, columns, signatures } = scores;
  const tokens = (i: number): number => Math.max(lengths[i], 1);
  const each = (of: (row: ArrayLike<number>, i: number) => number): Float64Array => Float64Array.from(perToken, of);
  const marginalSeq = each((row, i) => logMean(Float64Array.from(row, x => x * tokens(i))));
  return {
    matched: each((row, i) => row[columns[i]]),
    marginal: each(logMean),
    matchedSeq: each((row, i) => row[columns[i]] * tokens(i)),
    marginalSeq,
    marginalPaper: marginalSeq.map((x, i) => x / tokens(i)),
    retrieved: each((row, i) => Number(signatures[ranked(row)[0]] === signatures[columns[i]])),
  };
}

/** Returns the column indices by descending log-prob; equal log-probs are ordered by index. */
const ranked = (row: ArrayLike<number>): number[] =>
  Array.from(row, (_, j) => j).sort((a, b) => row[b] - row[a] || a - b);

function retrieval({ perToken, columns, signatures }: CrossScores, retrieved: Float64Array): Record<string, number> {
  const width = signatures.length;
  const copies = new Map<string | number, number>();
  for (const signature of signatures) copies.set(signature, (copies.get(signature) ?? 0) + 1);
  const accuracy = mean(retrieved);
  const chance = mean(Float64Array.from(columns, column => copies.get(signatures[column])! / width));
  const metrics: Record<string, number> = {
    retrieval_accuracy: accuracy,
    retrieval_chance_level: chance,
    retrieval_above_chance: accuracy - chance,
  };
  const order = perToken.map(ranked);
  for (const k of retrievalDepths) {
    const depth = Math.min(k, maximum(retrievalDepths), width);
    const found = mean(
      Float64Array.from(order, (best, i) =>
        Number(best.slice(0, depth).some(column => signatures[column] === signatures[columns[i]])),
      ),
    );
    const byChance = Math.min(1, chance * depth);
    metrics[`retrieval_accuracy@${k}`] = found;
    metrics[`retrieval_chance_level@${k}`] = byChance;
    metrics[`retrieval_above_chance@${k}`] = found - byChance;
  }
  return metrics;
}

/** Returns the logarithm of the mean of the exponentials; exactly x if all inputs equal x. */
function logMean(logs: ArrayLike<number>): number {
  const all = Array.from(logs);
  const most = maximum(all);
  return most + Math.log(all.reduce((sum, x) => sum + Math.exp(x - most), 0) / all.length);
}

const difference = (a: Float64Array, b: Float64Array): Float64Array => a.map((x, i) => x - b[i]);

function mean(values: Float64Array): number {
  return values.reduce((sum, x) => sum + x, 0) / values.length;
}

/** Returns the population standard deviation. */
function deviation(values: Float64Array): number {
  const centre = mean(values);
  return Math.sqrt(mean(values.map(x => (x - centre) ** 2)));
}

function requireShapes({ perToken, lengths, columns, signatures }: CrossScores): void {
  const [rows, width] = [perToken.length, signatures.length];
  if (rows === 0 || width === 0)
    throw new UserError(
      `collapse: log_probs_per_token has ${rows} rows, and "signatures" has ${width} entries: give at least one of each`,
    );
  const ragged = perToken.findIndex(row => row.length !== width);
  if (ragged >= 0)
    throw new UserError(
      `collapse: row ${ragged} of log_probs_per_token has ${perToken[ragged].length} entries, but "signatures" has ${width}: give one log-prob per signature`,
    );
  if (lengths.length !== rows || columns.length !== rows)
    throw new UserError(
      `collapse: log_probs_per_token has ${rows} rows, but "lengths" has ${lengths.length} entries and "column" has ${columns.length}: give one entry per row`,
    );
  const astray = Array.from(columns).findIndex(column => !Number.isInteger(column) || column < 0 || column >= width);
  if (astray >= 0)
    throw new UserError(
      `collapse: entry ${astray} of "column" is ${columns[astray]}: use an index from 0 to ${width - 1}`,
    );
}
