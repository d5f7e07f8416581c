// The interface of alarms. The built-in alarms (extension/run-data/alarm-rules.ts) implement it, and so does a plug-in: a
// file whose default export is created by `defineAlarm` and that `workbench.plugins.alarms` lists. An alarm is raised when
// the newest `steps` values of its metric are all beyond the bound. Invariant: `bound` is a function of its arguments.

/** A bound, and a description of how it is computed, such as 'half of its mean over the first 10 steps'. */
export interface AlarmBound {
  bound: number;
  label: string;
}

export interface AlarmRule {
  /** Key of a metric (docs/METRICS.md), which may be that of a plug-in. */
  metric: string;
  /** Metric of the same meaning in another unit, which is read in runs that never have `metric`. */
  instead?: string;
  /** Name of the metric in the alarm's sentence. */
  label: string;
  /** Whether values under or over the bound raise the alarm. */
  side: 'under' | 'over';
  /** Number of newest values that must all be beyond the bound. */
  steps: number;
  /**
   * Returns the bound for the newest values; null if there are too few earlier values.
   * @param before earlier values, oldest first: at most the 10 first and the 20 newest of the run
   * @param limit newest value of the metric `limit`, if the rule has one
   * @param highest largest earlier value that is not in `before`, if there is one
   */
  bound(before: readonly number[], limit?: number, highest?: number): AlarmBound | null;
  /** Key of a metric whose newest value is the maximum possible value of `metric`. */
  limit?: string;
  /**
   * Plural noun for the values of the metric, such as 'diagnoses', if it is not measured in every step; `steps` then
   * counts its values.
   */
  measured?: string;
}

/** The default export of an alarm's file. */
export interface AlarmPlugin extends AlarmRule {
  readonly kind: 'alarm';
  /** Name of the alarm in events. */
  name: string;
}

/** Declares an alarm. */
export function defineAlarm(definition: Omit<AlarmPlugin, 'kind'>): AlarmPlugin {
  return { kind: 'alarm', ...definition };
}
