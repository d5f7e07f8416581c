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
import type { ValidatedStep } from './attached-episodes';
import { MetricTable, type DerivedRows } from './metric-table';
import type { DiagnosedStep } from './rollout-diagnosis';
import { untagged } from './validation-summary';

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

/**
 * Returns the metrics of a validation that may be derived. If the trainer logs the success of other tags only, it has
 * other names for the environments than its rollouts, and nothing is derived by tag.
 */
function derivable(metrics: Record<string, number>, logged: readonly string[]): Record<string, number> {
  const tags = logged.flatMap(name => /^val-env\/([^/]+)\/success$/.exec(name)?.[1] ?? []);
  const isOwn = (name: string): boolean => tags.length === 0 || tags.includes(name.split('/')[1]);
  return Object.fromEntries(Object.entries(metrics).filter(([name]) => untagged.includes(name) || isOwn(name)));
}

/** Share of responses with a thought from which on a policy counts as one that thinks. */
const thinkingRate = 0.1;

/** What the derived values follow from. */
export interface Findings {
  diagnoses: readonly DiagnosedStep[];
  validations: readonly ValidatedStep[];
  scoring: ModelScoring | null;
  /** Names of the metrics that the trainer logs. */
  logged: readonly string[];
}

/**
 * Returns the derived values by step. The share of responses with a thought is left out if the policy has never thought
 * and no prompt asks for thoughts, because its alarm would otherwise be raised in each run without reasoning.
 */
export function derivedRows({ diagnoses: all, validations, scoring, logged }: Findings): DerivedRows {
  const isThinking =
    all.some(({ asksForThoughts }) => asksForThoughts) ||
    maximum(
      all.map(({ metrics }) => metrics['thoughts/rate'] ?? 0),
      0,
    ) >= thinkingRate;
  const rows = new Map<number, { time: number; values: Record<string, number> }>(
    all.map(({ step, written: time, metrics }) => {
      const { 'thoughts/rate': rate, ...rest } = metrics;
      return [step, { time, values: isThinking && rate !== undefined ? metrics : rest }];
    }),
  );
  const add = (step: number, time: number, values: Record<string, number>): void => {
    const row = rows.get(step);
    rows.set(step, { time: row?.time ?? time, values: { ...row?.values, ...values } });
  };
  for (const { step, written, metrics } of validations) add(step, written, derivable(metrics, logged));
  for (const [step, { metrics }] of Object.entries(scoring?.steps ?? {})) add(Number(step), 0, metrics);
  return rows;
}
