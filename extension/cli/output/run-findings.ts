// Formats the findings of a run's diagnostics for the terminal: alarms, the regime of a collapse diagnosis, and the
// reason for an early stop. Also formats the event of a model download. The input is a run's metrics and events.
import type { PathPoint } from '../../run-data/collapse-path';
import { diagnoseReasoning } from '../../run-data/reasoning-diagnosis';
import { enoughPrompts, judgeRegime, regimes, retrievalOverChance } from '../../run-data/regimes';
import type { Regime, RegimeHistory } from '../../run-data/regimes';
import type { RunEvent } from '../../run-data/run-events';

/** A collapse diagnosis of one step. Mutual information, its bound and the entropy are in nats per token. */
export interface DiagnosedRegime {
  step: number;
  /** Null if fewer than half of the step's answers have a readable thought. */
  regime: Regime | null;
  /** What the Collapse page says of the run at this step, as a noun phrase. */
  caption: string;
  /** Probability that the diagnosed regime is correct; missing in runs of versions before 0.2. */
  confidence?: number;
  /** Mutual information I(X;Z), at most `bound`. */
  mutual_information: number;
  bound: number;
  /** Conditional entropy H(Z|X). */
  entropy: number;
}

/**
 * Diagnosis families in order of preference. If a step has diagnoses of several families, the diagnosis of the first
 * such family is printed.
 */
const families = ['collapse_trajectory_sample', 'collapse_turn_sample', 'collapse_first_turn_sample'] as const;

/** The diagnoses of a run so far, by family. They are given in the order of their steps. */
export class DiagnosisHistory {
  private readonly paths = new Map<string, { path: PathPoint[]; regimes: RegimeHistory | null }>();

  /** Adds a step's metrics and returns the diagnosis among them; null if the step has none. */
  add(step: number, metrics: Readonly<Record<string, number>>): DiagnosedRegime | null {
    const diagnosed = families.filter(family => regimes[metrics[`${family}/regime`] - 1] !== undefined);
    for (const family of diagnosed) this.addPoint(step, family, metrics);
    if (diagnosed.length === 0) return null;
    const [family] = diagnosed;
    const { caption, regime } = diagnoseReasoning(this.paths.get(family)!.path);
    const confidence = metrics[`${family}/regime_confidence`];
    return {
      step,
      regime,
      caption,
      ...(confidence !== undefined && { confidence }),
      mutual_information: metrics[`${family}/mi_estimate`],
      bound: metrics[`${family}/mi_upper_bound`],
      entropy: metrics[`${family}/conditional_entropy_est`],
    };
  }

  /** Adds a diagnosis with the regime that the trainer logged, because a resumed run may show only its newest steps. */
  private addPoint(step: number, family: string, metrics: Readonly<Record<string, number>>): void {
    const of = (suffix: string): number => metrics[`${family}/${suffix}`] ?? NaN;
    const estimate = (suffix: string) => ({
      value: of(suffix),
      low: of(`${suffix}_ci_low`),
      high: of(`${suffix}_ci_high`),
    });
    const before = this.paths.get(family) ?? { path: [], regimes: null };
    const [information, entropy, retrieval] = ['mi_estimate', 'conditional_entropy_est', 'retrieval_accuracy'].map(
      estimate,
    );
    const chance = of('retrieval_chance_level');
    const { judgement, history } = judgeRegime(before.regimes, {
      information: information.value,
      informationLow: information.low,
      entropy: entropy.value,
      retrieval: retrievalOverChance(retrieval.value, chance),
    });
    const point = {
      ...{ step, information, entropy, retrieval, chance },
      bound: of('mi_upper_bound'),
      thoughts: metrics['thoughts/rate'] ?? NaN,
      judgement: { ...judgement, regime: regimes[of('regime') - 1] },
    };
    this.paths.set(family, { path: [...before.path, point], regimes: history });
  }
}

/**
 * Formats a diagnosis as `template collapse, 94 % sure (I(X;Z) 0.11 of at most 4.16 nats, H(Z|X) 0.62 nats per token)`.
 */
export function formatRegime({
  regime,
  caption,
  confidence,
  mutual_information,
  bound,
  entropy,
}: DiagnosedRegime): string {
  // The confidence is calibrated only for diagnoses of at least `enoughPrompts` prompts. It is omitted for fewer
  // prompts.
  const known = regime !== null && confidence !== undefined && bound >= Math.log(enoughPrompts);
  const sure = known ? `, ${Math.round(100 * confidence)} % sure` : '';
  return `${caption}${sure} (I(X;Z) ${mutual_information.toFixed(2)} of at most ${bound.toFixed(2)} nats, H(Z|X) ${entropy.toFixed(2)} nats per token)`;
}

/**
 * Formats an event as `alarm at step 15: in-group reward std was below …`. Returns null for events that the terminal
 * does not print.
 */
export function formatFinding({ kind, step, message, data }: RunEvent): string | null {
  if (kind === 'alarm') return `alarm at step ${Number(data?.step ?? step)}: ${message}`;
  if (kind === 'download') return message;
  if (kind === 'early_stop') return `stopped early at step ${step}: ${message}`;
  return null;
}
