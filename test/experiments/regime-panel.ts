// The runs on which the rule of the regimes (extension/run-data/regimes.ts) is fitted and checked. The true regime of a
// run is determined from the texts of all its episodes, never from log-probs: the share of thoughts that name the
// player's true position, and the similarity of thoughts under the same prompt. This module has no side effects;
// regimes.ts reads the runs, and a unit test checks the figures of the rule.
import { judgeRegime, regimeRule, regimes, type Regime, type RegimeHistory } from '../../extension/run-data/regimes';

/** A diagnosed step of a run. */
export interface PanelStep {
  step: number;
  /** Share of thoughts that name the player's position correctly, mean of this step and its neighbours. */
  grounded: number;
  /** Mean similarity of two first thoughts under the same prompt, from 0 to 1, mean of this step and its neighbours. */
  similarity: number;
  /**
   * Lower confidence bound of I(X;Z) of trajectories and H(Z|X), in nats per token; retrieval accuracy, from 0 (chance)
   * to 1.
   */
  information: number;
  informationLow: number;
  entropy: number;
  retrieval: number;
}

export interface PanelRun {
  arm: string;
  seed: number;
  steps: PanelStep[];
}

export type Rule = Readonly<Record<keyof typeof regimeRule, number>>;

/**
 * Bounds that decide a true regime. `grounded`, in shares of the run's maximum of grounded thoughts: reasoning is
 * independent of its prompt below the lower bound and depends on it from the upper bound on. `similarity`: thoughts
 * under one prompt vary below the lower bound and are equal from the upper bound on. Steps between the bounds have no
 * true regime; they are counted but excluded.
 */
const bounds = { grounded: [0.4, 0.6], similarity: [0.75, 0.85] } as const;
/** Distance, in steps, from a change of the true regime within which the label of either side is correct. */
const tolerance = 5;

/** The true regime at each step, determined from the texts; null between the bounds. */
export function trueRegimes({ steps }: PanelRun): (Regime | null)[] {
  let best = 0;
  return steps.map(({ grounded, similarity }) => {
    best = Math.max(best, grounded);
    const lost = decided(grounded / best, bounds.grounded);
    const varied = decided(similarity, bounds.similarity);
    return lost === null || varied === null ? null : regimes[(lost ? 2 : 0) + (varied ? 0 : 1)];
  });
}

/** Whether a value is below the lower bound; null if it is between the bounds. */
const decided = (value: number, [low, high]: readonly [number, number]): boolean | null =>
  value < low ? true : value >= high ? false : null;

export interface JudgedStep {
  step: number;
  truth: Regime | null;
  label: Regime;
  confidence: number;
  /**
   * Whether the label equals the true regime of this step or of a step within the tolerance; false without a true
   * regime.
   */
  right: boolean;
}

/** The labels that a rule assigns to a run's steps, each with whether it is correct. */
export function judgedSteps(run: PanelRun, rule: Rule = regimeRule): JudgedStep[] {
  const truths = trueRegimes(run);
  let history: RegimeHistory | null = null;
  return run.steps.map(({ step, ...measure }, i) => {
    const judged = judgeRegime(history, measure, rule);
    history = judged.history;
    const { regime: label, confidence } = judged.judgement;
    const near = run.steps.some((other, j) => Math.abs(other.step - step) <= tolerance && truths[j] === label);
    const right = truths[i] !== null && near;
    return { step, truth: truths[i], label, confidence, right };
  });
}

export interface Figures {
  runs: number;
  /** Numbers of diagnosed steps with and without a true regime. */
  steps: number;
  undecided: number;
  /** Share of correct labels among the steps of each true regime; NaN for a regime without steps. */
  recall: Record<Regime, number>;
  /** Mean recall over the regimes. */
  balancedAccuracy: number;
  /**
   * Mean difference between confidence and share of correct labels, over ten bins of confidence weighted by their
   * steps.
   */
  calibrationError: number;
  /**
   * For each bin of confidence, from 0 upwards: number of labels, their mean confidence, and the share of correct
   * labels.
   */
  calibration: { labels: number; confidence: number; right: number }[];
}

/** Accuracy and calibration of the labels of some runs. */
export function figures(runs: readonly PanelRun[], rule: Rule = regimeRule): Figures {
  const all = runs.flatMap(run => judgedSteps(run, rule));
  const judged = all.filter(({ truth }) => truth !== null);
  const share = (steps: readonly JudgedStep[]): number => steps.filter(({ right }) => right).length / steps.length;
  const recall = Object.fromEntries(
    regimes.map(regime => [regime, share(judged.filter(({ truth }) => truth === regime))]),
  ) as Record<Regime, number>;
  const known = Object.values(recall).filter(Number.isFinite);
  const bins = Array.from({ length: 10 }, (_, bin) =>
    judged.filter(({ confidence }) => Math.min(9, Math.floor(10 * confidence)) === bin),
  );
  const calibration = bins.map(bin => ({
    labels: bin.length,
    confidence: bin.reduce((sum, { confidence }) => sum + confidence, 0) / bin.length,
    right: share(bin),
  }));
  return {
    runs: runs.length,
    steps: judged.length,
    undecided: all.length - judged.length,
    recall,
    balancedAccuracy: known.reduce((sum, x) => sum + x, 0) / known.length,
    calibrationError: calibration
      .filter(({ labels }) => labels > 0)
      .reduce((sum, { labels, confidence, right }) => sum + (labels / judged.length) * Math.abs(confidence - right), 0),
    calibration,
  };
}

/** Splits the runs alternately, in the order of the panel: `fit` chooses the rule's constants, `check` tests them. */
export const halves = (runs: readonly PanelRun[]): { fit: PanelRun[]; check: PanelRun[] } => ({
  fit: runs.filter((_, i) => i % 2 === 0),
  check: runs.filter((_, i) => i % 2 === 1),
});

const columns = ['grounded', 'similarity', 'information', 'informationLow', 'entropy', 'retrieval'] as const;

export const panelCsv = (runs: readonly PanelRun[]): string =>
  [
    ['arm', 'seed', 'step', ...columns].join(),
    ...runs.flatMap(({ arm, seed, steps }) =>
      steps.map(at => [JSON.stringify(arm), seed, at.step, ...columns.map(key => Number(at[key].toFixed(4)))].join()),
    ),
    '',
  ].join('\n');

/** Parses the output of `panelCsv`. */
export function readPanelCsv(text: string): PanelRun[] {
  const runs: PanelRun[] = [];
  for (const line of text.trim().split('\n').slice(1)) {
    const [, arm, rest] = /^"([^"]*)",(.*)$/.exec(line)!;
    const [seed, step, grounded, similarity, information, informationLow, entropy, retrieval] = rest
      .split(',')
      .map(Number);
    if (runs.at(-1)?.arm !== arm || runs.at(-1)?.seed !== seed) runs.push({ arm, seed, steps: [] });
    runs.at(-1)!.steps.push({ step, grounded, similarity, information, informationLow, entropy, retrieval });
  }
  return runs;
}
