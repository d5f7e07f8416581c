// The Dashboard page: one run's numbers as small multiples that grow while it trains. This file holds the page's life (loading,
// snapshot, new lines, view settings); drawing is with the cards, arithmetic with transforms.ts.
import {
  dashboardCommand,
  dashboardLines,
  dashboardReady,
  type DashboardSnapshot,
  type RunSummary,
} from '../../extension/protocol/pages';
import { meaningOf } from '../../extension/protocol/metric-meanings';
import type { RunEvent } from '../../extension/protocol/run-folder';
import { h, replaceChildren, setAttribute, setText } from '../shared/dom';
import { messageOf, type Host } from '../shared/host';
import { onKeys } from '../shared/keyboard';
import { notice, skeleton } from '../shared/notices';
import { colourOfRun } from '../shared/palette';
import { standingOf } from '../shared/run-status';
import { viewState } from '../shared/state';
import { onThemeChange, readTheme } from '../shared/theme';
import { arrange, type ChartGroup } from './catalogue';
import { ChartCard, type ChartCardEvents, type ChartContext } from './chart-card';
import { eventList } from './event-list';
import { marksOf, thinned, type Mark } from './marks';
import { runTable } from './metric-table';
import type { Plotter } from './plot';
import { lowerBound, SeriesStore } from './series';
import { topBar, type Command } from './top-bar';
import { firstView, viewSchema } from './view';

/** Pixels between two marks at a chart's foot. */
const markDistance = 11;

