// Data derived once from a snapshot of the compared runs. Metrics are listed in the same groups and order as on the
// dashboard. A group of runs is drawn in the colour that the group's first run has on all pages. If an earlier group has
// the same colour, the lines of the later group are dashed.
import type { ComparedGroup } from '../../extension/run-data/compared-runs';
import type { CompareSnapshot } from '../../extension/protocol/compare-page';
import { meaningOf } from '../../extension/run-data/metric-meanings';
import { arrange } from '../../extension/run-data/charts/catalogue';
import { metricName } from '../../extension/run-data/charts/metric-names';
import { withDashes } from '../../extension/run-data/charts/comparison';
import type { Unit } from '../shared/format';
import { colourOfRun } from '../../extension/run-data/run-colour';

export interface ComparedMetric {
  readonly key: string;
  readonly title: string;
  readonly unit: Unit;
  /** Tooltip of the title: key and meaning of the metric. */
  readonly hint: string;
  /** Id of the dashboard group that contains the metric; `sectionTitle` is its title. */
  readonly section: string;
  readonly sectionTitle: string;
}

export interface ColouredGroup extends Readonly<ComparedGroup> {
  /** Id of the group's first run; settings of the group are stored under it. */
  readonly id: string;
  /** Index into the palette. */
  readonly colour: number;
  /** Index of the dash pattern (shared/run-colours.ts): the number of earlier groups of the same colour. */
  readonly dash: number;
}

export interface Compared {
  readonly snapshot: CompareSnapshot;
  readonly metrics: readonly ComparedMetric[];
  readonly groups: readonly ColouredGroup[];
}

export function comparedOf(snapshot: CompareSnapshot): Compared {
  return {
    snapshot,
    metrics: metricsOf([...new Set(snapshot.runs.flatMap(run => run.keys))], snapshot.meanings, snapshot.own),
    groups: withDashes(
      snapshot.groups.map(group => {
        const { run } = snapshot.runs[group.members[0]];
        return { ...group, id: run.id, colour: colourOfRun(run), dash: 0 };
      }),
    ),
  };
}

/** Returns the groups to draw: without the hidden runs. A group whose runs are all hidden is left out. */
export function shownGroups(
  groups: readonly ColouredGroup[],
  { runs }: CompareSnapshot,
  hidden: readonly string[],
): ColouredGroup[] {
  return withDashes(
    groups.flatMap(group => {
      const members = group.members.filter(i => !hidden.includes(runs[i].run.id));
      return members.length > 0 ? [{ ...group, members }] : [];
    }),
  );
}

/** Returns the metrics with these keys, one per key. @param own charts of plug-ins, which name their computed lines */
export function metricsOf(
  keys: string[],
  meanings: Readonly<Record<string, string>>,
  own: CompareSnapshot['own'] = [],
): ComparedMetric[] {
  return arrange({ keys, own }).flatMap(group =>
    group.charts.flatMap(chart =>
      (chart.listed ? [] : chart.lines).map(({ key, label }) => ({
        key,
        title: chart.lines.length > 1 ? `${chart.title} · ${label}` : chart.title,
        unit: chart.unit,
        hint: `${metricName(key)}\n${key}\n${meaningOf(meanings, key) ?? ''}`.trim(),
        section: group.id,
        sectionTitle: group.title,
      })),
    ),
  );
}
