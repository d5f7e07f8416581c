// Computes the position of each span in the drawing of a step. Counters are on top, below them is a row per lane, and
// at the bottom is a row per episode. If spans in the row of a lane overlap in time, the row is divided into layers, so
// that no two spans cover each other. Heights are in CSS pixels. A pure function of the step's timeline.
import { laneLabels } from '../../extension/run-data/chrome-trace';
import { lanes, type Lane, type StepTimeline } from '../../extension/run-data/timeline';
import { disjointRows, inFlight, peakAndMean, type CountSeries } from '../../extension/run-data/timeline-measures';

export interface LayoutRow {
  kind: 'counter' | 'lane' | 'head' | 'episode';
  label: string;
  /** Id of the episode; empty for other rows. */
  episode: string;
  top: number;
  height: number;
  /** Indices of the row's spans in order of their start. `layerHeight` is the height of each of the row's layers. */
  spans: readonly number[];
  layerHeight: number;
  series: CountSeries | null;
  /** Maximum of `series`. */
  peak: number;
}

export interface StepLayout {
  rows: readonly LayoutRow[];
  height: number;
  /** For each span, the index of its row; -1 if the span is not drawn. `layerOf` contains the layer within the row. */
  rowOf: Int32Array;
  layerOf: Int32Array;
}

const counterHeight = 36;
const layerHeight = 18;
/**
 * Maximum height of the row of a lane. If a row has too many layers for this height, its layers are thinner than
 * `layerHeight`.
 */
const mostLaneHeight = 108;
const episodeHeight = 16;
const headHeight = 24;
const gap = 4;

export function layOut(timeline: StepTimeline, withEpisodes: boolean): StepLayout {
  const { spans, names, episodes } = timeline;
  const rowOf = new Int32Array(spans.start.length).fill(-1);
  const layerOf = new Int32Array(spans.start.length);
  const rows: LayoutRow[] = [];
  let top = 0;
  const add = (row: Pick<LayoutRow, 'kind' | 'label' | 'height'> & Partial<LayoutRow>): void => {
    const { spans: list = [] } = row;
    for (const i of list) rowOf[i] = rows.length;
    rows.push({ episode: '', spans: list, layerHeight: row.height, series: null, peak: 0, ...row, top });
    top += row.height + (row.kind === 'episode' ? 0 : gap);
  };
  const flight = inFlight(timeline);
  if (flight.at.length > 0)
    add({
      ...{ kind: 'counter', label: 'In flight', height: counterHeight, series: flight },
      peak: peakAndMean(flight, 0)[0],
    });
  const stale = stalenessOf(timeline);
  const staleness = peakAndMean(stale, 0)[0];
  if (staleness > 0)
    add({ kind: 'counter', label: 'Staleness', height: counterHeight, series: stale, peak: staleness });
  const byLane = groupBy(timeline);
  for (const lane of lanes) {
    const list = byLane.get(lane);
    if (!list || lane === 'episodes') continue;
    const count = intoLayers(timeline, list, layerOf);
    const height = Math.min(mostLaneHeight, count * layerHeight);
    add({ kind: 'lane', label: laneLabels[lane], height, spans: list, layerHeight: height / count });
  }
  if (episodes.length === 0) return { rows, height: top, rowOf, layerOf };
  add({ kind: 'head', label: `${episodes.length} episodes`, height: headHeight });
  if (!withEpisodes) return { rows, height: top, rowOf, layerOf };
  const byEpisode = episodes.map((): number[] => []);
  for (const i of byLane.get('episodes') ?? []) if (spans.episode[i] >= 0) byEpisode[spans.episode[i]].push(i);
  const order = [...episodes.keys()].sort((a, b) => (episodes[a] < episodes[b] ? -1 : 1));
  for (const i of order)
    if (byEpisode[i].length > 0)
      add({
        ...{ kind: 'episode', label: shortId(episodes[i]), episode: episodes[i], height: episodeHeight },
        spans: byEpisode[i],
      });
  return { rows, height: top, rowOf, layerOf };

  function groupBy({ spans: { name } }: StepTimeline): Map<Lane, number[]> {
    const found = new Map<Lane, number[]>();
    for (let i = 0; i < name.length; i++) {
      const { lane } = names[name[i]];
      const list = found.get(lane);
      if (list) list.push(i);
      else found.set(lane, [i]);
    }
    return found;
  }
}

/**
 * Shortens an episode's id to the part that distinguishes the episodes of a step: `g003-m05`, or `val g003-m05` for a
 * validation episode.
 */
export const shortId = (id: string): string => id.replace(/^train-\d+-/, '').replace(/^val-\d+-/, 'val ');

/**
 * Assigns the spans in `list` to layers, so that spans of the same layer do not overlap in time. Returns the number of
 * layers.
 */
function intoLayers({ spans }: StepTimeline, list: readonly number[], layerOf: Int32Array): number {
  const { rows, count } = disjointRows(spans, list);
  list.forEach((i, k) => (layerOf[i] = rows[k]));
  return count;
}

function stalenessOf({ staleness }: StepTimeline): CountSeries {
  return {
    at: Float64Array.from(staleness, ([us]) => us),
    value: Float64Array.from(staleness, ([, steps]) => steps),
  };
}

/**
 * Returns the index of the span at a position of the drawing, or -1 if no span is there. `us` is the time at this
 * position, and `y` is its distance in pixels from the top of the layout.
 */
export function spanAt({ rows, layerOf }: StepLayout, { spans }: StepTimeline, us: number, y: number, slack: number) {
  const row = rows.find(({ top, height }) => y >= top && y < top + height);
  if (!row || row.spans.length === 0) return -1;
  const layer = Math.floor((y - row.top) / row.layerHeight);
  let best = -1;
  let nearest = Infinity;
  for (let k = 0; k < row.spans.length; k++) {
    const i = row.spans[k];
    if (spans.start[i] > us + slack) break;
    if (layerOf[i] !== layer) continue;
    const end = spans.start[i] + spans.us[i];
    const distance = us > end ? us - end : us < spans.start[i] ? spans.start[i] - us : 0;
    if (distance <= slack && distance <= nearest) [best, nearest] = [i, distance];
  }
  return best;
}
