// The state of the Collapse page. It is immutable, every change is made by the reducer, except for the run's series:
// these grow in place, and `version` is the one from which the diagnoses in this state were made.
import type { CollapseSnapshot } from '../../extension/protocol/collapse-page';
import type { GradientAnalysisRecord } from '../../extension/run-data/diagnostics';
import type { Theme } from '../shared/theme';
import { familyCharts, type LineChartSpec } from './charts';
import { evidenceOf, type Evidence } from './evidence';
import type { GroupCell } from './group-cell';
import type { JudgedStep } from './groups';
import type { Cell, ScoredFamily } from './matrix';
import type { RunSeries } from './run-series';
import { pathOf, reached, type FamilyName, type PathPoint } from './run-series';

/** What the page keeps when it is hidden or restored. */
export interface ViewSettings {
  readonly family: FamilyName;
  /** The selected step; null follows the newest. */
  readonly step: number | null;
}

/** Increased when the meaning of a setting changes. */
export const settingsSchema = 1;

export const firstSettings: ViewSettings = { family: 'collapse_first_turn_sample', step: null };

/** What the host sends about a run besides its series. */
export type RunFacts = Omit<CollapseSnapshot, 'steps' | 'series'>;

/** What is made of the series for the selected family of pairs. */
export interface Diagnoses {
  readonly path: readonly PathPoint[];
  /** Steps of the path, at which playing and arrow keys stop. */
  readonly stops: readonly number[];
  readonly evidence: Evidence;
  readonly charts: readonly LineChartSpec[];
}

/** The file of one step in a part of the page; its content is null if the run's folder does not have it. */
export type StepFile<T> =
  { readonly step: number; readonly content: T | null } | { readonly step: number; readonly failed: string };

/** The files in view; null until the first answer. */
export interface StepFiles {
  readonly matrix: StepFile<ScoredFamily> | null;
  readonly groups: StepFile<JudgedStep> | null;
  readonly gradients: StepFile<GradientAnalysisRecord> | null;
}

export interface CollapseState {
  /** The message of a refused snapshot. */
  readonly failure: string | null;
  /** Null until the first snapshot. */
  readonly facts: RunFacts | null;
  readonly series: RunSeries;
  readonly version: number;
  readonly diagnoses: Diagnoses;
  readonly files: StepFiles;
  /** The selected cell of the matrix. */
  readonly cell: Cell;
  /** Whether the matrix is shown as a table too. */
  readonly tableOpen: boolean;
  /** The score with the tab stop. */
  readonly groupCell: GroupCell;
  /** Name of the analysis of gradients to show. */
  readonly analysis: string;
  /** Whether the page plays through the diagnoses. */
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

/** What is made of the series for a family. */
export function diagnosesOf(series: RunSeries, family: FamilyName): Diagnoses {
  const path = pathOf(series, family);
  const charts = familyCharts(family, series, path).filter(
    ({ lines }) => path.length > 0 || lines.some(({ key }) => !key.startsWith(family)),
  );
  return { path, stops: path.map(({ step }) => step), evidence: evidenceOf(series, family, path), charts };
}

/** Whether there is something to diagnose: a training run with a finished step. */
export const isDiagnosable = (facts: RunFacts, series: RunSeries): boolean =>
  series.steps.length > 0 && !facts.run.status.episodes;

export interface Position {
  /** The selected step, which is one of the run. */
  readonly step: number;
  /** Whether it is the newest one, which the page follows. */
  readonly live: boolean;
  /** Index of the latest diagnosis at or before the step; −1 before the first. */
  readonly present: number;
}

/** The position in a run that has steps. */
export function positionOf({ series, settings, diagnoses }: CollapseState): Position {
  const newest = series.steps.at(-1) ?? 0;
  const live = settings.step === null || settings.step >= newest;
  const step = live ? newest : series.steps[Math.max(0, series.rowAt(settings.step ?? newest))];
  return { step, live, present: reached(diagnoses.path, step) - 1 };
}

/** The files to show; null where none was written up to the selected step. */
export interface WantedFiles {
  readonly matrix: { step: number; family: FamilyName } | null;
  readonly groups: { step: number } | null;
  readonly gradients: { step: number } | null;
}

/** The files to show at the selected step; null while nothing can be shown. */
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

/** The matrix in view; null if there is none. */
export const matrixInView = ({ files: { matrix } }: CollapseState): ScoredFamily | null =>
  matrix && 'content' in matrix ? matrix.content : null;

/** The episode of the selected cell of the matrix; undefined if there is none. */
export function episodeOfCell(state: CollapseState): string | undefined {
  const scored = matrixInView(state);
  if (!scored || scored.family.samples.length === 0) return undefined;
  return scored.family.samples[scored.matrix.order[state.cell.row]].episode;
}

/** Milliseconds per diagnosed step, and maximum milliseconds for a complete run. */
const pace = { stop: 350, whole: 20_000 };

/** Milliseconds between two diagnosed steps while the page plays the run. */
export const playInterval = ({ diagnoses }: CollapseState): number =>
  Math.max(30, Math.min(pace.stop, pace.whole / diagnoses.stops.length));
