// Finds the first and the last step at which each prompt was played, from the run's episode index
// (run-data/episode-index-line.ts). The trace lenses use these steps to offer navigation to the same prompt at earlier
// and later steps. Must not import `vscode`.
import { join } from 'node:path';
import { z } from 'zod';
import { isIndexLine, textHash, type EpisodeIndexLine } from '../../../run-data/episode-index-line';
import { runFiles } from '../../../run-data/run-file-names';
import { type Episode } from '../../../run-data/episode';
import { JsonLines } from '../../../node/json-lines';

/** Fields of an episode that identify its prompt and its step. */
export type PromptOf = Pick<Episode, 'mode' | 'step' | 'tag' | 'seed' | 'turns'>;

/** Number of runs whose prompts are cached. */
const remembered = 8;

type Spans = Map<string, { first: number; last: number }>;

interface CachedRun {
  source: JsonLines<EpisodeIndexLine>;
  spans: Spans;
  /** Settles when the most recently started read of the index has ended. The next read waits for this promise. */
  read: Promise<unknown>;
}

export class PromptTimes {
  private readonly runs = new Map<string, CachedRun>();

  /**
   * Returns whether a run played an episode's prompt at earlier steps and at later steps. If the index does not contain
   * the prompt, both values are true.
   */
  async around(folder: string, episode: PromptOf): Promise<{ earlier: boolean; later: boolean }> {
    const spans = await this.current(folder);
    const { mode, step, tag, seed, turns } = episode;
    const names = promptNames({ mode, tag, seed, first: turns.length > 0 ? textHash(turns[0].state) : 0 });
    const found = names.map(name => spans.get(name)).filter(span => span !== undefined);
    if (found.length === 0) return { earlier: true, later: true };
    return { earlier: found.some(({ first }) => first < step), later: found.some(({ last }) => last > step) };
  }

  private current(folder: string): Promise<Spans> {
    const known: CachedRun = this.runs.get(folder) ?? {
      source: new JsonLines(join(folder, runFiles.episodeIndex), z.custom<EpisodeIndexLine>(isIndexLine), folder),
      spans: new Map(),
      read: Promise.resolve(),
    };
    this.runs.delete(folder);
    this.runs.set(folder, known);
    for (const old of [...this.runs.keys()].slice(0, -remembered)) this.runs.delete(old);
    const next = known.read.then(() => readNew(known));
    known.read = next.catch(() => undefined);
    return next;
  }
}

async function readNew({ source, spans }: CachedRun): Promise<Spans> {
  const { lines, restarted } = await source.read();
  if (restarted) spans.clear();
  for (const line of lines) addLine(spans, line);
  return spans;
}

function addLine(spans: Spans, { mode, step, tags, columns }: EpisodeIndexLine): void {
  columns.at.forEach((_, i) => {
    const [tag, seed, first] = [tags[columns.tag[i] ?? 0], columns.seed[i] ?? 0, columns.first[i] ?? 0];
    for (const name of promptNames({ mode, tag, seed, first })) {
      const span = spans.get(name);
      spans.set(name, { first: Math.min(span?.first ?? step, step), last: Math.max(span?.last ?? step, step) });
    }
  });
}

/**
 * Returns the keys under which a prompt is stored: one from its seed and, if the episode has a first state, one from
 * the hash of this state.
 */
const promptNames = (of: { mode: string; tag: string; seed: number; first: number }): string[] => {
  const { mode, tag, seed, first } = of;
  return [
    JSON.stringify([mode, tag, 'seed', seed]),
    ...(first === 0 ? [] : [JSON.stringify([mode, tag, 'state', first])]),
  ];
};
