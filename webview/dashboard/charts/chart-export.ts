// Builds export requests for the host: metric rows as CSV, or the picture of a chart.
import type { Export } from '../../../extension/protocol/dashboard-page';
import { keysOf } from '../../../extension/run-data/charts/catalogue';
import type { ShownGroup } from './arrangement';
import { rowsShown, type ChartContext } from './chart-context';
import { foundGroups, searchedText, type DashboardState } from '../state';
import { pictureSize } from '../../../extension/run-data/charts/svg-plot';
import { pngOf } from './png';

/**
 * Builds the request to export the visible rows of the given metrics; of an expression, its metrics are exported. Keys
 * that the run does not have are omitted.
 */
export function rowsExport(
  name: string,
  keys: readonly string[],
  { store, xs }: Pick<ChartContext, 'store' | 'xs'>,
  settings: DashboardState['settings'],
): Export {
  const existing = [...new Set(keys.flatMap(key => store.metricsOf(key)))].filter(key => store.has(key));
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

/** Builds the request to export a picture of size `pictureSize`, given as SVG. */
export async function pictureExport(name: string, format: 'png' | 'svg', svg: string): Promise<Export> {
  const bytes = format === 'svg' ? new TextEncoder().encode(svg) : await pngOf(svg, pictureSize, 2);
  return { kind: 'picture', name, format, bytes: bytes };
}
