// The charts of a report by their names, drawn as on the dashboard for one run, and as in Compare for several runs: a chart
// per metric. The summary has the charts of the dashboard's overview.
import { maximum } from '../../common/lists';
import { progressRange } from '../charts/axis';
import { arrange, chartOfKey, type ChartSpec } from '../charts/catalogue';
import { marksOf } from '../charts/chart-marks';
import type { Theme } from '../charts/chart-theme';
import { comparisonOf, type DrawnGroup, type DrawnMetric } from '../charts/comparison';
import { alarmedKeys, overviewOf } from '../charts/overview';
import { ownChartsOf } from '../charts/own-charts';
import { plotData, type PlotData } from '../charts/plot-data';
import { configuredEpisodes } from '../configured-episodes';
import { comparedMarks } from '../event-marks';
import { redundantColumns } from '../redundant-columns';
import type { ReportChart } from './report-blocks';
import type { ReportedRun, ReportSeries } from './reported-run';

/** Size of a chart, in SVG units. */
export const chartSize = { width: 460, height: 280 };

/** A run with its metrics as columns. */
export interface DrawnRun {
  readonly run: ReportedRun;
  readonly series: ReportSeries;
}

/** Ids of the charts of the catalogue that show the diagnosis of the reasoning. */
const diagnosisCharts = ['mutual information', 'reasoning entropy given the prompt', 'retrieval accuracy'];

/** Returns the names of the overview's charts, without charts that no run has values for. */
export function overviewCharts(runs: readonly DrawnRun[]): string[] {
  const charts = allCharts(runs);
  const alarmed = [...new Set(runs.flatMap(({ run }) => alarmedKeys(run.events)))];
  const columns = redundantColumns(
    runs.length === 1 ? runs[0].series.keys.map(key => [key, [runs[0].series.column(key)]]) : [],
  );
  return namesOf(overviewOf(charts, { alarmed, columns }), runs);
}

/** Returns the names of the charts of the diagnosis of the reasoning; none for runs without a diagnosis. */
export const diagnosisChartsOf = (runs: readonly DrawnRun[]): string[] =>
  namesOf(
    allCharts(runs).filter(({ id }) => diagnosisCharts.includes(id)),
    runs,
  );

const namesOf = (specs: readonly ChartSpec[], runs: readonly DrawnRun[]): string[] =>
  specs
    .filter(({ lines }) => lines.some(({ key }) => runs.some(({ series }) => series.column(key).some(Number.isFinite))))
    .map(({ id }) => id);

/** Returns the charts with the given names; without those that no run has. `groups` are drawn together. */
export function chartsNamed(
  names: readonly string[],
  runs: readonly DrawnRun[],
  groups: readonly DrawnGroup[],
  theme: Theme,
): Omit<ReportChart, 'id'>[] {
  const charts = allCharts(runs);
  const specs = names.flatMap(
    name =>
      charts.find(({ id }) => id === name) ??
      (runs.some(({ series }) => series.keys.includes(name)) ? [chartOfKey(name)] : []),
  );
  const drawn: { caption: string; data: PlotData | null }[] =
    runs.length === 1
      ? specs.map(spec => ({ caption: spec.lines.map(({ key }) => key).join(', '), data: ofOne(spec, runs[0], theme) }))
      : specs.flatMap(({ title, unit, lines }) =>
          lines.map(({ key, label }) => ({
            caption: key,
            data: ofSeveral(
              { key, title: lines.length > 1 ? `${title} · ${label}` : title, unit },
              ...([runs, groups, theme] as const),
            ),
          })),
        );
  return drawn.flatMap(({ caption, data }) => (data ? [{ caption, data }] : []));
}

function allCharts(runs: readonly DrawnRun[]): ChartSpec[] {
  const keys = [...new Set(runs.flatMap(({ series }) => series.keys))];
  return arrange({ keys, own: ownChartsOf(runs.map(({ run }) => run)) }).flatMap(({ charts }) => charts);
}

function ofOne(spec: ChartSpec, { run, series }: DrawnRun, theme: Theme): PlotData | null {
  const xs = series.steps;
  const last = maximum([...xs], 1);
  const { val } = configuredEpisodes(run.manifest.config);
  const marks = marksOf(
    run.events.filter(({ kind }) => kind !== 'checkpoint'),
    step => (step <= last ? step : Number.NaN),
  );
  return plotData(
    spec,
    {
      ...{ store: series, theme, smoothing: 0, axis: 'step', xs, x: progressRange(last, last) },
      episodes: (tag, side) => (side === 'val' ? val[tag] : undefined),
    },
    { width: chartSize.width, log: false, clipped: false, limits: null, large: true, marks, previous: null },
  );
}

function ofSeveral(
  { key, title, unit }: DrawnMetric & { key: string },
  runs: readonly DrawnRun[],
  groups: readonly DrawnGroup[],
  theme: Theme,
): PlotData | null {
  const { data } = comparisonOf(
    { title, unit },
    groups,
    runs.map(({ series }) => series.runCurve(key)),
    runs.map(({ series }) => series.steps),
    {
      ...{ theme, smoothing: 0, axis: 'step', zoom: null, log: false, large: true, baseline: null, previous: null },
      events: runs.map(({ run }) => comparedMarks(run.events)),
    },
  );
  return data;
}
