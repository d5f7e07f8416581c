// The interface of metrics of the workspace. A file whose default export is created by `defineMetric` is listed in
// `workbench.plugins.metrics`. Invariant: `measure` is a function of its argument, and changes nothing in the training.
import type { PlayedEpisode } from './played-episode';

/** A step whose rollout is complete and whose update is done. */
export interface MeasuredStep {
  /** Number of the step, from 1. */
  step: number;
  /** The episodes that can be trained on, and whether the step trained on each. */
  episodes: readonly (PlayedEpisode & { kept: boolean })[];
  /** Metrics that the step has so far (docs/METRICS.md). */
  metrics: Readonly<Record<string, number>>;
}

/** The default export of a metric's file. */
export interface MetricPlugin {
  readonly kind: 'metric';
  /** The metric's key is `plugins/<name>`, or `plugins/<name>/<key>` if `measure` returns several values. */
  name: string;
  /** Returns a finite number, or finite numbers by key. A key that is missing or undefined has no value in this step. */
  measure(step: MeasuredStep): number | Readonly<Record<string, number | undefined>>;
}

/** Declares a metric. */
export function defineMetric(definition: Omit<MetricPlugin, 'kind'>): MetricPlugin {
  return { kind: 'metric', ...definition };
}
