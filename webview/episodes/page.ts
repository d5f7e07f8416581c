// The Episodes page. The list on the left shows all episodes of the run, filtered and sorted. The reader on the right
// shows the open episode: alone, beside the episodes of its prompt group, or beside an episode of the same prompt at
// another step. New episodes are inserted at the top of the list without moving the visible rows.
import { render } from 'lit';
import {
  episodesGrew,
  episodesReady,
  episodesShow,
  episodeTrace,
  episodesDataSet,
  type EpisodeTarget,
} from '../../extension/protocol/episodes-page';
import { listKeys, type VirtualList } from '../components/virtual-list';
import { messageOf, type Host } from '../shared/host';
import { onVisibility } from '../shared/visibility';
import { offerKeyHelp } from '../components/key-help';
import { onKeys, type KeyMap } from '../shared/keyboard';
import { viewState } from '../shared/state';
import { createStore } from '../shared/store';
import { onThemeChange, readTheme } from '../shared/theme';
import { holdPosition } from './reader/scroll-anchor';
import { EpisodeStore } from './episode-store';
import { episodesView } from './episodes-view';
import type { EpisodesActions } from './actions';
import { heatRequests } from './heat/heat-requests';
import {
  listenForPlayerKeys,
  movieExports,
  playbackClock,
  playerKeys,
  prefersStillness,
} from './player/player-control';
import type { ListItem } from './list/listing';
import { reduce } from './reducer';
import { firstSettings, settingsSchema } from './episodes-settings';
import { listedFilter, initialState, type EpisodesState } from './state';

import { indexOfStep } from './list/step-navigation';
import type { Subject } from './reader/reader-subject';
import { textSearch } from './list/text-search';

