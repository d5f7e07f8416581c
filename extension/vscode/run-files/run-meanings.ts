// The meanings of a run's metrics, for the tooltips of its pages: the sentences of docs/METRICS.md, with a note for each
// metric that was derived from the rollouts of another trainer. Must not import `vscode`.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { jsonOrNothing } from '../../common/json';
import { readRunFile } from '../../node/read-run-file';
import {
  derivedMeanings,
  derivedMetricsSchema,
  nothingDerived,
  type DerivedMetrics,
} from '../../run-data/derived-metrics';
import { meaningOf, parseMetricMeanings } from '../../run-data/metric-meanings';
import { runFiles } from '../../run-data/run-file-names';

/** Path of the guide to metrics below the extension's folder. */
export const metricsGuide = ['docs', 'METRICS.md'] as const;

/**
 * Returns the meanings of a run's metrics by key or pattern.
 * @param trainer name of the other trainer of an attached run
 */
export async function runMeanings(
  extensionPath: string,
  folder: string,
  trainer: string | undefined,
): Promise<Record<string, string>> {
  const meanings = parseMetricMeanings(await readFile(join(extensionPath, ...metricsGuide), 'utf8'));
  if (trainer === undefined) return meanings;
  const derived = await derivedMetrics(folder);
  return { ...meanings, ...derivedMeanings(derived, trainer, name => meaningOf(meanings, name)) };
}

/** Returns which metrics of an attached run were derived; none if the file is missing or damaged. */
export async function derivedMetrics(folder: string): Promise<DerivedMetrics> {
  try {
    const text = (await readRunFile(folder, runFiles.derivedMetrics)).toString('utf8');
    return derivedMetricsSchema.safeParse(jsonOrNothing(text)).data ?? nothingDerived;
  } catch {
    return nothingDerived;
  }
}
