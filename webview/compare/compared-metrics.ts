// Data derived once from a snapshot of the compared runs. Metrics are listed in the same groups and order as on the
// dashboard. A group of runs is drawn in the colour that the group's first run has on other pages. If an earlier group
// already uses this colour, the group gets the next free colour; if all colours are in use, its lines are dashed.
import type { ComparedGroup, CompareSnapshot } from '../../extension/protocol/compare-page';
import { meaningOf } from '../../extension/run-data/metric-meanings';
import { arrange, unitOf } from '../charts/catalogue';
import { metricName } from '../charts/metric-names';
import type { Unit } from '../shared/format';
import { colourOfRun, hue } from '../shared/run-colours';

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
  const colours = coloursOf(snapshot);
  return {
    snapshot,
    metrics: metricsOf(snapshot),
    groups: withDashes(
      snapshot.groups.map((group, i) => ({
        ...group,
        id: snapshot.runs[group.members[0]].run.id,
        colour: colours[i],
        dash: 0,
      })),
    ),
  };
}

/** Gives groups of equal colour different dash patterns. */
const withDashes = (groups: readonly ColouredGroup[]): ColouredGroup[] =>
  groups.map((group, i) => ({
    ...group,
    dash: groups.slice(0, i).filter(({ colour }) => colour === group.colour).length,
  }));

/**
 * Returns the groups to draw: without the hidden runs, in the colours that the user chose. A group whose runs are all
 * hidden is left out.
 */
export function shownGroups(
  groups: readonly ColouredGroup[],
  { runs }: CompareSnapshot,
  { hidden, colours }: { hidden: readonly string[]; colours: Readonly<Record<string, number>> },
): ColouredGroup[] {
  const coloured = groups.map(group => ({ ...group, colour: colours[group.id] ?? group.colour }));
  return withDashes(
    coloured.flatMap(group => {
      const members = group.members.filter(i => !hidden.includes(runs[i].run.id));
      return members.length > 0 ? [{ ...group, members }] : [];
    }),
  );
}

/** Returns the metrics of all runs, one per key. */
function metricsOf({ runs, meanings }: CompareSnapshot): ComparedMetric[] {
  const keys = [...new Set(runs.flatMap(run => run.keys))];
  return arrange({ keys }).flatMap(group =>
    group.charts.flatMap(chart =>
      chart.lines.map(({ key, label }) => ({
        key,
        title: chart.lines.length > 1 ? `${chart.title} · ${label}` : chart.title,
        unit: unitOf(key),
        hint: `${metricName(key)}\n${key}\n${meaningOf(meanings, key) ?? ''}`.trim(),
        section: group.id,
        sectionTitle: group.title,
      })),
    ),
  );
}

/**
 * Returns, for each group, the palette index of its colour. This is the colour of the group's first run or, if an
 * earlier group already has that colour, the next free colour.
 */
export function coloursOf({ groups, runs }: Pick<CompareSnapshot, 'groups' | 'runs'>): number[] {
  const taken: number[] = [];
  for (const { members } of groups) {
    const own = colourOfRun(runs[members[0]].run.id);
    const free = Array.from({ length: hue.grey }, (_, i) => (own + i) % hue.grey).find(at => !taken.includes(at));
    taken.push(free ?? own);
  }
  return taken;
}