/** Starts the page in `root`. */
export function startEpisodes(host: Host, root: HTMLElement): void {
  const saved = viewState(host, settingsSchema, firstSettings);
  const episodes = new EpisodeStore(host);
  const search = textSearch(episodes, event => dispatch(event));
  const find = <T extends HTMLElement>(selector: string): T | null => root.querySelector<T>(selector);
  const list = (): VirtualList<ListItem> | null => find('virtual-list');
  const actions: EpisodesActions = {
    load,
    filter: line => dispatch({ type: 'filter', line }),
    mode: mode => dispatch({ type: 'mode', mode }),
    sort: sort => dispatch({ type: 'sort', sort }),
    sortFromStart(sort) {
      list()!.scrollTop = 0;
      dispatch({ type: 'sort', sort });
    },
    scrolled: top => dispatch({ type: 'scrolled', top }),
    goStep,
    open: row => dispatch({ type: 'open', row }),
    openId: id => dispatch({ type: 'open-id', id }),
    openTurn(id, turn) {
      dispatch({ type: 'reading', reading: 'episode' });
      target = { id, turn };
      openTarget();
    },
    goOccurrence(at) {
      dispatch({ type: 'occurrence', at });
      find('.timeline input')?.focus();
    },
    compareWith: against => dispatch({ type: 'against', against }),
    readAs(reading) {
      dispatch({ type: 'reading', reading, plays: !prefersStillness() });
      // The list would take Home and End, which move the playback.
      if (reading === 'playback') find('.episode-pane')?.focus({ preventScroll: true });
    },
    movePlayer: command => dispatch({ type: 'player', command }),
    playAt: speed => dispatch({ type: 'speed', speed }),
    loopPlayback: loop => dispatch({ type: 'loop', loop }),
    exportMovie: format => void movies[format](),
    cancelMovie: () => movies.cancel(),
    toggle: setting => dispatch({ type: 'toggle', setting }),
    explain: part => dispatch({ type: 'explain', part }),
    retryHeat: () => dispatch({ type: 'retry-heat' }),
    exportDataSet: () => host.notify(episodesDataSet, { filter: listedFilter(store.state) }),
    openTrace() {
      const { shown } = store.state;
      if (shown?.kind !== 'episode') return;
      const { step, mode, id } = shown.episode;
      host.notify(episodeTrace, { step, mode, id });
    },
    retry: () => dispatch({ type: 'retry' }),
    back() {
      dispatch({ type: 'back' });
      list()?.focus();
    },
  };

  const tick = playbackClock(event => dispatch(event));
  const heat = heatRequests(host, event => dispatch(event));
  /** The episode and turn to open, until they are shown. */
  let target: EpisodeTarget | null = null;
  const store = createStore(initialState(saved.value, readTheme()), reduce, (state, before) => {
    if (before && state.settings !== before.settings) saved.change(state.settings);
    if (state.run && state.run.folder !== before?.run?.folder) saved.keepFolder(state.run.folder);
    if (state.query && state.query !== before?.query) search(state.query);
    if (state.subject && state.subject !== before?.subject) void read(state.subject);
    const hold =
      before && changesReader(before, state) ? holdPosition(find('.episode-pane'), before.shown, state.shown) : null;
    render(episodesView(state, actions), root);
    hold?.();
    tick(state);
    heat(state);
    const { shown } = state;
    // Another view of the episode may still be shown.
    if (target && shown?.kind === 'episode' && shown.subject === state.subject && shown.episode.id === target.id) {
      find(`.turn[data-turn="${target.turn}"]`)?.scrollIntoView({ block: 'start' });
      target = null;
    }
  });
  const { dispatch } = store;
  const movies = movieExports(host, () => store.state, dispatch);

  function load(): void {
    dispatch({ type: 'connecting' });
    host.request(episodesReady, null).then(
      ({ run, read: share, epoch, rows }) => {
        episodes.take(epoch, 0, rows);
        dispatch({ type: 'grew', run, read: share, data: episodes.data });
        openTarget();
      },
      (error: unknown) => dispatch({ type: 'failed', message: messageOf(error) }),
    );
  }

  /** Opens the wanted episode if the page has it. */
  function openTarget(): void {
    if (target && store.state.data.table.find(target.id) >= 0) dispatch({ type: 'open-id', id: target.id });
  }

  /**
   * Loads the episodes that the reader displays for `subject`. If the reader displays a single episode, the previous
   * and the next group member are then preloaded, because users often open them next.
   */
  async function read(subject: Subject): Promise<void> {
    const { row, others, members, reading } = subject;
    try {
      const [episode, ...beside] = await Promise.all([row, ...others].map(each => episodes.open(each)));
      dispatch({ type: 'read', subject, episode, others: beside });
    } catch (error) {
      return dispatch({ type: 'unreadable', subject, message: messageOf(error) });
    }
    const at = members.findIndex(({ id }) => id === row.id);
    for (const neighbour of reading === 'episode' ? [members[at - 1], members[at + 1]] : [])
      if (neighbour) episodes.open(neighbour).catch(() => undefined); // errors are reported when the user opens the episode
  }

  /**
   * Scrolls the list to the previous (−1) or the next (1) step, or to the start of the list (0). If the reader compares
   * episodes of one prompt at different steps, opens the previous or the next occurrence of this prompt instead.
   */
  function goStep(by: -1 | 0 | 1): void {
    const { state } = store;
    if (by === 0) return list()?.showFrom(0);
    if (state.settings.reading === 'training' && state.subject) {
      dispatch({ type: 'next-occurrence', by });
      return find('.timeline input')?.focus();
    }
    const to = indexOfStep(state, by);
    if (to !== null) list()?.showFrom(to);
  }

  host.onNotify(episodesGrew, ({ run, read: share, epoch, from, rows }) => {
    if (!store.state.run) return; // before the first snapshot, which will include these episodes
    if (!episodes.take(epoch, from, rows)) return load();
    dispatch({ type: 'grew', run, read: share, data: episodes.data });
    openTarget();
  });
  host.onNotify(episodesShow, wanted => {
    target = wanted;
    openTarget();
  });
  onThemeChange(theme => dispatch({ type: 'theme', theme }));
  const keys: KeyMap = {
    '/': { does: 'Filter the episodes', run: () => find('.filter')?.focus() },
    j: { does: 'Next episode of the group', run: () => dispatch({ type: 'member', by: 1 }) },
    k: { does: 'Previous episode of the group', run: () => dispatch({ type: 'member', by: -1 }) },
    '[': { does: 'Previous step', run: () => goStep(-1) },
    ']': { does: 'Next step', run: () => goStep(1) },
    e: { does: 'Read the episode', run: () => actions.readAs('episode') },
    g: { does: 'Compare the episodes of the group', run: () => actions.readAs('group') },
    f: { does: 'See the pictures of the group as film strips', run: () => actions.readAs('film') },
    t: { does: 'See the prompt over training', run: () => actions.readAs('training') },
    p: {
      does: 'Play the episode, or pause',
      run: () =>
        store.state.settings.reading === 'playback' ? actions.movePlayer('toggle') : actions.readAs('playback'),
    },
    r: { does: 'Show or hide the raw text', run: () => actions.toggle('raw') },
    x: { does: 'Show or hide the tokens', run: () => actions.toggle('tokens') },
    h: { does: 'Show or hide the heat maps over pictures', run: () => actions.toggle('heat') },
    z: { does: 'Larger or smaller pictures', run: () => actions.toggle('large') },
    o: { does: 'Open the trace in the editor', run: actions.openTrace },
    Escape: { does: 'Back', run: actions.back },
  };
  onKeys(document, keys);
  offerKeyHelp(() => [
    { title: 'Episodes', keys },
    { title: 'In the list', keys: listKeys },
    { title: 'During playback', keys: playerKeys },
  ]);
  listenForPlayerKeys(document, () => store.state, dispatch);
  onVisibility(host, isVisible => {
    if (isVisible)
      load(); // a hidden page receives no messages
    else dispatch({ type: 'player', command: 'pause' });
  });
  load();
}

/** Whether the content of the reader must be rendered again after a change of the state. */
const changesReader = (before: EpisodesState, state: EpisodesState): boolean =>
  before.shown !== state.shown ||
  before.theme !== state.theme ||
  before.settings.raw !== state.settings.raw ||
  before.settings.tokens !== state.settings.tokens ||
  before.settings.heat !== state.settings.heat ||
  before.settings.large !== state.settings.large ||
  before.heats !== state.heats;
