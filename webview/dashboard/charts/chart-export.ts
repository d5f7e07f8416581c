// Builds export requests for the host: metric rows as CSV, or the picture of a chart.
import type { Export } from '../../../extension/protocol/dashboard-page';
import { keysOf } from '../../charts/catalogue';
import type { ShownGroup } from './arrangement';
import { rowsShown, type ChartContext } from './chart-context';
import type { PlotData } from '../../charts/plot-data';
import { foundGroups, searchedText, type DashboardState } from '../state';
import { pictureSize, pngOf, svgOf } from './svg-plot';

/** Builds the request to export the visible rows of the given metrics; keys that the run does not have are omitted. */
export function rowsExport(
  name: string,
  keys: readonly string[],
  { store, xs }: Pick<ChartContext, 'store' | 'xs'>,
  settings: DashboardState['settings'],
): Export {
  const existing = [...new Set(keys)].filter(key => store.has(key));
  return { kind: 'csv', name, keys: existing, ...rowsShown({ xs }, settings) };
}

/** Builds the request to export the visible rows of the displayed metrics. */
export function shownExport(state: DashboardState, groups: readonly ShownGroup[], context: ChartContext): Export {
  const search = searchedText(state);
  const keys = state.settings.table
    ? state.series.keys.filter(key => key.toLowerCase().includes(search))
    : foundGroups(groups, search).flatMap(({ charts }) => charts.flatMap(keysOf));
  return rowsExport(search === '' ? 'metrics' : `metrics ${search}`, keys, context, state.settings);
}

export async function pictureExport(name: string, format: 'png' | 'svg', data: PlotData): Promise<Export> {
  const svg = svgOf(data, pictureSize);
  const bytes = format === 'svg' ? new TextEncoder().encode(svg) : await pngOf(svg, pictureSize, 2);
  return { kind: 'picture', name, format, bytes: bytes };
}
