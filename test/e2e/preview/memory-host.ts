// A host in memory for the pages: answers what the extension host answers, from made-up runs. Used by the page tests directly and,
// behind acquireVsCodeApi, by the preview.
import {
  dashboardReady,
  episodeOpen,
  episodesReady,
  type DashboardSnapshot,
  type EpisodesSnapshot,
} from '../../../extension/protocol/pages';
import type { Episode } from '../../../extension/protocol/run-folder';
import { parseMetricMeanings } from '../../../extension/protocol/metric-meanings';
import { columnsOf, episodesOf, hostileTexts, largeColumns, metricLines, rowOf, runAt, runEvents } from './data';

export type Scenario = 'running' | 'empty' | 'failed' | 'early' | 'large' | 'hostile';

export interface MemoryHost {
  /** Answers a request by its method's name; throws what a host would reject with. */
  answer(method: string, params: unknown): unknown;
}

/** `metrics` is the text of docs/METRICS.md. */
export function memoryHost(scenario: Scenario, metrics: string): MemoryHost {
  const steps = { running: 140, empty: 0, failed: 57, early: 1, large: 100_000, hostile: 24 }[scenario];
  const total = scenario === 'large' ? 100_000 : 200;
  const run = runAt(steps, total);
  if (scenario === 'empty') run.status.phase = 'rollout';
  if (scenario === 'failed') {
    run.live = false;
    Object.assign(run.status, {
      state: 'failed',
      error: 'envs/sokoban/environment.ts:41 threw “grid[row] is undefined” in 8 of 8 episodes: mend it and resume',
    });
  }
  if (scenario === 'hostile') run.name = hostileTexts[0];
  const written = new Map<string, Episode[]>();
  const episodes = (step: number, mode: 'train' | 'val') => {
    const key = `${mode} ${step}`;
    const known = written.get(key) ?? write(step, mode);
    written.set(key, known);
    return known;
  };
  const write = (step: number, mode: 'train' | 'val') => {
    const all = episodesOf(step, mode);
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
  const stepsWithEpisodes = (): EpisodesSnapshot['steps'] => {
    const list: EpisodesSnapshot['steps'] = [];
    for (let step = 1; step <= Math.min(steps, 140); step++) {
      list.push({ step, mode: 'train' });
      if (step % 10 === 0) list.push({ step, mode: 'val' });
    }
    return list;
  };
  const answers: Record<string, (params: never) => unknown> = {
    [dashboardReady.method](): DashboardSnapshot {
      const columns = scenario === 'large' ? largeColumns(steps, 60) : columnsOf(metricLines(steps));
      const { steps: rows, series } = columns;
      const meanings = parseMetricMeanings(metrics);
      const events = runEvents(Math.min(steps, 140));
      if (scenario === 'hostile') events.forEach((event, i) => (event.message = hostileTexts[i % hostileTexts.length]));
      return { run, steps: rows, series, events, meanings };
    },
    [episodesReady.method](asked: { step: number; mode: 'train' | 'val' } | null): EpisodesSnapshot {
      const list = stepsWithEpisodes();
      const selected = asked ?? list.filter(({ mode }) => mode === 'train').at(-1) ?? null;
      return { run, steps: list, selected, rows: selected ? episodes(selected.step, selected.mode).map(rowOf) : [] };
    },
    [episodeOpen.method]: ({ step, mode, id }: { step: number; mode: 'train' | 'val'; id: string }) =>
      episodes(step, mode).find(episode => episode.id === id) ?? null,
  };
  return {
    answer(method, params) {
      const answer = answers[method];
      if (!answer) throw new Error(`preview: no answer to ${method}`);
      return answer(params as never);
    },
  };
}
