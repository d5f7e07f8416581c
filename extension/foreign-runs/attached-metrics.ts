// Writer of the metrics, derived metrics and events of an attached run. Used by the process that follows the run, and by
// a diagnosis under a model (cli/runs/diagnose.ts) while no process follows it. The caller holds the run's lease.
import { existsSync } from 'node:fs';
import { maximum } from '../common/lists';
import { replaceFile } from '../node/files';
import { hasEntrySync } from '../node/read-run-file';
import { derivedMetricsSchema, nothingDerived, type DerivedMetrics } from '../run-data/derived-metrics';
import { modelScoringFile, modelScoringSchema, type ModelScoring } from '../run-data/model-scoring';
import { runFiles } from '../run-data/run-file-names';
import type { LineLog } from '../trainer/store/line-log';
import { json, readJson } from '../trainer/store/run-documents';
import type { RunFolder } from '../trainer/store/run-folder';
import { alarmsOf, writeAlarms } from './attached-alarms';
import { MetricTable, type DerivedRows } from './metric-table';
import type { DiagnosedStep } from './rollout-diagnosis';

export class AttachedMetrics {
  readonly table: MetricTable;
  readonly events: LineLog;
  private readonly log: LineLog;
  private namesShown = '';
  private alarmsShown = '';

  /** Opens the logs. `stepSeconds`: see ForeignRun. */
  constructor(
    private readonly folder: RunFolder,
    stepSeconds: readonly string[] = [],
  ) {
    this.table = new MetricTable(stepSeconds);
    if (existsSync(folder.file(runFiles.metrics)))
      this.table.load(folder.file(runFiles.metrics), new Set(derivedMetricsOf(folder).names));
    this.log = folder.metrics();
    this.events = folder.events();
  }

  /** Writes the rows that have changed; returns whether there were any. */
  write(): boolean {
    return this.table.write(this.log);
  }

  /**
   * Stores which metrics are derived, then writes the rows that have changed. With this order, a value whose name is not
   * stored is the trainer's, also after a crash. `model` is the model of `collapse_…` metrics.
   */
  async writeDerived(model: string | undefined): Promise<boolean> {
    const names = this.table.derivedNames;
    const document = json({ schema: 1, names, ...(model !== undefined && { model }) } satisfies DerivedMetrics);
    if (document !== this.namesShown) await replaceFile(this.folder.file(runFiles.derivedMetrics), document);
    this.namesShown = document;
    return this.write();
  }

  /**
   * Writes the alarms that follow from all rows. Called while no rollouts wait to be converted, because most bounds are
   * computed from the first steps.
   */
  writeAlarms(): void {
    const alarms = alarmsOf(this.table);
    const text = JSON.stringify(alarms);
    if (text === this.alarmsShown) return;
    this.alarmsShown = text;
    writeAlarms(this.events, alarms);
  }

  close(): void {
    this.log.close();
    this.events.close();
  }
}

/** Returns which metrics an earlier process derived. */
const derivedMetricsOf = (folder: RunFolder): DerivedMetrics =>
  existsSync(folder.file(runFiles.derivedMetrics))
    ? readJson(folder.path, runFiles.derivedMetrics, derivedMetricsSchema)
    : nothingDerived;

/** Returns the diagnoses of a run under a model; null if there are none. */
export const modelScoringOf = (folder: RunFolder): ModelScoring | null =>
  hasEntrySync(folder.path, modelScoringFile) ? readJson(folder.path, modelScoringFile, modelScoringSchema) : null;

/** Share of responses with a thought from which on a policy counts as one that thinks. */
const thinkingRate = 0.1;

/**
 * Returns the derived values by step. The share of responses with a thought is left out if the policy has never thought
 * and no prompt asks for thoughts, because its alarm would otherwise be raised in each run without reasoning.
 */
export function derivedRows(diagnoses: Iterable<DiagnosedStep>, scoring: ModelScoring | null): DerivedRows {
  const all = [...diagnoses];
  const isThinking =
    all.some(({ asksForThoughts }) => asksForThoughts) ||
    maximum(
      all.map(({ metrics }) => metrics['thoughts/rate'] ?? 0),
      0,
    ) >= thinkingRate;
  const rows = new Map(
    all.map(({ step, written: time, metrics }) => {
      const { 'thoughts/rate': rate, ...rest } = metrics;
      return [step, { time, values: isThinking && rate !== undefined ? metrics : rest }];
    }),
  );
  for (const [step, { metrics }] of Object.entries(scoring?.steps ?? {})) {
    const row = rows.get(Number(step));
    rows.set(Number(step), { time: row?.time ?? 0, values: { ...row?.values, ...metrics } });
  }
  return rows;
}
