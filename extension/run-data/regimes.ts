// RAGEN-2's four regimes of reasoning, judged from a run's diagnoses of one family in order. Two questions decide: does
// the reasoning still depend on its prompt, and does it still vary under one prompt. The paper names no numbers.
// Dependence is measured against the run itself, since a healthy run may begin with little mutual information and the
// share of its bound ln N depends on N and on the length of the thoughts: a run collapses when it loses what it had.
// The constants are fitted on half of a panel of runs and checked on the other half (test/experiments/5-regimes.yaml).
// Pure; the trainer judges with it as it diagnoses, and the Collapse page judges older runs with it.
import { maximum } from '../common/lists';

/** From healthy to dead; `regime` in the metrics counts from 1. */
export const regimes = [
  'diverse reasoning',
  'compressed reasoning',
  'template collapse',
  'low-entropy collapse',
] as const;
export type Regime = (typeof regimes)[number];

/** Of one diagnosis, in nats per token. */
export interface RegimeMeasure {
  /** I(X;Z). */
  information: number;
  /** Lower end of its 95 % interval; NaN where none was computed. */
  informationLow: number;
  /** H(Z|X). */
  entropy: number;
  /** Retrieval accuracy from 0 (chance) to 1; NaN where it was not computed. */
  retrieval: number;
}

/** What is remembered from one diagnosis to the next. */
export type RegimeHistory = {
  /** Largest lower end of the interval of I(X;Z) so far: what the run has certainly had. */
  best: number;
  /** I(X;Z), H(Z|X) and retrieval of the last diagnosis; retrieval is null if it was not computed. */
  information: number;
  entropy: number;
  retrieval: number | null;
};

export interface RegimeJudgement {
  regime: Regime;
  /** Probability that the regime is right, from 0.25 to 1, calibrated on the panel. */
  confidence: number;
  /** From this I(X;Z) on the reasoning depends on its prompt, and from this H(Z|X) on it varies; nats per token. */
  thresholds: { information: number; entropy: number };
}

/**
 * The rule's constants. `share`: the part of its best I(X;Z) that a run may lose before its reasoning counts as
 * independent of the prompt is 1 − share. `retrieval`: reasoning depends on its prompt however little it says of it
 * while prompts are found again this well. `floor`: less I(X;Z) than this, nats per token, is none at any time.
 * `entropy`: reasoning that depends on its prompt varies under one prompt from this H(Z|X) on, nats per token.
 * `entropyAlone`: the same for reasoning that does not depend on it, where a few odd texts among equal ones raise the
 * mean. `newest`: weight of a diagnosis against the one before it. `dependenceSlope`, `varietySlope`: slopes of the two
 * logistic curves over the logarithm of value ÷ threshold.
 */
export const regimeRule = {
  share: 0.7,
  retrieval: 0.5,
  floor: 0.05,
  entropy: 0.3,
  entropyAlone: 0.8,
  newest: 0.6,
  dependenceSlope: 12,
  varietySlope: 12,
} as const;

/** A diagnosis of fewer prompts is weak evidence: ln N is small and chance is high. */
export const enoughPrompts = 8;

/** Retrieval accuracy rescaled to 0 at the level of chance and 1 at certainty; NaN if chance is certainty. */
export const retrievalOverChance = (accuracy: number, chance: number): number => (accuracy - chance) / (1 - chance);

/** Values under this count as this where a logarithm is taken. */
const smallest = 1e-3;

/** Judges a diagnosis; `history` is what the last call returned for the family, null for the first. */
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
  // a rise counts at once: smoothing would compare a run that gains with what it has just reached
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

/** Judges diagnoses in order; each judgement knows nothing of later ones. */
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
