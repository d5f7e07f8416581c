// The interface of metrics that are measured from the episodes of a step. The built-in ones
// (extension/trainer/diagnostics/built-in-metrics.ts) implement it, and so does a plug-in: a file whose default export is
// created by `defineMetric` and that `workbench.plugins.metrics` lists. Invariant: `measure` is a function of its
// argument, and changes nothing in the training.
import type { MeasuredEpisode } from './measured-episode';

/** A step whose rollout is complete. Plug-ins measure it after its update. */
export interface MeasuredStep {
  /** Number of the step, from 1. */
  step: number;
  /** The episodes that can be trained on, each with whether the step trained on it. */
  episodes: readonly MeasuredEpisode[];
  /**
   * All episodes in the order of the batch: those in `episodes`, and those that cannot be trained on, for example because
   * the environment failed (`error`).
   */
  played: readonly MeasuredEpisode[];
  /** Metrics that the step has so far (docs/METRICS.md). */
  metrics: Readonly<Record<string, number>>;
}

export interface Metric {
  /** Key of the metric if `measure` returns a number. */
  name: string;
  /** Returns a finite number, or finite numbers by key. A key that is missing or undefined has no value in this step. */
  measure(step: MeasuredStep): number | Readonly<Record<string, number | undefined>>;
}

/**
 * The default export of a metric's file. The metric's key is `plugins/<name>`, or `plugins/<name>/<key>` if `measure`
 * returns several values. Built-in metrics have complete keys instead.
 */
export interface MetricPlugin extends Metric {
  readonly kind: 'metric';
}

/** Declares a metric. */
export function defineMetric(definition: Metric): MetricPlugin {
  return { kind: 'metric', ...definition };
}
