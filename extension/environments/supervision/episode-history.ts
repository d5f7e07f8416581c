// The data from which episodes are rebuilt after their thread or process has ended: the start of each episode and its
// executed actions. An episode is a pure function of (code, seed, member, actions). A failed episode stays in the
// history until it is reset or closed, and is not rebuilt.
import type { EnvironmentFailure } from '../../protocol/environment-link';
import { appendAll } from '../../common/lists';

/** The arguments of a reset. */
export interface EpisodeStart {
  episode: string;
  seed: number;
  member: number;
  mode: 'train' | 'val';
}

/**
 * One episode. `note` is any data that the owner of the history stores with the episode; `failure` is set if the
 * episode has failed.
 */
export interface EpisodeRecord<Start extends EpisodeStart, Note> {
  start: Start;
  actions: (number | string)[];
  note: Note;
  failure?: EnvironmentFailure;
}

export class EpisodeHistory<Start extends EpisodeStart, Note> {
  private readonly records = new Map<string, EpisodeRecord<Start, Note>>();

  constructor(records: readonly EpisodeRecord<Start, Note>[] = []) {
    for (const record of records) this.records.set(record.start.episode, record);
  }

  /** Number of episodes, including failed episodes. */
  get size(): number {
    return this.records.size;
  }

  get(episode: string): EpisodeRecord<Start, Note> | undefined {
    return this.records.get(episode);
  }

  /** Returns the episodes that have not failed; a new thread or process must rebuild them. */
  live(): EpisodeRecord<Start, Note>[] {
    return [...this.records.values()].filter(({ failure }) => !failure);
  }

  /**
   * Records the start of an episode, which replaces an earlier episode with the same id. If `failure` is given, records
   * the episode as failed.
   */
  begun(start: Start, note: Note, failure?: EnvironmentFailure): void {
    this.records.set(start.episode, { start, actions: [], note, failure });
  }

  /** Records the executed actions of an episode. Ignores an unknown episode. */
  acted(episode: string, outcomes: readonly { action: number | string }[]): void {
    const record = this.records.get(episode);
    if (record)
      appendAll(
        record.actions,
        outcomes.map(({ action }) => action),
      );
  }

  /** Marks an episode as failed. Ignores an unknown episode. */
  fail(episode: string, failure: EnvironmentFailure): void {
    const record = this.records.get(episode);
    if (record) record.failure = failure;
  }

  close(episode: string): void {
    this.records.delete(episode);
  }

  /** Removes and returns each episode for which `concerns`, called with the episode's start, returns true. */
  release(concerns: (start: Start) => boolean): EpisodeRecord<Start, Note>[] {
    const found = [...this.records.values()].filter(({ start }) => concerns(start));
    for (const { start } of found) this.records.delete(start.episode);
    return found;
  }
}
