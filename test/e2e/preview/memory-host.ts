// In-memory host for the pages: answers requests as the extension host does, from generated runs. Page tests call it
// directly; the preview calls it through acquireVsCodeApi.
import { overviewOf } from '../../../extension/common/curves';
import { smooth } from '../../../extension/common/smoothing';
import {
  dashboardColumns,
  dashboardExport,
  dashboardPicked,
  dashboardReady,
  dashboardScores,
  type ColumnPart,
  type DashboardSnapshot,
} from '../../../extension/protocol/dashboard-page';
import { addToIndex, indexLine } from '../../../extension/run-data/episode-index-line';
import { EpisodeTable } from '../../../extension/run-data/episode-table';
import type { TextTerm } from '../../../extension/run-data/episode-filter';
import {
  episodeOpen,
  episodesExport,
  episodesReady,
  episodesSearch,
  type EpisodeMovie,
  type EpisodeRef,
  type EpisodesSnapshot,
} from '../../../extension/protocol/episodes-page';
import type { Episode } from '../../../extension/run-data/episode';
import { pickEpisodes } from '../../../extension/run-data/picked-episodes';
import { redundantColumns } from '../../../extension/run-data/redundant-columns';
import { parseMetricMeanings } from '../../../extension/run-data/metric-meanings';
import type { RunSummary } from '../../../extension/protocol/page-state';
import type { RunEnding } from '../../../extension/run-data/run-ending';
import { newRunAnswers } from './new-run-host';
import {
  columnsOfLines,
  episodesOf,
  hostileTexts,
  largeColumns,
  metricLines,
  runAt,
  runEvents,
  scoreStrips,
} from './data';
import { scoredEpisode } from './scored-episode';

export type Scenario = 'running' | 'empty' | 'failed' | 'early' | 'large' | 'hostile' | 'finished' | 'scored';

/** Number of newest steps whose episodes are available. */
const keptSteps = 20;
/** Cache of generated episodes, because their generation takes most of a test's time. */
const written = new Map<string, Episode[]>();

export interface MemoryHost {
  /** Answers a request by its method name; throws the error that a host would reject with. */
  answer(method: string, params: unknown): unknown;
}

/** The end of a finished run. */
const endingAt = ({ status }: RunSummary): RunEnding => ({
  ...{ state: 'finished', unit: 'step', done: status.step, seconds: 2940, cpuHours: 6.53, gpuHours: null },
  best: { step: 120, success: 0.447, checkpoint: 'step-000120' },
  last: { step: 140, success: 0.412, checkpoint: null },
  tokens: 6_790_000,
});

