// The reducer of the Episodes page. The rows of a query without text terms are listed immediately. For a query with
// text terms, `matched` events deliver the results of the search. If the state already contains a newer query or
// subject, the reducer ignores results for the older one. Pure function.
import type { EpisodesSnapshot } from '../../extension/protocol/episodes-page';
import type { EpisodeRow } from '../../extension/run-data/episode-table';
import type { Episode } from '../../extension/run-data/episode';
import type { Theme } from '../shared/theme';
import { Listing, type Sort } from './list/listing';
import { queryOf, type Query } from './list/query';
import type { ExplainedPart } from '../../extension/protocol/heat-maps';
import type { EpisodeData, EpisodesSettings, Mode, Reading, Toggled } from './episodes-settings';
import type { Heat } from './heat/heats';
import { firstPlayer, movePlayer, type PlayerCommand } from './player/playback';
import type { EpisodesState, Movie } from './state';
import { episodeAt, historyOf, membersOf, subjectOf, type Subject } from './reader/reader-subject';

export type EpisodesEvent =
  | { readonly type: 'connecting' }
  | { readonly type: 'failed'; readonly message: string }
  | ({ readonly type: 'grew'; readonly data: EpisodeData } & Pick<EpisodesSnapshot, 'run' | 'read'>)
  | { readonly type: 'filter'; readonly line: string }
  | { readonly type: 'mode'; readonly mode: Mode }
  | { readonly type: 'sort'; readonly sort: Sort | null }
  | SearchEvent
  | { readonly type: 'scrolled'; readonly top: number }
  /** The user selected an episode. */
  | { readonly type: 'open'; readonly row: EpisodeRow }
  | { readonly type: 'open-id'; readonly id: string }
  /** Opens another member of the prompt group. `by` is the distance from the open member. */
  | { readonly type: 'member'; readonly by: number }
  /**
   * Opens another occurrence of the prompt: by its index, or (`next-occurrence`) by its distance from the open
   * occurrence.
   */
  | { readonly type: 'occurrence'; readonly at: number }
  | { readonly type: 'next-occurrence'; readonly by: -1 | 1 }
  /** `plays`: whether the playback starts at once. */
  | { readonly type: 'reading'; readonly reading: Reading; readonly plays?: boolean }
  | { readonly type: 'player'; readonly command: PlayerCommand }
  | { readonly type: 'speed'; readonly speed: number }
  | { readonly type: 'loop'; readonly loop: boolean }
  | { readonly type: 'movie'; readonly movie: Movie | null }
  | { readonly type: 'against'; readonly against: EpisodesSettings['against'] }
  | { readonly type: 'toggle'; readonly setting: Toggled }
  | { readonly type: 'explain'; readonly part: ExplainedPart }
  /** The progress or the result of a computation of heat maps; null if it was cancelled. */
  | { readonly type: 'heat'; readonly key: string; readonly heat: Heat | null }
  | { readonly type: 'retry-heat' }
  | { readonly type: 'retry' }
  | {
      readonly type: 'read';
      readonly subject: Subject;
      /** Null if the run's files no longer contain the episode. */
      readonly episode: Episode | null;
      readonly others: readonly (Episode | null)[];
    }
  | { readonly type: 'unreadable'; readonly subject: Subject; readonly message: string }
  | { readonly type: 'back' }
  | { readonly type: 'theme'; readonly theme: Theme };

/** Reports of a text search: the matches found so far and the searched share of the episodes, or a failure. */
export type SearchEvent =
  | {
      readonly type: 'matched';
      readonly query: Query;
      readonly rows: Uint32Array;
      /** Searched share of the episodes, 0 to 1; null when the search has ended. */
      readonly searched: number | null;
    }
  | { readonly type: 'search-failed'; readonly query: Query; readonly message: string };

