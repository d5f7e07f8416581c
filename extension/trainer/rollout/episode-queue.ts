// The order in which the episodes of a rollout begin. If an environment limits how many of its episodes run at once, the
// others wait until an earlier one has ended. When an episode begins does not change what it plays.
import type { EpisodeEntry } from './environment-state-manager';

export class EpisodeQueue {
  /** Episodes that wait, by tag; only tags with a limit have an entry. */
  private readonly waiting = new Map<string, EpisodeEntry[]>();
  /** The episodes that begin at once. */
  readonly first: readonly EpisodeEntry[];
  /** Episodes after which another one has begun, so that each one counts once. */
  private readonly counted = new Set<EpisodeEntry>();

  constructor(entries: readonly EpisodeEntry[]) {
    const begun = new Map<string, number>();
    this.first = entries.filter(entry => {
      const { at_once = Infinity } = entry.environment;
      const running = begun.get(entry.tag) ?? 0;
      if (running < at_once) {
        begun.set(entry.tag, running + 1);
        return true;
      }
      this.waiting.set(entry.tag, [...(this.waiting.get(entry.tag) ?? []), entry]);
      return false;
    });
  }

  /** Returns the episodes that begin because others have ended, in the order of the batch. */
  after(ended: readonly EpisodeEntry[]): EpisodeEntry[] {
    const fresh = ended.filter(entry => !this.counted.has(entry));
    for (const entry of fresh) this.counted.add(entry);
    return fresh.flatMap(({ tag }) => this.waiting.get(tag)?.shift() ?? []);
  }
}
