// A run as MLflow stores it: the configuration as parameters, metrics by step, and tags that identify the run. MLflow
// allows fewer characters in keys, so `pass@8` becomes `pass_at_8`. The tag `ragen.step` names the last step that was
// sent; with it, a repeated export sends only what is new.
import { configLeaves } from '../../run-data/config-leaves';
import type { MetricNumbers } from '../../run-data/metric-segments';
import type { Manifest } from '../../run-data/run-manifest';
import type { RunState } from '../../run-data/run-status-file';
import { valueAt } from '../../run-data/changeable-settings';
import { batchLimits, type MlflowClient, type MlflowEntry, type MlflowMetric, type MlflowRun } from './mlflow-client';

export const runTag = 'ragen.run';
export const stepTag = 'ragen.step';
/** Name of the other trainer of an attached run. */
export const trainerTag = 'ragen.trainer';

/** Longest key, and longest value of a parameter; MLflow before 2.10 refuses longer values. */
const longest = { key: 250, value: 500 };

/** A line of metrics with its time in milliseconds since 1970. */
export interface TimedMetrics {
  step: number;
  timestamp: number;
  values: Readonly<Record<string, number>>;
}

/** Returns a key that MLflow accepts: letters, digits, `_`, `-`, `.`, blank and `/`. */
export const mlflowKey = (key: string): string =>
  key
    .replaceAll('@', '_at_')
    .replace(/[^\w\-. /]/g, '_')
    .replace(/\/{2,}|^\/|\/$|(^|\/)\.{1,2}(?=\/|$)/g, '_')
    .slice(0, longest.key);

/** Returns the parameters of a configuration; long values are cut off. */
export const paramsOf = (config: Readonly<Record<string, unknown>>): MlflowEntry[] =>
  [...configLeaves(config)].map(([key, value]) => ({
    key: mlflowKey(key),
    value: String(value).slice(0, longest.value),
  }));

/** Returns the values of a line as metrics; values that are not finite are left out. */
export const metricsOf = ({ step, timestamp, values }: TimedMetrics): MlflowMetric[] =>
  Object.entries(values).flatMap(([key, value]) =>
    Number.isFinite(value) && key !== 'step' ? [{ key: mlflowKey(key), value, timestamp, step }] : [],
  );

/** Returns the experiment of a run: its project (`trainer.project_name`). */
export const experimentOf = ({ config }: Pick<Manifest, 'config'>): string => {
  const name = valueAt(config, 'trainer.project_name');
  return typeof name === 'string' && name !== '' ? name : 'ragen';
};

export interface OpenedRun {
  run: MlflowRun;
  /** The last step that was sent earlier; −1 for a new run. */
  sentStep: number;
}

/** Finds the MLflow run of a run, or creates it with its parameters and tags. */
export async function openMlflowRun(
  client: MlflowClient,
  manifest: Manifest,
  name: string,
  experimentName = experimentOf(manifest),
): Promise<OpenedRun> {
  const experiment = await client.experiment(experimentName);
  const found = await client.findRun(experiment, { key: runTag, value: manifest.id });
  if (found) return { run: found, sentStep: Number(found.tags[stepTag] ?? -1) };
  const tags: MlflowEntry[] = [
    { key: runTag, value: manifest.id },
    { key: 'ragen.config_name', value: manifest.config_name },
    { key: 'ragen.config_hash', value: manifest.config_hash },
    ...(manifest.trainer
      ? [{ key: trainerTag, value: manifest.trainer.name }] // whose files do not name the model
      : [{ key: 'ragen.model', value: manifest.model.path }]),
    ...manifest.environments.map(({ tag, version }) => ({
      key: mlflowKey(`ragen.environment.${tag}`),
      value: version,
    })),
    ...Object.entries(manifest.versions).map(([key, value]) => ({ key: mlflowKey(`ragen.version.${key}`), value })),
  ];
  const run = await client.createRun(experiment, name, Date.parse(manifest.created), tags);
  const params = paramsOf(manifest.config);
  for (let from = 0; from < params.length; from += batchLimits.entries)
    await client.logBatch(run.id, { params: params.slice(from, from + batchLimits.entries) });
  return { run, sentStep: -1 };
}

/** Sends lines of metrics and the tag of the last step. */
export async function sendMetrics(client: MlflowClient, run: string, lines: readonly TimedMetrics[]): Promise<void> {
  const metrics = lines.flatMap(metricsOf);
  const last = lines.at(-1);
  if (!last) return;
  for (let from = 0; from < metrics.length; from += batchLimits.metrics)
    await client.logBatch(run, { metrics: metrics.slice(from, from + batchLimits.metrics) });
  await client.logBatch(run, { tags: [{ key: stepTag, value: String(last.step) }] });
}

/** Returns MLflow's state of a run. */
export const mlflowState = (state: RunState | undefined): 'RUNNING' | 'FINISHED' | 'FAILED' | 'KILLED' =>
  state === 'finished' ? 'FINISHED' : state === 'failed' ? 'FAILED' : state === 'stopped' ? 'KILLED' : 'RUNNING';

/** Converts the numbers of a metrics line; `time` is its ISO time. */
export const timed = ({ step, ...values }: MetricNumbers, time: string): TimedMetrics => ({
  ...{ step, values },
  timestamp: Date.parse(time) || 0,
});
