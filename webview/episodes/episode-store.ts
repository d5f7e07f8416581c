// What was read of a run's episodes: rows by step, whole episodes by id (the most recently opened ones), and the texts that
// `text:` filters look into. Episodes never change once written; a fresh snapshot starts anew all the same, since a resume from an
// earlier checkpoint writes later steps again.
import { episodeOpen, episodesReady, type EpisodeRow, type EpisodesSnapshot } from '../../extension/protocol/pages';
import type { Episode } from '../../extension/protocol/run-folder';
import type { Host } from '../shared/host';

export type StepOf = EpisodesSnapshot['steps'][number];

/** Whole episodes kept at a time. */
const keptEpisodes = 64;

export const sameStep = (a: StepOf | null, b: StepOf | null): boolean => a?.step === b?.step && a?.mode === b?.mode;

export class EpisodeStore {
  private rows = new Map<string, Promise<EpisodeRow[]>>();
  private episodes = new Map<string, Promise<Episode | null>>();
  private texts = new Map<string, string>();

  constructor(private readonly host: Host) {}

  /** Takes a snapshot's rows and forgets all that was read before. */
  reset({ selected, rows }: EpisodesSnapshot): void {
    this.rows.clear();
    this.episodes.clear();
    this.texts.clear();
    if (selected) this.rows.set(keyOf(selected), Promise.resolve(rows));
  }

  /** Rows of a step. A failed request is forgotten, so that asking again asks the host again. */
  rowsOf(step: StepOf): Promise<EpisodeRow[]> {
    return remembered(this.rows, keyOf(step), () => this.host.request(episodesReady, step).then(({ rows }) => rows));
  }

  /** A whole episode; null when its file no longer has it. */
  open({ step, mode, id }: Pick<EpisodeRow, 'step' | 'mode' | 'id'>): Promise<Episode | null> {
    const asked = remembered(this.episodes, id, () => this.host.request(episodeOpen, { step, mode, id }));
    // The newest goes to the end, the oldest falls out.
    this.episodes.delete(id);
    this.episodes.set(id, asked);
    if (this.episodes.size > keptEpisodes) this.episodes.delete(this.episodes.keys().next().value!);
    return asked;
  }

  /** All texts of an episode in one, read once; empty for an episode that is gone. */
  async textOf(row: EpisodeRow): Promise<string> {
    const known = this.texts.get(row.id);
    if (known !== undefined) return known;
    const episode = await this.host.request(episodeOpen, { step: row.step, mode: row.mode, id: row.id });
    const text = episode ? textsIn(episode) : '';
    this.texts.set(row.id, text);
    return text;
  }
}

/** What a reader sees of an episode: states, raw answers, final state, error. */
export function textsIn({ turns, final_state, error }: Episode): string {
  return [...turns.flatMap(turn => [turn.state, turn.raw]), final_state, error ?? ''].join('\n');
}

const keyOf = ({ step, mode }: StepOf) => `${mode} ${step}`;

function remembered<T>(cache: Map<string, Promise<T>>, key: string, ask: () => Promise<T>): Promise<T> {
  let asked = cache.get(key);
  if (!asked) {
    asked = ask();
    cache.set(key, asked);
    asked.catch(() => cache.delete(key));
  }
  return asked;
}
