// The state of the Collapse page. It is immutable except for the run's series, to which rows are appended in place.
// `version` is the version of the series from which `diagnoses` was computed.
import type { CollapseSnapshot } from '../../extension/protocol/collapse-page';
import type { PathPoint } from '../../extension/run-data/collapse-path';
import type { GradientAnalysisRecord } from '../../extension/run-data/diagnostics';
import type { Theme } from '../shared/theme';
import { familyCharts, type LineChartSpec } from './trends/trend-charts';
import { evidenceOf, type Evidence } from '../../extension/run-data/interpretation/evidence';
import type { GroupCell } from './step/group-cell';
import type { JudgedStep } from './step/groups';
import type { Cell, ScoredFamily } from './step/matrix';
import type { RunSeries } from '../../extension/run-data/interpretation/run-series';
import { pathOf, reached, type FamilyName } from '../../extension/run-data/interpretation/run-series';

/** Settings that are restored when the page is shown again. */
export interface ViewSettings {
  readonly family: FamilyName;
  /** The selected step; null while the page follows the newest step. */
  readonly step: number | null;
}

/** Version of `ViewSettings`; increased when the meaning of a setting changes. */
export const settingsSchema = 1;

export const firstSettings: ViewSettings = { family: 'collapse_first_turn_sample', step: null };

/** The data about a run that the host has sent, except the series of metrics. */
export type RunFacts = Omit<CollapseSnapshot, 'steps' | 'series'>;

/** Data derived from the series for the selected family (one of `families` in trends/run-series.ts). */
export interface Diagnoses {
  readonly path: readonly PathPoint[];
  /** Steps with a diagnosis. Playback and the arrow keys go from one of these steps to the next. */
  readonly stops: readonly number[];
  readonly evidence: Evidence;
  readonly charts: readonly LineChartSpec[];
}

/**
 * The file of a step: its content, null if the run's folder does not contain the file, or the message of a failed
 * request.
 */
export type StepFile<T> =
  { readonly step: number; readonly content: T | null } | { readonly step: number; readonly failed: string };

/** The displayed files of a step. Each is null until the host has answered the first request for it. */
export interface StepFiles {
  readonly matrix: StepFile<ScoredFamily> | null;
  readonly groups: StepFile<JudgedStep> | null;
  readonly gradients: StepFile<GradientAnalysisRecord> | null;
}

export interface CollapseState {
  /** Message of a failed snapshot request; null if there was no failure. */
  readonly failure: string | null;
  /** Null until the first snapshot. */
  readonly facts: RunFacts | null;
  readonly series: RunSeries;
  readonly version: number;
  readonly diagnoses: Diagnoses;
  readonly files: StepFiles;
  /** The selected cell of the matrix. */
  readonly cell: Cell;
  /** Whether the table of the matrix is open. */
  readonly tableOpen: boolean;
  /** The score cell that is the tab stop of the groups table. */
  readonly groupCell: GroupCell;
  /** Name of the displayed gradient analysis. */
  readonly analysis: string;
  /** Whether playback is running. */
  readonly playing: boolean;
  readonly settings: ViewSettings;
  readonly theme: Theme;
}

export function initialState(series: RunSeries, settings: ViewSettings, theme: Theme): CollapseState {
  return {
    failure: null,
    facts: null,
    series,
    version: series.version,
    diagnoses: diagnosesOf(series, settings.family),
    files: { matrix: null, groups: null, gradients: null },
    cell: { row: 0, column: 0 },
    tableOpen: false,
    groupCell: { row: 0, member: 0 },
    analysis: 'grad_norm',
    playing: false,
    settings,
    theme,
  };
}

/** Derives path, evidence and charts of a family from the series. */
export function diagnosesOf(series: RunSeries, family: FamilyName): Diagnoses {
  const path = pathOf(series, family);
  const charts = familyCharts(family, series, path).filter(
    ({ lines }) => path.length > 0 || lines.some(({ key }) => !key.startsWith(family)),
  );
  return { path, stops: path.map(({ step }) => step), evidence: evidenceOf(series, family, path), charts };
}

/** Whether the run can be diagnosed. It must be a training run with at least one finished step. */
export const isDiagnosable = (facts: RunFacts, series: RunSeries): boolean =>
  series.steps.length > 0 && !facts.run.status.episodes;

export interface Position {
  /** The selected step, always a step of the run. */
  readonly step: number;
  /** Whether the page follows the newest step. */
  readonly live: boolean;
  /** Index of the latest diagnosis at or before the step; −1 before the first diagnosis. */
  readonly present: number;
}

/** Returns the selected position in a run with at least one step. */
export function positionOf({ series, settings, diagnoses }: CollapseState): Position {
  const newest = series.steps.at(-1) ?? 0;
  const live = settings.step === null || settings.step >= newest;
  const step = live ? newest : series.steps[Math.max(0, series.rowAt(settings.step ?? newest))];
  return { step, live, present: reached(diagnoses.path, step) - 1 };
}

/** The files to display; a field is null if no file was written up to the selected step. */
export interface WantedFiles {
  readonly matrix: { step: number; family: FamilyName } | null;
  readonly groups: { step: number } | null;
  readonly gradients: { step: number } | null;
}

/**
 * Returns the files to show at the selected step; null before the first snapshot, and for runs without diagnosable
 * steps.
 */
export function wantedFiles(state: CollapseState): WantedFiles | null {
  const { facts, series, diagnoses, settings } = state;
  if (!facts || !isDiagnosable(facts, series)) return null;
  const { step, present } = positionOf(state);
  const diagnosed = diagnoses.path[present] as PathPoint | undefined;
  const measured = facts.diagnosed.gradients.findLast(at => at <= step);
  return {
    matrix: diagnosed ? { step: diagnosed.step, family: settings.family } : null,
    groups: step > 0 ? { step } : null,
    gradients: measured === undefined ? null : { step: measured },
  };
}

/** Returns the displayed matrix. Returns null if the matrix is missing, has not been loaded, or could not be loaded. */
export const matrixInView = ({ files: { matrix } }: CollapseState): ScoredFamily | null =>
  matrix && 'content' in matrix ? matrix.content : null;

/** Returns the episode of the selected cell of the matrix; undefined without a matrix. */
export function episodeOfCell(state: CollapseState): string | undefined {
  const scored = matrixInView(state);
  if (!scored || scored.family.samples.length === 0) return undefined;
  return scored.family.samples[scored.matrix.order[state.cell.row]].episode;
}

/** Playback speed. `stop`: milliseconds per diagnosis. `whole`: maximum milliseconds for all diagnoses of a run. */
const pace = { stop: 350, whole: 20_000 };

/** Milliseconds between two diagnosed steps during playback, at least 30. */
export const playInterval = ({ diagnoses }: CollapseState): number =>
  Math.max(30, Math.min(pace.stop, pace.whole / diagnoses.stops.length));
