// The pictures of the episode that the Live page shows, as data URLs. A picture is loaded when an episode first names it;
// until then the page shows none, and the episode is sent again when its pictures have been loaded.
import type { WatchedEpisode } from '../../protocol/trainer-link';

/** Maximum number of pictures that are kept; the oldest are loaded again when needed. */
const mostKept = 256;

export class WatchedPictures {
  /** Data URLs by name; null for a picture that is missing or refused. */
  private readonly loaded = new Map<string, string | null>();
  private readonly loading = new Set<string>();

  /**
   * @param load returns the data URL of a picture, null if it is missing
   * @param onLoaded called when all pictures of an episode that were missing have been loaded
   */
  constructor(
    private readonly load: (name: string) => Promise<string | null>,
    private readonly onLoaded: () => void,
  ) {}

  /** Returns a copy of the episode with data URLs in place of names, null for a picture that is not loaded. */
  shownIn(episode: WatchedEpisode): WatchedEpisode {
    const { turns, pictures } = episode;
    const names = new Set([...turns.flatMap(turn => turn.pictures ?? []), ...(pictures ?? [])].filter(isName));
    if (names.size === 0) return episode;
    void this.fetch([...names].slice(-mostKept));
    const urlsOf = (all: readonly (string | null)[]): (string | null)[] =>
      all.map(name => (name === null ? null : (this.loaded.get(name) ?? null)));
    return {
      ...episode,
      turns: turns.map(turn => (turn.pictures ? { ...turn, pictures: urlsOf(turn.pictures) } : turn)),
      ...(pictures && { pictures: urlsOf(pictures) }),
    };
  }

  private async fetch(names: readonly string[]): Promise<void> {
    const missing = names.filter(name => !this.loaded.has(name) && !this.loading.has(name));
    if (missing.length === 0) return;
    for (const name of missing) this.loading.add(name);
    for (const name of missing) this.loaded.set(name, await this.load(name).catch(() => null));
    for (const name of missing) this.loading.delete(name);
    for (const old of [...this.loaded.keys()].slice(0, -mostKept)) this.loaded.delete(old);
    this.onLoaded();
  }
}

const isName = (name: string | null): name is string => name !== null;