/** Starts the page in `root`. `plotter` draws on a canvas. */
export function startDashboard(host: Host, root: HTMLElement, plotter: Plotter): void {
  const state = viewState(host, viewSchema, firstView);
  const store = new SeriesStore();
  const cards = new Map<string, ChartCard>();
  const groupElements = new Map<string, HTMLElement>();
  const body = h('main', { class: 'dashboard-body' });
  let theme = readTheme();
  let run: RunSummary | null = null;
  let events: RunEvent[] = [];
  let meanings: Record<string, string> = {};
  let groups: ChartGroup[] = [];
  let openedEvent: RunEvent | null = null;
  let search = '';
  let hoveredRow: number | null = null;
  let drawing = false;

  const send = (command: Command) => host.notify(dashboardCommand, { command });
  const bar = topBar(state.value, {
    command: send,
    change(part) {
      state.change(part);
      bar.show(state.value);
      draw();
    },
    search(text) {
      search = text.trim().toLowerCase();
      draw();
    },
  });
  const observer = new IntersectionObserver(
    entries => {
      for (const entry of entries)
        cards.get((entry.target as HTMLElement).dataset.chart ?? '')?.setVisible(entry.isIntersecting);
    },
    { rootMargin: '200px' },
  );

  const cardEvents: ChartCardEvents = {
    hover: x => showCrosshair(x === null ? null : nearestRow(x)),
    move(rows) {
      const from = hoveredRow ?? store.length - 1 - Math.min(0, rows);
      showCrosshair(Math.max(0, Math.min(store.length - 1, from + rows)));
    },
    grow(id) {
      const { enlarged } = state.value;
      state.change({ enlarged: enlarged.includes(id) ? enlarged.filter(other => other !== id) : [...enlarged, id] });
      draw();
    },
    openMark({ event }: Mark) {
      openedEvent = event;
      state.change({ folded: state.value.folded.filter(id => id !== 'events') });
      draw();
      body.querySelector('.event-table .opened')?.scrollIntoView({ block: 'nearest' });
    },
  };

  function load(): void {
    if (!run) replaceChildren(root, skeleton('skeleton-charts', 8, 'Loading the run'));
    host.request(dashboardReady, null).then(take, error => {
      const again = { label: 'Try again', run: load };
      replaceChildren(
        root,
        notice({ kind: 'error', title: 'The run could not be read', text: messageOf(error), action: again }),
      );
      run = null;
    });
  }

  function take(snapshot: DashboardSnapshot): void {
    run = snapshot.run;
    events = [...snapshot.events];
    meanings = snapshot.meanings;
    store.load(snapshot);
    state.keepFolder(run.folder);
    if (bar.element.parentElement !== root) replaceChildren(root, bar.element, body);
    bar.show(state.value);
    draw();
  }

  function nearestRow(x: number): number | null {
    const xs = places();
    if (xs.length === 0 || !Number.isFinite(x)) return null;
    const after = Math.min(xs.length - 1, lowerBound(xs, x));
    return after > 0 && x - xs[after - 1] < xs[after] - x ? after - 1 : after;
  }

  /** Where rows stand on the x axis. */
  function places(): Float64Array {
    return (state.value.axis === 'time' && store.column('wall_s')) || store.steps;
  }

  function showCrosshair(row: number | null): void {
    hoveredRow = row;
    for (const card of cards.values()) card.hover(row);
  }

  function context(): ChartContext {
    const { smoothing, axis } = state.value;
    const xs = places();
    const byTime = axis === 'time' && store.has('wall_s');
    const all = marksOf(events, event =>
      byTime ? (xs[Math.min(store.rowFrom(event.step), xs.length - 1)] ?? Number.NaN) : event.step,
    );
    const span = Math.max(1, xs.length > 0 ? xs[xs.length - 1] : 1);
    const byWidth = new Map<number, Mark[]>();
    return {
      store,
      theme,
      colour: colourOfRun(run!.id),
      smoothing,
      axis: byTime ? 'time' : 'step',
      xs,
      limit: byTime ? null : run!.status.total_steps || null,
      meaning: key => meaningOf(meanings, key),
      marks(width) {
        const rounded = Math.max(100, Math.round(width / 100) * 100);
        let marks = byWidth.get(rounded);
        if (!marks) byWidth.set(rounded, (marks = thinned(all, (span * markDistance) / rounded)));
        return marks;
      },
    };
  }

  /** Draws everything once, after all that comes in this frame. */
  function draw(): void {
    if (drawing) return;
    drawing = true;
    requestAnimationFrame(() => {
      drawing = false;
      if (run) drawNow(run);
    });
  }

  function drawNow(now: RunSummary): void {
    bar.update(now);
    bar.allowTime(store.has('wall_s'));
    bar.showControls(store.length > 0);
    if (store.length === 0) return showEmpty(now);
    groups = arrange(store.keys);
    if (state.value.table) {
      dropCards();
      const table = runTable(groups, store, search, key => meaningOf(meanings, key));
      replaceChildren(body, h('div', { class: 'table-scroll run-table-scroll', tabindex: 0 }, table), eventGroup());
      return;
    }
    layOut();
    const shared = context();
    for (const card of cards.values()) card.update(shared);
    if (hoveredRow !== null) showCrosshair(Math.min(hoveredRow, store.length - 1));
  }

  function showEmpty({ status, live, name }: RunSummary): void {
    dropCards();
    const standing = standingOf({ status, live });
    const working = standing === 'starting' || standing === 'running';
    const text = working
      ? `${name} is at work (${status.phase || standing}). The first step takes longest: the model is loaded, then whole episodes are played. Its numbers appear here as soon as it ends.`
      : (status.error ?? `The run is ${standing} and no step was finished. The log says what it did.`);
    const action = { label: 'Open the log', run: () => send('log') };
    const title = working ? 'No step has finished yet' : `The run is ${standing}`;
    replaceChildren(body, notice({ kind: status.error ? 'error' : 'empty', title, text, action }));
  }

  /** Brings the cards in line with the arrangement; what is there already stays where it is. */
  function layOut(): void {
    const { folded, enlarged } = state.value;
    const wanted = new Set<string>();
    const sections: HTMLElement[] = [];
    for (const group of groups) {
      const section = groupElement(group.id, group.title, group.id !== 'pinned');
      const isFolded = folded.includes(group.id) && search === '';
      const shown = group.charts.filter(chart => {
        wanted.add(chart.id);
        const card = cardOf(chart.id, group);
        card.setSpec(chart);
        card.setLarge(enlarged.includes(chart.id));
        return search === '' || card.matches(search);
      });
      section.hidden = shown.length === 0;
      setAttribute(
        section.querySelector('button') ?? section,
        'aria-expanded',
        group.id === 'pinned' ? null : String(!isFolded),
      );
      const grid = section.querySelector<HTMLElement>('.charts')!;
      grid.hidden = isFolded;
      place(
        grid,
        shown.map(chart => cards.get(chart.id)!.element),
      );
      if (!section.hidden) sections.push(section);
    }
    for (const [id, card] of cards) {
      if (wanted.has(id)) continue;
      observer.unobserve(card.element);
      card.dispose();
      cards.delete(id);
    }
    const nothing =
      sections.length === 0 &&
      notice({ kind: 'empty', title: 'No metric is called so', text: `Nothing in this run matches “${search}”.` });
    place(body, [...sections, ...(nothing ? [nothing] : []), eventGroup()]);
  }

  function cardOf(id: string, group: ChartGroup): ChartCard {
    let card = cards.get(id);
    if (!card) {
      card = new ChartCard(
        group.charts.find(chart => chart.id === id)!,
        plotter,
        cardEvents,
      );
      cards.set(id, card);
      observer.observe(card.element);
    }
    return card;
  }

  function groupElement(id: string, title: string, foldable: boolean): HTMLElement {
    let section = groupElements.get(id);
    if (!section) {
      const fold = h('button', { class: 'plain fold', type: 'button', 'aria-expanded': 'true' }, title);
      fold.addEventListener('click', () => toggleFold(id));
      const heading = h('h2', { class: foldable ? 'group-title' : 'visually-hidden' }, foldable ? fold : title);
      section = h('section', { class: 'group', 'data-group': id }, heading, h('div', { class: 'charts' }));
      groupElements.set(id, section);
    }
    return section;
  }

  function eventGroup(): HTMLElement {
    const section = groupElement('events', 'Events', true);
    const open = !state.value.folded.includes('events');
    section.hidden = events.length === 0;
    setText(section.querySelector('.fold')!, `Events (${events.length})`);
    setAttribute(section.querySelector('.fold')!, 'aria-expanded', String(open));
    const list = section.querySelector<HTMLElement>('.charts, .events')!;
    list.className = 'events';
    list.hidden = !open;
    replaceChildren(list, open && eventList(events, openedEvent));
    return section;
  }

  function toggleFold(id: string): void {
    const { folded } = state.value;
    state.change({ folded: folded.includes(id) ? folded.filter(other => other !== id) : [...folded, id] });
    draw();
  }

  function dropCards(): void {
    for (const card of cards.values()) {
      observer.unobserve(card.element);
      card.dispose();
    }
    cards.clear();
  }

  host.onNotify(dashboardLines, message => {
    if (!run) return; // the snapshot that is on its way has them
    run = message.run;
    events.push(...message.events);
    store.append(message.lines);
    if (message.lines.length > 0 || message.events.length > 0 || store.length === 0) draw();
    else bar.update(run); // the status alone, which comes often
  });
  onThemeChange(changed => {
    theme = changed;
    draw();
  });
  onKeys(document, {
    '/': () => bar.focusSearch(),
    t: () => {
      state.change({ table: !state.value.table });
      bar.show(state.value);
      draw();
    },
    Escape: () => {
      if (state.value.enlarged.length === 0) return;
      state.change({ enlarged: [] });
      draw();
    },
  });
  // A hidden page gets no messages: what it missed comes with a fresh snapshot.
  document.addEventListener('visibilitychange', () => {
    if (document.visibilityState === 'visible') load();
  });
  load();
}

/** Makes `children` the children of `parent`, moving only what is out of place, so that focus and scroll survive. */
function place(parent: HTMLElement, children: HTMLElement[]): void {
  children.forEach((child, i) => {
    if (parent.children[i] !== child) parent.insertBefore(child, parent.children[i] ?? null);
  });
  while (parent.children.length > children.length) parent.lastElementChild!.remove();
}
