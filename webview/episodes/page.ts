// The Episodes page: on the left, all episodes of the run, filtered and sorted; on the right, one of them as turns, its
// prompt group side by side, or its prompt over training. This file owns the list, the open episode, and keyboard
// navigation.
import {
  episodesGrew,
  episodesReady,
  episodeTrace,
  type EpisodesSnapshot,
} from '../../extension/protocol/episodes-page';
import type { EpisodeRow } from '../../extension/run-data/episode-table';
import type { RunSummary } from '../../extension/protocol/pages';
import type { Episode } from '../../extension/run-data/episode';
import { h, replaceChildren } from '../shared/dom';
import { formatNumber, formatPercent } from '../shared/format';
import { messageOf, type Host } from '../shared/host';
import { onKeys } from '../shared/keyboard';
import { notice, skeleton } from '../shared/notices';
import { viewState } from '../shared/state';
import { onThemeChange, readTheme } from '../shared/theme';
import { keepInView, turnInView } from './anchor';
import { EpisodeStore } from './episode-store';
import { episodeView } from './episode-view';
import { namesMode, parseFilter, rowTest, textTerms, type Term } from '../../extension/run-data/episode-filter';
import { listHead, renderItem } from './list-rows';
import { groupRows, Listing, promptRows, sortRows, type ListItem, type Sort } from './listing';
import { counterpart, occurrences, timeline, type Occurrence } from './over-training';
import { readerTools } from './reader-tools';
import { sideBar, type Mode } from './side-bar';
import { groupView, trainingView, type PromptHistory } from './side-by-side';
import { firstView, viewSchema, type Reading } from './view';
import { VirtualList } from './virtual-list';