export function reduce(state: EpisodesState, event: EpisodesEvent): EpisodesState {
  const { data, settings, subject } = state;
  switch (event.type) {
    case 'connecting':
      return state.run ? state : { ...state, connection: 'connecting' };
    case 'failed':
      return { ...state, connection: { failed: event.message }, run: null, top: 0 };
    case 'grew': {
      const next: EpisodesState = { ...state, connection: 'connected', run: event.run, read: event.read };
      return event.data === data && state.query ? next : relisted({ ...next, data: event.data });
    }
    case 'filter':
      return relisted({ ...state, settings: { ...settings, filter: event.line } });
    case 'mode':
      return relisted({ ...state, settings: { ...settings, mode: event.mode } });
    case 'sort':
      return relisted({ ...state, settings: { ...settings, sort: event.sort } });
    case 'matched':
      return event.query === state.query ? listed(state, event.query, event.rows, event.searched) : state;
    case 'search-failed':
      return event.query === state.query ? { ...state, searchFailure: event.message } : state;
    case 'scrolled':
      return event.top === state.top ? state : { ...state, top: event.top };
    case 'open':
      return opened(state, event.row);
    case 'open-id': {
      const at = data.table.find(event.id);
      return at < 0 ? state : opened(state, data.table.row(at));
    }
    case 'member':
      return subject ? toMember(state, subject.row, event.by) : state;
    case 'occurrence':
      return subject ? toOccurrence(state, subject.row, event.at) : state;
    case 'next-occurrence':
      return subject ? toOccurrence(state, subject.row, historyOf(data, settings, subject.row).at + event.by) : state;
    case 'reading':
      return reopened({
        ...state,
        settings: { ...settings, reading: event.reading },
        player: { ...firstPlayer, isPlaying: event.reading === 'playback' && event.plays === true },
      });
    case 'player':
      return playerMoved(state, event.command);
    case 'speed':
      return event.speed === settings.speed ? state : { ...state, settings: { ...settings, speed: event.speed } };
    case 'loop':
      return event.loop === settings.loop ? state : { ...state, settings: { ...settings, loop: event.loop } };
    case 'movie':
      return { ...state, movie: event.movie };
    case 'against':
      return reopened({ ...state, settings: { ...settings, against: event.against } });
    case 'toggle':
      return { ...state, settings: { ...settings, [event.setting]: !settings[event.setting] } };
    case 'explain':
      return { ...state, settings: { ...settings, explains: event.part } };
    case 'heat':
      return withHeat(state, event.key, event.heat);
    case 'retry-heat':
      return { ...state, heats: new Map([...state.heats].filter(([, { kind }]) => kind !== 'failed')) };
    case 'retry':
      return subject ? { ...state, subject: subjectOf(data, settings, subject.row) } : state;
    case 'read':
      return event.subject === subject ? read(state, event.subject, event.episode, event.others) : state;
    case 'unreadable':
      return event.subject === subject
        ? withFailure(state, 'The episode could not be read', event.message, true)
        : state;
    case 'back':
      return { ...state, front: 'list' };
    case 'theme':
      return { ...state, theme: event.theme };
  }
}

/** Recomputes the query from mode, filter and order, and lists its rows. */
function relisted(state: EpisodesState): EpisodesState {
  const query = queryOf(state.data, state.settings);
  const next = { ...state, query };
  return query.texts.length > 0 ? next : listed(next, query, query.rows, null);
}

/**
 * Lists rows. If no episode is open, opens the episode whose id is in the settings. If the settings contain no id,
 * opens the first row and leaves the settings unchanged.
 */
function listed(state: EpisodesState, query: Query, rows: Uint32Array, searched: number | null): EpisodesState {
  const { data, settings } = state;
  const { table, order } = data;
  const success = table.column('success');
  const listing = new Listing(table, rows, settings.sort === null, order);
  const judged = table.column('judged');
  const solved = rows.some(row => judged[row] === 1) ? rows.reduce((total, row) => total + success[row], 0) : null;
  const next = { ...state, query, matches: { listing, solved, searched }, searchFailure: null };
  if (state.subject || table.rows === 0) return next;
  if (settings.open === null)
    return rows.length === 0 ? next : { ...next, subject: subjectOf(data, settings, table.row(rows[0])) };
  const at = table.find(settings.open);
  return at < 0 ? next : opened(next, table.row(at));
}

/** Opens an episode that the user selected and stores its id in the settings. A narrow page switches to the reader. */
function opened(state: EpisodesState, row: EpisodeRow): EpisodesState {
  const settings = state.settings.open === row.id ? state.settings : { ...state.settings, open: row.id };
  const player = state.subject?.row.id === row.id ? state.player : { ...state.player, frame: 0 };
  return { ...state, settings, player, front: 'reader', subject: subjectOf(state.data, settings, row) };
}

/** Moves the player of the open episode; a command without an open episode changes nothing. */
function playerMoved(state: EpisodesState, command: PlayerCommand): EpisodesState {
  const { shown, player, settings } = state;
  if (shown?.kind !== 'episode') return state;
  const next = movePlayer(player, command, shown.episode.turns.length + 1, settings.loop);
  return next === player ? state : { ...state, player: next };
}

/** Maximum number of episodes whose heat maps are kept. */
const keptHeats = 64;

function withHeat(state: EpisodesState, key: string, heat: Heat | null): EpisodesState {
  const others = [...state.heats].filter(([other]) => other !== key).slice(1 - keptHeats);
  return { ...state, heats: new Map(heat ? [...others, [key, heat]] : others) };
}

const reopened = (state: EpisodesState): EpisodesState => (state.subject ? opened(state, state.subject.row) : state);

function toMember(state: EpisodesState, row: EpisodeRow, by: number): EpisodesState {
  const members = membersOf(state.data.table, row);
  const at = members.findIndex(({ id }) => id === row.id) + by;
  return at in members ? opened(state, members[at]) : state;
}

function toOccurrence(state: EpisodesState, row: EpisodeRow, at: number): EpisodesState {
  const { all, table } = historyOf(state.data, state.settings, row);
  return at in all ? opened(state, episodeAt(table, all[at], row)) : state;
}

function read(
  state: EpisodesState,
  subject: Subject,
  episode: Episode | null,
  others: readonly (Episode | null)[],
): EpisodesState {
  if (episode) return { ...state, shown: { kind: 'episode', subject, episode, others } };
  const text = `${subject.row.id} is no longer in the run folder; the run may have repeated its step after a resume.`;
  return withFailure(state, 'Episode no longer available', text, false);
}

const withFailure = (state: EpisodesState, title: string, text: string, canRetry: boolean): EpisodesState => ({
  ...state,
  shown: { kind: 'failed', title, text, canRetry },
});
