// The page's episode data: all episodes as columns, a cache of complete episodes by id, and the rows that match the
// latest text search. The page's state contains the columns as `data`.
import { EpisodeTable, type EpisodeRow, type EpisodeRows } from '../../extension/run-data/episode-table';
import type { TextTerm } from '../../extension/run-data/episode-filter';
import { episodeOpen, episodesFound, episodesSearch, episodesSearchEnd } from '../../extension/protocol/episodes-page';
import type { Episode } from '../../extension/run-data/episode';
import type { Host } from '../shared/host';
import { naturalOrder } from './list/listing';
import type { EpisodeData, Mode } from './episodes-settings';

/** Maximum number of complete episodes in the cache. */
const keptEpisodes = 64;

/** Search result of a row. */
const verdict = { unknown: 0, passed: 1, failed: 2 } as const;

export class EpisodeStore {
  private table = new EpisodeTable();
  private epoch = -1;
  private latest: EpisodeData | null = null;
  private episodes = new Map<string, Promise<Episode | null>>();
  /** The latest search terms as JSON, and the results by row. */
  private looked = { terms: '', verdicts: new Uint8Array(0) };
  private searches = 0;
  private searching = false;
  private onFound: (share: number) => void = () => undefined;

  constructor(private readonly host: Host) {
    host.onNotify(episodesFound, ({ search, found, share }) => {
      if (search !== this.searches) return;
      for (const row of found) this.looked.verdicts[row] = verdict.passed;
      this.onFound(share);
    });
  }

  /**
   * Adds rows starting at row `from`. If `from` is 0, the rows replace all stored rows. Otherwise returns false if rows
   * before `from` are missing or if `epoch` is not the epoch of the stored rows; the caller must then request a
   * snapshot.
   */
  take(epoch: number, from: number, rows: EpisodeRows): boolean {
    if (epoch !== this.epoch || from === 0) {
      if (from !== 0) return false;
      this.table = new EpisodeTable();
      this.epoch = epoch;
      this.episodes.clear();
      this.looked = { terms: '', verdicts: new Uint8Array(0) };
    } else if (from !== this.table.rows) return from < this.table.rows;
    if (from > 0 && rows.rows === 0) return true;
    this.table.addRows(rows);
    this.latest = null;
    return true;
  }

  /** All episodes as columns. The object is replaced only when rows are added. */
  get data(): EpisodeData {
    const { table } = this;
    return (this.latest ??= { table, order: naturalOrder(table), modes: modesOf(table) });
  }

  /** Loads a complete episode; null if the run's files no longer contain it. */
  open({ step, mode, id }: Pick<EpisodeRow, 'step' | 'mode' | 'id'>): Promise<Episode | null> {
    const asked = this.episodes.get(id) ?? this.host.request(episodeOpen, { step, mode, id });
    asked.catch(() => this.episodes.delete(id)); // so that a retry sends a new request
    // Moves the episode to the end of the cache; if the cache is full, its first episode is dropped.
    this.episodes.delete(id);
    this.episodes.set(id, asked);
    if (this.episodes.size > keptEpisodes) this.episodes.delete(this.episodes.keys().next().value!);
    return asked;
  }

  /**
   * Searches the texts of `rows` and returns the matching rows in order; null if a newer search has replaced this
   * search. During the search, `progress` receives the searched share (0 to 1), and `passed` returns the matches found
   * so far.
   */
  async search(rows: Uint32Array, terms: TextTerm[], progress: (share: number) => void): Promise<Uint32Array | null> {
    const search = ++this.searches;
    const named = JSON.stringify(terms);
    if (named !== this.looked.terms) this.looked = { terms: named, verdicts: new Uint8Array(0) };
    if (this.looked.verdicts.length < this.table.rows) {
      const wider = new Uint8Array(this.table.rows);
      wider.set(this.looked.verdicts);
      this.looked.verdicts = wider;
    }
    const { verdicts } = this.looked;
    // Only rows without a known result are searched. Matches are stored as soon as they are found. When the search has
    // ended, all other searched rows are stored as mismatches.
    const unknown = rows.filter(row => verdicts[row] === verdict.unknown);
    if (unknown.length > 0) {
      this.onFound = progress;
      const asked = { search, epoch: this.epoch, terms, rows: Int32Array.from(unknown) };
      this.searching = true;
      const found = await this.host.request(episodesSearch, asked);
      if (found === null || search !== this.searches) return null;
      this.searching = false;
      for (const row of unknown) verdicts[row] = verdict.failed;
      for (const row of found) verdicts[row] = verdict.passed;
    }
    return this.passed(rows);
  }

  /** Returns the elements of `rows` that are already known to match the latest search terms. */
  passed(rows: Uint32Array): Uint32Array {
    return rows.filter(row => this.looked.verdicts[row] === verdict.passed);
  }

  /** Cancels the current search. */
  endSearch(): void {
    if (!this.searching) return;
    this.searching = false;
    this.searches++;
    this.host.notify(episodesSearchEnd, null);
  }
}

function modesOf(table: EpisodeTable): Mode[] {
  const column = table.column('mode').subarray(0, table.rows);
  const present: Mode[] = [];
  if (column.includes(0)) present.push('train');
  if (column.includes(1)) present.push('val');
  return present.length > 1 ? [...present, 'all'] : present;
}