export function startEpisodes(host: Host, root: HTMLElement): void {
  const state = viewState(host, viewSchema, firstView);
  const store = new EpisodeStore(host);
  let theme = readTheme();
  let run: RunSummary | null = null;
  let read = 1;
  let listing = new Listing(store.table, new Uint32Array(0), true, new Uint32Array(0));
  /** The episode on the right, and the ones shown next to it. */
  let opened: Episode | null = null;
  let openedRow: EpisodeRow | null = null;
  let beside: (Episode | null)[] = [];
  /** Increased with each request, so that late answers to older ones are dropped. */
  let asking = 0;
  let opening = 0;

  const list = new VirtualList<ListItem>({
    label: 'Episodes',
    rowHeight: 24,
    render: item => renderItem(item, state.value.sort),
    selectable: item => item.kind === 'episode',
    onSelect: item => item.kind === 'episode' && open(item.row),
    onScroll: showStep,
  });
  const side = sideBar(state.value.filter, {
    filter: line => change({ filter: line }),
    mode: mode => change({ mode }),
    sort,
    goStep,
  });
  const heads = h('div', { class: 'list-heads' });
  /** Replaces the list if no episode matches the filter. */
  const nothing = h('div', { hidden: true });
  const time = timeline(at => goOccurrence(at));
  const pane = h('main', { class: 'episode-pane', tabindex: -1 });
  const tools = readerTools({ back, readAs, toggle, openTrace });
  const layout = h(
    'div',
    { class: 'episodes' },
    h('aside', { class: 'side' }, side.element, heads, nothing, list.element),
    h('div', { class: 'reader' }, tools.element, pane),
  );

  function load(): void {
    if (!run) replaceChildren(root, skeleton('skeleton-rows', 14, 'Loading the episodes'));
    host.request(episodesReady, null).then(
      snapshot => {
        store.take(snapshot.epoch, 0, snapshot.rows);
        take(snapshot);
      },
      error => {
        const again = { label: 'Try again', run: load };
        replaceChildren(
          root,
          notice({ kind: 'error', title: 'The episodes could not be read', text: messageOf(error), action: again }),
        );
        run = null;
      },
    );
  }

  function take(received: Omit<EpisodesSnapshot, 'rows'>): void {
    ({ run, read } = received);
    state.keepFolder(run.folder);
    if (layout.parentElement !== root) replaceChildren(root, layout);
    void refresh();
  }

  function change(part: Partial<typeof state.value>): void {
    state.change(part);
    void refresh();
  }

  function sort(to: Sort | null): void {
    list.element.scrollTop = 0;
    change({ sort: to });
  }

  const modes = (): Mode[] => {
    const column = store.table.column('mode').subarray(0, store.table.rows);
    const here: Mode[] = [
      ...(column.includes(0) ? ['train' as const] : []),
      ...(column.includes(1) ? ['val' as const] : []),
    ];
    return here.length > 1 ? [...here, 'all'] : here;
  };

  /** Lists the episodes that match the filter. The host searches texts; its matches are listed as they arrive. */
  async function refresh(): Promise<void> {
    const turn = ++asking;
    if (!run) return;
    const { table } = store;
    const { filter, sort } = state.value;
    const { terms, problems } = parseFilter(filter);
    const here = modes();
    const mode = state.value.mode !== null && here.includes(state.value.mode) ? state.value.mode : (here[0] ?? 'train');
    side.update({ run, mode, modes: here, sort, modeByFilter: namesMode(terms) });
    replaceChildren(
      heads,
      listHead(sort, to => change({ sort: to })),
    );
    tools.update(state.value, opened !== null);
    if (table.rows === 0) return showNothing(run);
    const candidates = narrowed(terms, mode);
    const wanted = textTerms(terms);
    if (wanted.length === 0) {
      store.endSearch();
      return showList(candidates.rows, candidates.all, [], problems);
    }
    let due = 0;
    const progress = (share: number) => {
      const began = performance.now();
      if (turn !== asking || began < due) return;
      showList(store.passed(candidates.rows), candidates.all, [`searched ${formatPercent(share)}`], problems);
      // Listing partial results may take at most a fifth of the time.
      due = performance.now() + Math.max(150, 4 * (performance.now() - began));
    };
    progress(0);
    try {
      const passed = await store.search(candidates.rows, wanted, progress);
      if (passed && turn === asking) showList(passed, candidates.all, [], problems);
    } catch (error) {
      if (turn === asking) side.say([], [messageOf(error)]);
    }
  }

  /** The rows that match all terms except text terms, in list order, and the number of rows before filtering. */
  function narrowed(terms: readonly Term[], mode: Mode): { rows: Uint32Array; all: number } {
    const { table } = store;
    const column = table.column('mode');
    const wanted = namesMode(terms) || mode === 'all' ? null : Number(mode === 'val');
    const passes = rowTest(terms, table);
    let all = 0;
    const rows = store.rows.filter(row => {
      if (wanted !== null && column[row] !== wanted) return false;
      all++;
      return passes(row);
    });
    return { rows: state.value.sort ? sortRows(rows, table, state.value.sort) : rows, all };
  }

  function showList(rows: Uint32Array, all: number, more: string[], problems: string[]): void {
    const { table } = store;
    listing = new Listing(table, rows, state.value.sort === null, store.rows);
    list.setSource(listing);
    showStep(list.top);
    const reading = read < 1 ? [`reading the episodes, ${formatPercent(read)}`] : [];
    side.say([summary(table.column('success'), rows, all), ...more, ...reading], problems);
    showWhereNothing(rows.length === 0 && more.length === 0);
    if (openedRow) return;
    const remembered = state.value.open;
    const at = remembered === null ? (rows.length > 0 ? rows[0] : -1) : table.find(remembered);
    if (at < 0) return showHint();
    const row = table.row(at);
    list.select(row.id);
    if (remembered === null) display(row);
    else open(row);
  }

  /** Shows that no episode matches the filter, with a button that clears it. */
  function showWhereNothing(none: boolean): void {
    if (nothing.hidden === !none) return;
    nothing.hidden = !none;
    list.element.hidden = none;
    const action = { label: 'Clear the filter', run: () => side.clearFilter() };
    const text = 'Change a term, or clear the filter.';
    replaceChildren(nothing, none && notice({ kind: 'empty', title: 'No episode matches the filter', text, action }));
  }

  /** Opens an episode chosen by the user: it is stored in the view state, and replaces the list on a narrow page. */
  function open(row: EpisodeRow): void {
    state.change({ open: row.id });
    layout.classList.add('reading');
    display(row);
  }

  function display(row: EpisodeRow): void {
    const turn = ++opening;
    openedRow = row;
    const failed = (title: string, text: string, again?: () => void) => {
      if (turn !== opening) return;
      opened = null;
      replaceChildren(
        pane,
        notice({ kind: 'error', title, text, action: again && { label: 'Try again', run: again } }),
      );
    };
    show(row, turn).catch(error => failed('The episode could not be read', messageOf(error), () => display(row)));

    async function show(row: EpisodeRow, turn: number): Promise<void> {
      const { reading } = state.value;
      const others = reading === 'group' ? members(row) : reading === 'training' ? compared(row) : [];
      const episodes = await Promise.all([row, ...others].map(each => store.open(each)));
      if (turn !== opening) return;
      const [episode, ...rest] = episodes;
      if (!episode)
        return failed(
          'Episode no longer available',
          `${row.id} is no longer in the run folder; a resume may have repeated its step.`,
        );
      showEpisode(episode, rest);
    }
  }

  /** Shows an episode; if it replaces another one of the same prompt, the same turn stays in view. */
  function showEpisode(episode: Episode, others: (Episode | null)[]): void {
    const row = openedRow!;
    const { raw, tokens, reading } = state.value;
    const samePrompt = opened !== null && opened.tag === episode.tag && opened.seed === episode.seed;
    const [anchor, across] = [samePrompt ? turnInView(pane) : null, pane.scrollLeft];
    [opened, beside] = [episode, others];
    const group = members(row);
    const options = { theme, raw, tokens, choose: chooseId };
    if (reading === 'episode')
      replaceChildren(pane, episodeView(episode, { theme, raw, tokens, members: group, openMember: select }));
    else if (reading === 'group') replaceChildren(pane, groupView(group, others, row, options));
    else replaceChildren(pane, trainingView(row, episode, others[0] ?? null, historyOf(row), options));
    if (anchor) keepInView(pane, anchor);
    else pane.scrollTop = 0;
    if (reading === 'group') {
      pane.scrollLeft = samePrompt ? across : 0;
      // `scrollIntoView` is undefined in environments without layout.
      pane.querySelector('.grid-head.current')?.scrollIntoView?.({ block: 'nearest', inline: 'nearest' });
    }
    tools.update(state.value, opened !== null);
    const at = group.findIndex(member => member.id === row.id);
    for (const neighbour of reading === 'episode' ? [group[at - 1], group[at + 1]] : [])
      if (neighbour) store.open(neighbour).catch(() => undefined); // prefetch; errors are reported when it is opened
  }

  const chooseId = (id: string) => select(store.table.row(store.table.find(id)));

  /** Data of the view of a prompt over training. */
  function historyOf(row: EpisodeRow): PromptHistory {
    const { all, at } = history(row);
    if (all.length > 1) time.update(store.table, all, at);
    const validation = modes().includes('val') && row.mode === 'train';
    return {
      ...{ all, against: state.value.against, timeline: time.element },
      compareWith: against => (state.change({ against }), open(row)),
      ...(validation && { listValidation: () => change({ mode: 'val' }) }),
    };
  }

  function members({ id }: EpisodeRow): EpisodeRow[] {
    const { table } = store;
    const at = table.find(id);
    return at < 0 ? [] : groupRows(table, at).map(row => table.row(row));
  }

  /** When an episode's prompt was played, and the index of the episode's own occurrence. */
  function history({ id, step, mode }: EpisodeRow): { all: Occurrence[]; at: number } {
    const { table } = store;
    const row = table.find(id);
    const all = row < 0 ? [] : occurrences(table, promptRows(table, row));
    return { all, at: all.findIndex(each => each.step === step && each.mode === mode) };
  }

  /** The episode with which one is compared over training; none for the first occurrence. */
  function compared(row: EpisodeRow): EpisodeRow[] {
    const { all, at } = history(row);
    const to = state.value.against === 'first' ? 0 : at - 1;
    return at <= 0 ? [] : [store.table.row(counterpart(store.table, all[to], store.table.find(row.id)))];
  }

  function select(row: EpisodeRow): void {
    list.select(row.id);
    open(row);
  }

  function move(by: number): void {
    if (!openedRow) return;
    const group = members(openedRow);
    const row = group[group.findIndex(member => member.id === openedRow?.id) + by];
    if (row) select(row);
  }

  function goOccurrence(to: number): void {
    const { table } = store;
    if (!openedRow) return;
    const there = history(openedRow).all[to];
    if (there) select(table.row(counterpart(table, there, table.find(openedRow.id))));
    time.element.querySelector('input')?.focus();
  }

  /**
   * Goes to the step before or after the one at the top of the list, or to the newest; over training, to the previous
   * or next occurrence.
   */
  function goStep(by: -1 | 0 | 1): void {
    if (by === 0) {
      list.showFrom(0);
      return showStep(list.top);
    }
    if (state.value.reading === 'training' && openedRow) return goOccurrence(history(openedRow).at + by);
    const { table } = store;
    const [step, mode] = [table.column('step'), table.column('mode')];
    const top = listing.rowAt(list.top);
    if (top < 0 || state.value.sort) return;
    const at = listing.rows.indexOf(top);
    const other = (row: number, than: number) => step[row] !== step[than] || mode[row] !== mode[than];
    // The newest rows come first: later steps are above.
    let to = listing.rows.findIndex((row, i) => i > at && other(row, top));
    if (by > 0) {
      const above = listing.rows.findLast((row, i) => i < at && other(row, top));
      to = above === undefined ? 0 : listing.rows.findIndex(row => !other(row, above));
    }
    // The headings of the step and of its first group are above its first episode.
    if (to >= 0) list.showFrom(Math.max(0, listing.find(table.row(listing.rows[to]).id) - 2));
    showStep(list.top);
  }

  function showStep(top: number): void {
    const row = state.value.sort ? -1 : listing.rowAt(top);
    side.showStep(row < 0 ? null : store.table.row(row), top > 0);
  }

  function toggle(setting: 'raw' | 'tokens'): void {
    state.change({ [setting]: !state.value[setting] });
    if (opened) showEpisode(opened, beside);
  }

  function readAs(reading: Reading): void {
    state.change({ reading });
    tools.update(state.value, opened !== null);
    if (openedRow) open(openedRow);
  }

  function openTrace(): void {
    if (opened) host.notify(episodeTrace, { step: opened.step, mode: opened.mode, id: opened.id });
  }

  function back(): void {
    layout.classList.remove('reading');
    list.element.focus();
  }

  function showHint(): void {
    const text =
      'Select one on the left. Keys: j/k next or previous member of the prompt group; g group side by side; t prompt over training; [ ] previous or next step; / filter; o open the trace in the editor.';
    replaceChildren(pane, notice({ kind: 'empty', title: 'No episode is open', text }));
  }

  function showNothing({ status }: RunSummary): void {
    showWhereNothing(false);
    listing = new Listing(store.table, new Uint32Array(0), true, new Uint32Array(0));
    list.setSource(listing);
    side.showStep(null, false);
    side.say(read < 1 ? ['reading the episodes'] : [], []);
    const text = `Episodes are written when a step ends. ${status.step === 0 ? 'The first step is running; ' : ''}they appear here automatically.`;
    replaceChildren(pane, notice({ kind: 'empty', title: 'No episodes yet', text }));
  }

  host.onNotify(episodesGrew, message => {
    if (!run) return; // the pending snapshot includes them
    // New episodes are inserted above; the episode being read stays in place.
    if (!store.take(message.epoch, message.from, message.rows)) return load();
    take(message);
  });
  onThemeChange(changed => {
    theme = changed;
    if (opened) showEpisode(opened, beside);
  });
  onKeys(document, {
    '/': () => side.focusFilter(),
    j: () => move(1),
    k: () => move(-1),
    r: () => toggle('raw'),
    x: () => toggle('tokens'),
    o: openTrace,
    e: () => readAs('episode'),
    g: () => readAs('group'),
    t: () => readAs('training'),
    '[': () => goStep(-1),
    ']': () => goStep(1),
    Escape: back,
  });
  // A hidden page receives no messages, so it loads a new snapshot.
  document.addEventListener('visibilitychange', () => {
    if (document.visibilityState === 'visible') load();
  });
  load();
}

/** `96 of 128 episodes · 41.2 % success`. */
function summary(success: Uint8Array, rows: Uint32Array, all: number): string {
  const number = (count: number) => (count < 10_000 ? String(count) : formatNumber(count));
  const count = rows.length === all ? `${number(all)} episodes` : `${number(rows.length)} of ${number(all)} episodes`;
  if (rows.length === 0) return count;
  return `${count} · ${formatPercent(rows.reduce((total, row) => total + success[row], 0) / rows.length)} success`;
}
