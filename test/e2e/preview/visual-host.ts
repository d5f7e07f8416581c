// In-memory host for the Episodes page: a stored prompt group of a run with pictures, and its heat maps
// (fixtures/visual-run.mjs).
import { episodeHeat, episodeOpen, episodesReady, type EpisodeRef } from '../../../extension/protocol/episodes-page';
import type { ExplainedPart, HeatMaps } from '../../../extension/protocol/heat-maps';
import { addToIndex, indexLine } from '../../../extension/run-data/episode-index-line';
import { EpisodeTable } from '../../../extension/run-data/episode-table';
import type { Episode } from '../../../extension/run-data/episode';
import { runAt } from './data';
import type { MemoryHost } from './memory-host';
import type { StoredFiles } from './stored-host';

export function visualHost(files: StoredFiles): MemoryHost {
  const episodes = JSON.parse(files['episodes.json']) as Episode[];
  const heats = JSON.parse(files['heats.json']) as Record<string, HeatMaps>;
  const [{ step }] = episodes;
  const table = new EpisodeTable();
  const line = indexLine('train', step, 0);
  for (const episode of episodes) addToIndex(line, episode, line.to + 1, 0);
  table.addLine(line);
  const answers: Record<string, (params: never) => unknown> = {
    [episodesReady.method]: () => ({ run: runAt(step, step), epoch: 0, read: 1, rows: table.slice(0) }),
    [episodeOpen.method]: ({ id }: EpisodeRef) => episodes.find(each => each.id === id) ?? null,
    [episodeHeat.method]: ({ id, part }: EpisodeRef & { part: ExplainedPart }) => heats[`${part} ${id}`],
  };
  return {
    answer(method, params) {
      const answer = answers[method];
      if (!answer) throw new Error(`preview: no answer to ${method}`);
      return answer(params as never);
    },
  };
}
