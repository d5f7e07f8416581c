// What rebuilds the episodes of a thread or process that has ended: how each began and which actions it has executed.
// An episode is a pure function of (code, seed, member, actions). A failed episode keeps its failure until it is reset
// or closed, and is not rebuilt.
import type { EnvironmentFailure } from '../../protocol/environment-link';
import { appendAll } from '../../common/lists';

/** How an episode begins. */
export interface EpisodeStart {
  episode: string;
  seed: number;
  member: number;
  mode: 'train' | 'val';
}

/** One episode; `Note` is what its owner keeps with it. */
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

  /** Number of episodes, failed ones included. */
  get size(): number {
    return this.records.size;
  }

  get(episode: string): EpisodeRecord<Start, Note> | undefined {
    return this.records.get(episode);
  }

  /** The episodes that a new thread or process must rebuild. */
  live(): EpisodeRecord<Start, Note>[] {
    return [...this.records.values()].filter(({ failure }) => !failure);
  }

  /** Records how an episode began; a failed beginning makes it a failed episode. */
  begun(start: Start, note: Note, failure?: EnvironmentFailure): void {
    this.records.set(start.episode, { start, actions: [], note, failure });
  }

  /** Records the executed actions of an episode; does nothing for an unknown one. */
  acted(episode: string, outcomes: readonly { action: number | string }[]): void {
    const record = this.records.get(episode);
    if (record)
      appendAll(
        record.actions,
        outcomes.map(({ action }) => action),
      );
  }

  /** Makes an episode a failed one; does nothing for an unknown one. */
  fail(episode: string, failure: EnvironmentFailure): void {
    const record = this.records.get(episode);
    if (record) record.failure = failure;
  }

  close(episode: string): void {
    this.records.delete(episode);
  }

  /** Removes the episodes that `concerns` selects and returns them. */
  release(concerns: (start: Start) => boolean): EpisodeRecord<Start, Note>[] {
    const found = [...this.records.values()].filter(({ start }) => concerns(start));
    for (const { start } of found) this.records.delete(start.episode);
    return found;
  }
}
