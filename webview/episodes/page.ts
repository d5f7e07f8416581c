// The Episodes page: left the episodes of a step, right one of them as turns. This file holds the page's life: which step is listed,
// what the filter lets through, which episode is open, and the keys that move between them.
import {
  episodesGrew,
  episodesReady,
  type EpisodeRow,
  type EpisodesSnapshot,
  type RunSummary,
} from '../../extension/protocol/pages';
import type { Episode } from '../../extension/protocol/run-folder';
import { h, replaceChildren, setAttribute } from '../shared/dom';
import { formatPercent } from '../shared/format';
import { messageOf, type Host } from '../shared/host';
import { icon } from '../shared/icons';
import { onKeys } from '../shared/keyboard';
import { notice, skeleton } from '../shared/notices';
import { viewState } from '../shared/state';
import { onThemeChange, readTheme } from '../shared/theme';
import { button } from '../shared/toolkit';
import { EpisodeStore, sameStep, type StepOf } from './episode-store';
import { episodeView } from './episode-view';
import { needsText, parseFilter, rowMatches, stepFilter, textMatches, type Term } from './filter';
import { listItems, membersOf, type ListItem } from './items';
import { listHead, renderItem } from './list-rows';
import { sideBar } from './side-bar';
import { firstView, viewSchema } from './view';
import { VirtualList } from './virtual-list';

/** Steps that one filter line may list at a time, newest first. */
const listedSteps = 60;
/** Episodes whose texts are asked for at the same time. */
const readers = 4;

