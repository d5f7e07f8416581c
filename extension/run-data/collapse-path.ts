// The diagnoses of one pair family as a path through the plane of H(Z|X) and I(X;Z), each with its regime. Trainer
// metrics are the source; the Collapse page and the terminal build the same path from them. Pure functions.
import { judgeRegimes, retrievalOverChance, type RegimeJudgement } from './regimes';

/** A value of a series at a step. */
export interface StepValue {
  step: number;
  value: number;
}

/** A value with its 95 % interval; `low` and `high` are NaN if no interval was logged. */
export interface Estimate {
  value: number;
  low: number;
  high: number;
}

/** The results of a diagnosis for one pair family. */
export interface PathPoint {
  step: number;
  /** H(Z|X), nats per token. */
  entropy: Estimate;
  /** I(X;Z), nats per token, at most `bound` = ln N. */
  information: Estimate;
  bound: number;
  retrieval: Estimate;
  chance: number;
  /** Share of the step's answers with a readable thought; NaN if it was not logged. */
  thoughts: number;
  /** Computed from this diagnosis and all earlier diagnoses. */
  judgement: RegimeJudgement;
}

/** Adds a regime to each point. The regime of a point follows from the point itself and all earlier points. */
export function judgedPath(points: readonly Omit<PathPoint, 'judgement'>[]): PathPoint[] {
  const judgements = judgeRegimes(
    points.map(({ information, entropy, retrieval, chance }) => ({
      information: information.value,
      informationLow: information.low,
      entropy: entropy.value,
      retrieval: retrievalOverChance(retrieval.value, chance),
    })),
  );
  return points.map((point, i) => ({ ...point, judgement: judgements[i] }));
}
