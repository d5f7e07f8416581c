// Metrics of template collapse (RAGEN-2): how much a reasoning text says about the prompt it was written under. From
// the cross-scoring matrix of log p(z_i | x_j) they estimate mutual information, entropies and how well the prompt is
// found again, under RAGEN's names. RAGEN's per-token marginal mixes length-normalised log-probs, a geometric mean; the
// paper's formula, the log-prob of the mixture divided by the length, has names of its own beginning with `paper_`.
// Pure functions in double precision; they agree with float32 to 1e-5.
import { maximum } from '../../common/lists';
import type { RegimeHistory } from '../../run-data/regimes';
import { UserError } from '../../common/user-error';

/** What cross-scoring found. Rows are samples (reasoning texts), columns prompts; logs are natural. */
export interface CrossScores {
  /** L: mean log-prob of a token of z_i after prompt x_j. All rows have one entry a column. */
  perToken: readonly ArrayLike<number>[];
  /** Tokens of each z_i; 0 counts as 1. */
  lengths: ArrayLike<number>;
  /** Column of the prompt that each z_i was written under. */
  columns: ArrayLike<number>;
  /** One a column; columns with equal signatures hold the same prompt. */
  signatures: readonly (string | number)[];
}

/** Running average of the marginal's deviation, by token and by sequence. */
export type MarginalSpread = { token: number; sequence: number };

/** State carried from one diagnosis to the next; part of checkpoints. */
export type CollapseState = {
  /** By family of pairs. */
  spread: Record<string, MarginalSpread>;
  /** By family of pairs; absent from checkpoints of versions before 0.2. */
  regimes?: Record<string, RegimeHistory>;
  /** Seconds spent on all diagnoses so far. */
  seconds: number;
};

export const nothingDiagnosed: CollapseState = { spread: {}, regimes: {}, seconds: 0 };

/** What RAGEN fixes in code. */
const collapseConstants = { stdEps: 1e-3, emaDecay: 0.9 } as const;

export interface CollapseMetrics {
  /** By RAGEN's suffixes, and `paper_…`. */
  metrics: Record<string, number>;
  spread: MarginalSpread;
  /** What each sample adds to the means, for confidence intervals. */
  samples: SampleStatistics;
}

/** One entry a sample. `seq` speaks of whole sequences, `paper` of the paper's marginal per token. */
export interface SampleStatistics {
  matched: Float64Array;
  marginal: Float64Array;
  matchedSeq: Float64Array;
  marginalSeq: Float64Array;
  marginalPaper: Float64Array;
  /** 1 where the likeliest prompt is the sample's own. */
  retrieved: Float64Array;
}

const retrievalDepths = [2, 4, 8] as const;

/**
 * All metrics of a matrix. `spread` is what the last diagnosis of the same family gave, null for the first. Throws a
 * UserError where the shapes do not fit together or there is nothing to measure.
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

/** Columns from the likeliest down; of equal ones the first comes first. */
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

/** Log of the mean of exponentials; exactly x where all are x. */
function logMean(logs: ArrayLike<number>): number {
  const all = Array.from(logs);
  const most = maximum(all);
  return most + Math.log(all.reduce((sum, x) => sum + Math.exp(x - most), 0) / all.length);
}

const difference = (a: Float64Array, b: Float64Array): Float64Array => a.map((x, i) => x - b[i]);

function mean(values: Float64Array): number {
  return values.reduce((sum, x) => sum + x, 0) / values.length;
}

/** Population standard deviation. */
function deviation(values: Float64Array): number {
  const centre = mean(values);
  return Math.sqrt(mean(values.map(x => (x - centre) ** 2)));
}

function requireShapes({ perToken, lengths, columns, signatures }: CrossScores): void {
  const [rows, width] = [perToken.length, signatures.length];
  if (rows === 0 || width === 0)
    throw new UserError(`collapse: the matrix is ${rows} × ${width}: give at least one sample and one prompt`);
  const ragged = perToken.findIndex(row => row.length !== width);
  if (ragged >= 0)
    throw new UserError(
      `collapse: row ${ragged} has ${perToken[ragged].length} log-probs for ${width} signatures: give one for each column`,
    );
  if (lengths.length !== rows || columns.length !== rows)
    throw new UserError(
      `collapse: ${rows} rows have ${lengths.length} lengths and ${columns.length} columns of their own: give one of each a row`,
    );
  const astray = Array.from(columns).findIndex(column => !Number.isInteger(column) || column < 0 || column >= width);
  if (astray >= 0)
    throw new UserError(`collapse: row ${astray} names column ${columns[astray]} of ${width}: count columns from 0`);
}