export function startEpisodes(host: Host, root: HTMLElement): void {
  const state = viewState(host, viewSchema, firstView);
  const store = new EpisodeStore(host);
  let theme = readTheme();
  let run: RunSummary | null = null;
  let steps: StepOf[] = [];
  let selected: StepOf | null = null;
  /** Rows that the filter let through, and all rows of the steps listed. */
  let shown: EpisodeRow[] = [];
  let listed: EpisodeRow[] = [];
  let opened: Episode | null = null;
  let openedRow: EpisodeRow | null = null;
  /** Raised with each new question, so that a late answer to an old one is dropped. */
  let listing = 0;
  let opening = 0;

  const list = new VirtualList<ListItem>({
    label: 'Episodes',
    rowHeight: 24,
    render: renderItem,
    selectable: item => item.kind === 'episode',
    onSelect: item => item.kind === 'episode' && open(item.row),
  });
  const side = sideBar(state.value.filter, {
    filter(line) {
      state.change({ filter: line });
      void refresh();
    },
    goTo: step => void show(step),
  });
  const pane = h('main', { class: 'episode-pane', tabindex: -1 });
  const tools = h('div', { class: 'episode-tools' });
  const layout = h(
    'div',
    { class: 'episodes' },
    h('aside', { class: 'side' }, side.element, listHead(), list.element),
    h('div', { class: 'reader' }, tools, pane),
  );

  function load(): void {
    if (!run) replaceChildren(root, skeleton('skeleton-rows', 14, 'Loading the episodes'));
    const wanted = state.value.selected;
    host.request(episodesReady, wanted).then(take, error => {
      const again = { label: 'Try again', run: load };
      replaceChildren(
        root,
        notice({ kind: 'error', title: 'The episodes could not be read', text: messageOf(error), action: again }),
      );
      run = null;
    });
  }

  function take(snapshot: EpisodesSnapshot): void {
    ({ run, steps, selected } = snapshot);
    store.reset(snapshot);
    state.keepFolder(run.folder);
    if (layout.parentElement !== root) replaceChildren(root, layout);
    showTools();
    void refresh();
  }

  async function show(step: StepOf): Promise<void> {
    selected = step;
    state.change({ selected: sameStep(step, newest(step.mode)) ? null : step });
    await refresh();
  }

  const newest = (mode: StepOf['mode']): StepOf | null => steps.filter(step => step.mode === mode).at(-1) ?? null;

  /** Asks for the rows that the filter and the chosen step name, and lists those that pass. */
  async function refresh(): Promise<void> {
    const turn = ++listing;
    if (!run) return;
    const { terms, problems } = parseFilter(state.value.filter);
    side.update({ run, steps, selected, byFilter: stepFilter(terms) !== undefined });
    if (!selected) return showNothing(run);
    const wanted = wantedSteps(terms);
    try {
      const rows = (await Promise.all(wanted.steps.map(step => store.rowsOf(step)))).flat();
      if (turn !== listing) return;
      listed = rows;
      const candidates = rows.filter(row => rowMatches(terms, row));
      if (needsText(terms)) {
        const passed = await searchTexts(candidates, terms, problems, turn);
        if (!passed) return;
        shown = passed;
      } else shown = candidates;
      list.setItems(listItems(shown));
      side.say([summary(shown, rows), ...(wanted.left > 0 ? [`${wanted.left} older steps left out`] : [])], problems);
      const asked = openedRow?.id ?? state.value.open;
      const again = shown.find(row => row.id === asked);
      list.select(again?.id ?? null);
      if (again && again.id !== opened?.id) open(again);
      else if (!opened) showHint();
    } catch (error) {
      if (turn === listing) side.say([], [messageOf(error)]);
    }
  }

  function wantedSteps(terms: readonly Term[]): { steps: StepOf[]; left: number } {
    const passes = stepFilter(terms);
    if (!passes) return { steps: selected ? [selected] : [], left: 0 };
    const mode = terms.some(term => term.kind === 'text' && term.field === 'mode') ? null : selected?.mode;
    const all = steps.filter(step => passes(step.step) && (!mode || step.mode === mode)).reverse();
    return { steps: all.slice(0, listedSteps), left: Math.max(0, all.length - listedSteps) };
  }

  /** Rows whose texts pass, read a few at a time and listed as they are found; null when a newer question has come. */
  async function searchTexts(
    rows: EpisodeRow[],
    terms: readonly Term[],
    problems: string[],
    turn: number,
  ): Promise<EpisodeRow[] | null> {
    const passed = new Set<EpisodeRow>();
    let next = 0;
    const found = () => rows.filter(row => passed.has(row));
    list.setItems([]);
    const reader = async () => {
      while (next < rows.length && turn === listing) {
        const row = rows[next++];
        if (next % 16 === 1) {
          side.say([`reading ${next} of ${rows.length} episodes`], problems);
          list.setItems(listItems(found()));
        }
        if (textMatches(terms, row, await store.textOf(row))) passed.add(row);
      }
    };
    await Promise.all(Array.from({ length: readers }, reader));
    return turn === listing ? found() : null;
  }

  function open(row: EpisodeRow): void {
    const turn = ++opening;
    openedRow = row;
    state.change({ open: row.id });
    layout.classList.add('reading');
    store.open(row).then(
      episode => {
        if (turn !== opening) return;
        if (episode) return showEpisode(episode);
        opened = null;
        replaceChildren(
          pane,
          notice({
            kind: 'error',
            title: 'This episode is gone',
            text: `${row.id} is no longer in the run folder: a resume may have written its step anew.`,
          }),
        );
      },
      error => {
        if (turn !== opening) return;
        const again = { label: 'Try again', run: () => open(row) };
        replaceChildren(
          pane,
          notice({ kind: 'error', title: 'The episode could not be read', text: messageOf(error), action: again }),
        );
      },
    );
  }

  /** Shows an episode; a member of the same group takes the place of another with the same turn in view. */
  function showEpisode(episode: Episode): void {
    const sameGroup =
      opened?.group_id === episode.group_id && opened.step === episode.step && opened.mode === episode.mode;
    const anchor = sameGroup ? turnInView(pane) : null;
    opened = episode;
    const members = membersOf(listed, episode);
    const { raw, tokens } = state.value;
    replaceChildren(pane, episodeView(episode, { theme, raw, tokens, members, openMember: select }));
    if (anchor) keepInView(pane, anchor);
    else pane.scrollTop = 0;
    showTools();
    for (const neighbour of [-1, 1]) {
      const row = members[members.findIndex(member => member.id === episode.id) + neighbour];
      if (row) store.open(row).catch(() => undefined); // read ahead; asked again, and said, when it is opened
    }
  }

  function select(row: EpisodeRow): void {
    list.select(row.id);
    open(row);
  }

  function move(by: number): void {
    if (!openedRow) return;
    const members = membersOf(listed, openedRow);
    const row = members[members.findIndex(member => member.id === openedRow?.id) + by];
    if (row) select(row);
  }

  function toggle(setting: 'raw' | 'tokens'): void {
    state.change({ [setting]: !state.value[setting] });
    if (opened) showEpisode(opened);
  }

  function goStep(by: number): void {
    const same = steps.filter(step => step.mode === selected?.mode);
    const to = same[same.findIndex(step => sameStep(step, selected)) + by];
    if (to) void show(to);
  }

  function back(): void {
    layout.classList.remove('reading');
    list.element.focus();
  }

  function showTools(): void {
    const pressed = (on: boolean, element: HTMLElement) => (setAttribute(element, 'aria-pressed', String(on)), element);
    const { raw, tokens } = state.value;
    replaceChildren(
      tools,
      h(
        'span',
        { class: 'back' },
        button({ label: 'Episodes', icon: icon('left'), title: 'Back to the list (Escape)', onClick: back }),
      ),
      opened &&
        pressed(
          raw,
          button({ label: 'Raw text', title: 'The model’s whole text ( r )', onClick: () => toggle('raw') }),
        ),
      opened &&
        pressed(
          tokens,
          button({
            label: 'Tokens',
            title: 'Sampled tokens by id, shaded by log-prob ( x )',
            onClick: () => toggle('tokens'),
          }),
        ),
    );
  }

  function showHint(): void {
    const text =
      'Choose one on the left. j and k go through the members of its prompt group with the same turn in view, [ and ] through the steps, / to the filter.';
    replaceChildren(pane, notice({ kind: 'empty', title: 'No episode is open', text }));
  }

  function showNothing({ status }: RunSummary): void {
    list.setItems([]);
    side.say([], []);
    const text = `Episodes are written when a step ends. ${status.step === 0 ? 'The first step is on its way; ' : ''}they appear here by themselves.`;
    replaceChildren(pane, notice({ kind: 'empty', title: 'No episodes yet', text }));
  }

  host.onNotify(episodesGrew, message => {
    if (!run) return; // the snapshot that is on its way has them
    const first = steps.length === 0;
    run = message.run;
    for (const step of message.steps) if (!steps.some(known => sameStep(known, step))) steps.push(step);
    steps.sort((a, b) => a.step - b.step || a.mode.localeCompare(b.mode));
    if (first) return load();
    // What is read is left alone: a new step is offered, not opened.
    side.update({ run, steps, selected, byFilter: stepFilter(parseFilter(state.value.filter).terms) !== undefined });
  });
  onThemeChange(changed => {
    theme = changed;
    if (opened) showEpisode(opened);
  });
  onKeys(document, {
    '/': () => side.focusFilter(),
    j: () => move(1),
    k: () => move(-1),
    r: () => toggle('raw'),
    x: () => toggle('tokens'),
    '[': () => goStep(-1),
    ']': () => goStep(1),
    Escape: back,
  });
  // A hidden page gets no messages: what it missed comes with a fresh snapshot.
  document.addEventListener('visibilitychange', () => {
    if (document.visibilityState === 'visible') load();
  });
  load();
}