/** `metrics` is the text of docs/METRICS.md. */
export function memoryHost(scenario: Scenario, metrics: string): MemoryHost {
  const steps = {
    ...{ running: 140, scored: 140, finished: 140 },
    ...{ empty: 0, failed: 57, early: 1, large: 100_000, hostile: 24 },
  }[scenario];
  const total = scenario === 'large' ? 100_000 : 200;
  const run = runAt(steps, total);
  if (scenario === 'empty') run.status.phase = 'rollout';
  if (scenario === 'finished') {
    run.live = false;
    Object.assign(run.status, { state: 'finished', total_steps: 140, eta_s: null, phase: 'idle' });
  }
  if (scenario === 'failed') {
    run.live = false;
    Object.assign(run.status, {
      state: 'failed',
      error: 'envs/sokoban/environment.ts:41 threw “grid[row] is undefined” in 8 of 8 episodes: mend it and resume',
    });
  }
  const ending = scenario === 'finished' ? endingAt(run) : null;
  if (scenario === 'hostile') run.name = hostileTexts[0];
  const episodes = (step: number, mode: 'train' | 'val') => {
    const key = `${scenario === 'hostile' || scenario === 'scored' ? scenario : 'plain'} ${mode} ${step}`;
    const known = written.get(key) ?? write(step, mode);
    written.set(key, known);
    return known;
  };
  const write = (step: number, mode: 'train' | 'val') => {
    const all = episodesOf(step, mode);
    if (scenario === 'scored') return all.map(scoredEpisode);
    if (scenario !== 'hostile') return all;
    return all.map((episode, i) => {
      const text = (at: number) => hostileTexts[(i + at) % hostileTexts.length];
      const turns = episode.turns.map((turn, t) => ({
        ...turn,
        state: text(t),
        thought: text(t + 1),
        answer: text(t + 2),
        raw: text(t + 3),
        parsed: [text(t + 4)],
        executed: [text(t + 5)],
      }));
      return {
        ...episode,
        tag: text(0),
        turns,
        final_state: text(6),
        error: text(7),
        messages: [{ role: text(1), content: text(2) }],
      };
    });
  };
  /** Index of the newest steps' episodes, as in a run that stores only a few steps. */
  const table = () => {
    const found = new EpisodeTable();
    const add = (step: number, mode: 'train' | 'val') => {
      const line = indexLine(mode, step, 0);
      for (const episode of episodes(step, mode)) addToIndex(line, episode, line.to + 1, 0);
      found.addLine(line);
    };
    const last = Math.min(steps, 140);
    for (let step = Math.max(1, last - keptSteps + 1); step <= last; step++) {
      add(step, 'train');
      if (step % 10 === 0) add(step, 'val');
    }
    return found;
  };
  let listed: EpisodeTable | undefined;
  let held: Map<string, Float64Array> | undefined;
  const columns = () => (held ??= scenario === 'large' ? largeColumns(steps, 60) : columnsOfLines(metricLines(steps)));
  const answers: Record<string, (params: never) => unknown> = {
    ...newRunAnswers,
    [dashboardReady.method](): DashboardSnapshot {
      const events = runEvents(Math.min(steps, 140));
      if (scenario === 'hostile') events.forEach((event, i) => (event.message = hostileTexts[i % hostileTexts.length]));
      return {
        ...{ run, epoch: 0, read: 1, events, view: undefined, scored: true, ending },
        steps: steps > 0 ? [[1, steps]] : [],
        keys: [...columns().keys()].filter(key => key !== 'step'),
        meanings: parseMetricMeanings(metrics),
        episodes: { train: 128, val: { CoordSokoban: 64 } },
        redundant: redundantColumns([...columns()].map(([key, values]) => [key, [values]])),
      };
    },
    [dashboardColumns.method]({ keys, overview, smoothing }: { keys: string[]; overview: boolean; smoothing: number }) {
      const parts = keys.map((key): [string, ColumnPart] => {
        const values = columns().get(key) ?? new Float64Array(steps).fill(Number.NaN);
        if (!overview || steps <= 20_000) return [key, { kind: 'whole', values }];
        const smoothed = smoothing > 0 ? overviewOf(smooth(values, smoothing), 2048) : null;
        return [key, { kind: 'overview', points: overviewOf(values, 2048), smoothed }];
      });
      return { epoch: 0, rows: steps, columns: Object.fromEntries(parts) };
    },
    [dashboardScores.method]: ({ from, to, columns }: { from: number; to: number; columns: number }) =>
      scoreStrips(from, to, columns),
    [dashboardExport.method]: () => true,
    [dashboardPicked.method]: () => pickEpisodes((listed ??= table())),
    [episodesReady.method]: (): EpisodesSnapshot => ({ run, epoch: 0, rows: (listed ??= table()).slice(0), read: 1 }),
    [episodeOpen.method]: ({ step, mode, id }: EpisodeRef) =>
      episodes(step, mode).find(episode => episode.id === id) ?? null,
    [episodesExport.method]: ({ format, bytes }: EpisodeMovie) => {
      const magic = format === 'gif' ? [0x47, 0x49, 0x46] : [0x1a, 0x45, 0xdf];
      if (!magic.every((byte, i) => bytes[i] === byte)) throw new Error(`preview: these bytes are no ${format} file`);
      return true;
    },
    [episodesSearch.method]: ({ rows, terms }: { rows: Int32Array; terms: TextTerm[] }) =>
      rows.filter(row => {
        const { id, step, mode } = listed!.row(row);
        const { turns, final_state, error } = episodes(step, mode).find(episode => episode.id === id)!;
        const text = [...turns.flatMap(turn => [turn.state, turn.raw]), final_state, error ?? '']
          .join('\n')
          .toLowerCase();
        return terms.every(({ value, not }) => text.includes(value.toLowerCase()) !== not);
      }),
  };
  return {
    answer(method, params) {
      const answer = answers[method];
      if (!answer) throw new Error(`preview: no answer to ${method}`);
      return answer(params as never);
    },
  };
}
