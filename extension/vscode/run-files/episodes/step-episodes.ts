// Reads the episodes of a step as rows, or one episode completely. A file is read again only if it has changed. Must
// not import `vscode`.
import { join } from 'node:path';
import { jsonOrNothing } from '../../../common/json';
import { namesInRun, openRunFile } from '../../../node/read-run-file';
import type { EpisodeRow } from '../../../run-data/episode-table';
import { episodeSchema, hasTokens, type Episode } from '../../../run-data/episode';
import { episodesFile, runFiles } from '../../../run-data/run-file-names';
import { lineSlices, openOrNothing, readRange } from '../../../node/json-lines';
import { stampOf } from '../small-file';

export type EpisodeStep = { step: number; mode: 'train' | 'val' };

/** Rows of a file's episodes, and the byte range of each episode. */
interface StepIndex {
  stamp: string;
  rows: EpisodeRow[];
  spans: Map<string, { from: number; length: number }>;
}

/** Number of files whose rows are cached. */
const remembered = 8;

export class StepEpisodes {
  private readonly indexes = new Map<string, StepIndex>();

  constructor(private readonly folder: string) {}

  /**
   * Returns the steps that have episodes, in ascending order. For a step with both modes, training precedes validation.
   */
  async steps(): Promise<EpisodeStep[]> {
    const steps: EpisodeStep[] = [];
    for (const name of await namesInRun(this.folder, runFiles.episodes)) {
      const match = /^(step|val)-(\d{6,})\.jsonl$/.exec(name);
      if (match) steps.push({ step: Number(match[2]), mode: match[1] === 'step' ? 'train' : 'val' });
    }
    return steps.sort((a, b) => a.step - b.step || (a.mode < b.mode ? -1 : Number(a.mode > b.mode)));
  }

  /** Returns the rows of one step's episodes, in file order. */
  async rows(at: EpisodeStep): Promise<EpisodeRow[]> {
    return (await this.index(at)).rows;
  }

  /** Returns one complete episode, or null if the step has no episode with this id. */
  async episode(at: EpisodeStep, id: string): Promise<Episode | null> {
    const span = (await this.index(at)).spans.get(id);
    if (!span) return null;
    const handle = await openRunFile(this.folder, episodesFile(at.mode, at.step));
    try {
      const bytes = await readRange(handle, span.from, span.length);
      return episodeSchema.safeParse(jsonOrNothing(bytes.toString('utf8'))).data ?? null;
    } finally {
      await handle.close();
    }
  }

  private pathOf(at: EpisodeStep): string {
    return join(this.folder, episodesFile(at.mode, at.step));
  }

  private async index(at: EpisodeStep): Promise<StepIndex> {
    const path = this.pathOf(at);
    const stamp = await stampOf(path);
    const known = this.indexes.get(path);
    if (known?.stamp === stamp) return known;
    const index: StepIndex = { stamp, rows: [], spans: new Map() };
    const handle = stamp === '' ? undefined : await openOrNothing(path, this.folder);
    try {
      const { size } = handle ? await handle.stat() : { size: 0 };
      const slices = handle ? lineSlices(handle, { offset: 0, skipping: false }, size) : [];
      for await (const { bytes, offset } of slices) {
        const begin = offset - bytes.length;
        for (let from = 0, end = bytes.indexOf(0x0a); end >= 0; from = end + 1, end = bytes.indexOf(0x0a, from)) {
          const { data } = episodeSchema.safeParse(jsonOrNothing(bytes.toString('utf8', from, end)));
          if (!data) continue;
          index.rows.push(rowOf(data));
          index.spans.set(data.id, { from: begin + from, length: end - from });
        }
      }
    } finally {
      await handle?.close();
    }
    this.indexes.delete(path);
    this.indexes.set(path, index);
    for (const key of [...this.indexes.keys()].slice(0, -remembered)) this.indexes.delete(key);
    return index;
  }
}

function rowOf(episode: Episode): EpisodeRow {
  const { id, step, mode, group_id, member, tag, success, score, reward, advantage, kept } = episode;
  let tokens = 0;
  for (const sampled of episode.tokens.mask) tokens += sampled;
  const turns = episode.turns.length;
  const sampled = hasTokens(episode) ? tokens : null;
  return { id, step, mode, group_id, member, tag, success, score, reward, advantage, kept, turns, tokens: sampled };
}
