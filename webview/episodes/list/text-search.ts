// Sends text searches to the host and reports the matches while they arrive. A newer query replaces the running search.
import { messageOf } from '../../shared/host';
import type { EpisodeStore } from '../episode-store';
import type { Query } from './query';
import type { SearchEvent } from '../reducer';

/**
 * `interval`: minimum milliseconds between two reports. `share`: maximum share of the time that may be spent on
 * handling reports.
 */
const [interval, share] = [150, 1 / 5];

/** Returns a function that searches the texts of a query. A query without text terms only ends the running search. */
export function textSearch(store: EpisodeStore, report: (event: SearchEvent) => void): (query: Query) => void {
  let current: Query | null = null;
  return query => {
    current = query;
    const { rows, texts } = query;
    if (texts.length === 0) return store.endSearch();
    let due = 0;
    const progress = (searched: number): void => {
      const began = performance.now();
      if (query !== current || began < due) return;
      report({ type: 'matched', query, rows: store.passed(rows), searched });
      const now = performance.now();
      due = now + Math.max(interval, (now - began) * (1 / share - 1));
    };
    progress(0);
    store.search(rows, texts, progress).then(
      passed => passed && report({ type: 'matched', query, rows: passed, searched: null }),
      (error: unknown) => report({ type: 'search-failed', query, message: messageOf(error) }),
    );
  };
}