/** `96 of 128 episodes · 41.2 % success`. */
function summary(shown: readonly EpisodeRow[], all: readonly EpisodeRow[]): string {
  const count = shown.length === all.length ? `${all.length} episodes` : `${shown.length} of ${all.length} episodes`;
  if (shown.length === 0) return count;
  return `${count} · ${formatPercent(shown.filter(row => row.success).length / shown.length)} success`;
}

interface Anchor {
  turn: number;
  /** Pixels from the pane's top to the turn's. */
  offset: number;
}

/** The turn that is read now: the last that begins above the pane's upper third. Null at the very top. */
function turnInView(pane: HTMLElement): Anchor | null {
  if (pane.scrollTop === 0) return null;
  const top = pane.getBoundingClientRect().top;
  const turns = [...pane.querySelectorAll<HTMLElement>('[data-turn]')];
  const offset = (turn: HTMLElement) => turn.getBoundingClientRect().top - top;
  const current = turns.filter(turn => offset(turn) <= pane.clientHeight / 3).at(-1) ?? turns[0];
  return current ? { turn: Number(current.dataset.turn), offset: offset(current) } : null;
}

/** Scrolls so that the same turn, or the last where there are fewer, stands where it stood. */
function keepInView(pane: HTMLElement, { turn, offset }: Anchor): void {
  const turns = [...pane.querySelectorAll<HTMLElement>('[data-turn]')];
  const target = turns.find(element => Number(element.dataset.turn) === turn) ?? turns.at(-1);
  if (target) pane.scrollTop += target.getBoundingClientRect().top - pane.getBoundingClientRect().top - offset;
}
