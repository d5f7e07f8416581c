// Computes RAGEN-2's four regimes of reasoning from a run's consecutive diagnoses of one family. Two tests determine
// the regime: whether reasoning depends on its prompt, measured by I(X;Z), and whether reasoning varies for the same
// prompt, measured by H(Z|X). The paper gives no thresholds. The threshold of I(X;Z) is a share of the run's own
// maximum, because I(X;Z) differs between runs even if all of them are healthy. The constants were fitted on half of a
// set of test runs and checked on the other half (test/experiments/5-regimes.yaml). Pure functions, used by trainer and
// Collapse page.
import { maximum } from '../common/lists';

/** The regimes, from healthy to collapsed; the metric `regime` is the 1-based index. */
export const regimes = [
  'diverse reasoning',
  'compressed reasoning',
  'template collapse',
  'low-entropy collapse',
] as const;
export type Regime = (typeof regimes)[number];

/** Measured values of one diagnosis. Information and entropy are in nats per token. */
export interface RegimeMeasure {
  /** Mutual information I(X;Z). */
  information: number;
  /** Lower end of the 95 % interval of I(X;Z); NaN if no interval was computed. */
  informationLow: number;
  /** Conditional entropy H(Z|X). */
  entropy: number;
  /** Retrieval accuracy from 0 (chance) to 1; NaN if it was not computed. */
  retrieval: number;
}

/** Values of earlier diagnoses that are needed to judge the next diagnosis. */
export type RegimeHistory = {
  /** Maximum, over all diagnoses so far, of the lower end of the 95 % interval of I(X;Z). */
  best: number;
  /** Results of the last diagnosis: I(X;Z), H(Z|X), and the retrieval accuracy, which is null if not computed. */
  information: number;
  entropy: number;
  retrieval: number | null;
};

export interface RegimeJudgement {
  regime: Regime;
  /** Probability that the regime is correct, 0.25…1, calibrated on the set of test runs. */
  confidence: number;
  /**
   * Thresholds in nats per token. Reasoning is judged dependent on its prompt if I(X;Z) is at least `information`,
   * and varied if H(Z|X) is at least `entropy`.
   */
  thresholds: { information: number; entropy: number };
}

/** Constants of the rule. Entropies and information are in nats per token. */
export const regimeRule = {
  /** Threshold of I(X;Z) as a share of `best`. */
  share: 0.7,
  /** Retrieval accuracy at or above which reasoning is judged dependent on its prompt, regardless of I(X;Z). */
  retrieval: 0.5,
  /** Minimum of the threshold of I(X;Z). */
  floor: 0.05,
  /** Threshold of H(Z|X) for reasoning that depends on its prompt. */
  entropy: 0.3,
  /**
   * Threshold of H(Z|X) for reasoning that does not depend on its prompt. This threshold is higher, because a few
   * different texts among many equal texts raise H(Z|X), which is a mean.
   */
  entropyAlone: 0.8,
  /** Weight of the newest diagnosis in the average of the newest and the previous diagnosis. */
  newest: 0.6,
  /** Slopes of the two logistic curves that convert ln(value ÷ threshold) to a probability. */
  dependenceSlope: 12,
  varietySlope: 12,
} as const;

/**
 * Minimum number of prompts for a reliable diagnosis. With N prompts, I(X;Z) is at most ln N. With fewer prompts than
 * this minimum, ln N is too small, and the correct prompt is often retrieved by chance.
 */
export const enoughPrompts = 8;

/**
 * Minimum share of answers with a readable thought (`thoughts/rate`) for which a regime is shown. If the share is
 * smaller, the model no longer follows the format, and the text between its think tags is not reasoning.
 */
export const enoughThoughts = 0.5;

/** Rescales retrieval accuracy so that 0 is the accuracy of guessing and 1 is perfect; NaN if `chance` is 1. */
export const retrievalOverChance = (accuracy: number, chance: number): number => (accuracy - chance) / (1 - chance);

/** Lower bound applied to values before logarithms. */
const smallest = 1e-3;

/**
 * Judges a diagnosis. `history` is the history returned by the previous call for the same family; null for the first
 * diagnosis.
 */
export function judgeRegime(
  history: RegimeHistory | null,
  measure: RegimeMeasure,
  rule: Readonly<Record<keyof typeof regimeRule, number>> = regimeRule,
): { judgement: RegimeJudgement; history: RegimeHistory } {
  const smoothed = (key: 'information' | 'entropy' | 'retrieval'): number => {
    const last = history?.[key] ?? null;
    return last === null ? measure[key] : rule.newest * measure[key] + (1 - rule.newest) * last;
  };
  const low = Number.isFinite(measure.informationLow) ? measure.informationLow : measure.information;
  const best = Math.max(history?.best ?? low, low);
  const information = Math.max(rule.share * best, rule.floor);
  // A rise of I(X;Z) is not smoothed. `best`, and with it the threshold, rises immediately; a smoothed value could be
  // below the new threshold.
  const said = Math.max(smoothed('information'), measure.information);
  const ratios = [logRatio(said, information), logRatio(smoothed('retrieval'), rule.retrieval)];
  const dependent = logistic(rule.dependenceSlope * maximum(ratios.filter(Number.isFinite)));
  const entropy = dependent >= 0.5 ? rule.entropy : rule.entropyAlone;
  const varied = logistic(rule.varietySlope * logRatio(smoothed('entropy'), entropy));
  return {
    judgement: {
      regime: regimes[(dependent >= 0.5 ? 0 : 2) + (varied >= 0.5 ? 0 : 1)],
      confidence: Math.max(dependent, 1 - dependent) * Math.max(varied, 1 - varied),
      thresholds: { information, entropy },
    },
    history: {
      best,
      information: measure.information,
      entropy: measure.entropy,
      retrieval: Number.isFinite(measure.retrieval) ? measure.retrieval : null,
    },
  };
}

/** Judges diagnoses in order. A judgement depends only on the judged diagnosis and on earlier diagnoses. */
export function judgeRegimes(measures: readonly RegimeMeasure[]): RegimeJudgement[] {
  let history: RegimeHistory | null = null;
  return measures.map(measure => {
    const judged = judgeRegime(history, measure);
    history = judged.history;
    return judged.judgement;
  });
}

const logRatio = (value: number, threshold: number): number => Math.log(Math.max(value, smallest) / threshold);

const logistic = (x: number): number => 1 / (1 + Math.exp(-x));
