// Formats the findings of a run's diagnostics for the terminal: alarms, the regime of a collapse diagnosis, and the
// reason for an early stop. Also formats the event of a model download. The input is a run's metrics and events.
import type { RunEvent } from '../../run-data/run-events';
import { enoughPrompts, enoughThoughts, regimes } from '../../run-data/regimes';
import type { Regime } from '../../run-data/regimes';

/** A collapse diagnosis of one step. Mutual information, its bound and the entropy are in nats per token. */
export interface DiagnosedRegime {
  step: number;
  /** Null if fewer than half of the step's answers have a readable thought. */
  regime: Regime | null;
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

/** Returns the diagnosis in a step's metrics; null if the step has none. */
export function regimeAt(step: number, metrics: Readonly<Record<string, number>>): DiagnosedRegime | null {
  const family = families.find(name => metrics[`${name}/regime`] !== undefined);
  const regime = family && regimes[metrics[`${family}/regime`] - 1];
  if (!family || !regime) return null;
  const of = (suffix: string): number => metrics[`${family}/${suffix}`];
  const confidence = metrics[`${family}/regime_confidence`];
  return {
    step,
    regime: metrics['thoughts/rate'] < enoughThoughts ? null : regime,
    ...(confidence !== undefined && { confidence }),
    mutual_information: of('mi_estimate'),
    bound: of('mi_upper_bound'),
    entropy: of('conditional_entropy_est'),
  };
}

/**
 * Formats a diagnosis as `template collapse, 94 % sure (I(X;Z) 0.11 of at most 4.16 nats, H(Z|X) 0.62 nats per token)`.
 */
export function formatRegime({ regime, confidence, mutual_information, bound, entropy }: DiagnosedRegime): string {
  // The confidence is calibrated only for diagnoses of at least `enoughPrompts` prompts. It is omitted for fewer
  // prompts.
  const known = confidence !== undefined && bound >= Math.log(enoughPrompts);
  const sure = known ? `, ${Math.round(100 * confidence)} % sure` : '';
  const stated = regime === null ? 'no regime, because most answers have no readable thought' : `${regime}${sure}`;
  return `${stated} (I(X;Z) ${mutual_information.toFixed(2)} of at most ${bound.toFixed(2)} nats, H(Z|X) ${entropy.toFixed(2)} nats per token)`;
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
