// The Dashboard page: one run's metrics as small multiples that grow during training. This file owns loading, the
// snapshot, appended lines and view settings; cards draw, sections place the cards, curves compute.
import {
  dashboardCommand,
  dashboardExport,
  dashboardLines,
  dashboardRead,
  dashboardReady,
  dashboardView,
  type DashboardSnapshot,
} from '../../extension/protocol/dashboard-page';
import { appendAll } from '../../extension/common/lists';
import { meaningOf } from '../../extension/run-data/metric-meanings';
import type { RunSummary } from '../../extension/protocol/pages';
import type { RunEvent } from '../../extension/run-data/run-events';
import { h, replaceChildren, setText } from '../shared/dom';
import { messageOf, type Host } from '../shared/host';
import { onKeys } from '../shared/keyboard';
import { notice, skeleton } from '../shared/notices';
import { colourOfRun } from '../shared/palette';
import { displayStatus } from '../shared/run-status';
import { viewState } from '../shared/state';
import { onThemeChange, readTheme } from '../shared/theme';
import { arranged, orderAfterMove, pinToggled } from './arrangement';
import { progressRange, zoomRange, type Range } from './axis';
import { arrange, tagsOf, type ChartGroup } from './catalogue';
import { ChartCard, type CardEvents, type ChartContext } from './chart-card';
import { ChartSections } from './chart-sections';
import { lowerBound } from './curve';
import { DrawQueue } from './draw-queue';
import { evaluationTable } from './evaluation-table';
import { marksOf, thinned, type Mark } from './marks';
import { runTable } from './metric-table';
import type { Plotter } from './plot';
import { ScoreCard } from './score-card';
import { SeriesStore } from './series';
import { pngOf, svgOf } from './svg-plot';
import { topBar, type Command } from './top-bar';
import { firstView, viewSchema, type DashboardView } from './view';
import { panned, zoomed } from './zoom';

/** Minimum distance in pixels between two marks below a chart. */
const markDistance = 11;

/** Minimum milliseconds between two drawings of a growing run. */
const growthMs = 200;

/** Size of an exported picture in SVG units; the PNG has twice as many pixels. */
const pictureSize = { width: 720, height: 400 };

/** Performance mark set when all charts are drawn for the first time. */
const drawnMark = 'ragen.charts-drawn';

/** Starts the page in `root`. `plotter` draws on a canvas. */
export function startDashboard(host: Host, root: HTMLElement, plotter: Plotter): void {
  const isFresh = host.getState() === undefined;
  const state = viewState(host, viewSchema, firstView);
  const queue: DrawQueue = new DrawQueue(() => {
    const waits =
      root.querySelector('.chart[data-empty="waiting"]') !== null || sections.element.querySelector('.chart') === null;
    // Marks that all charts on screen have their lines, for measuring the opening time.
    if (!waits && performance.getEntriesByName(drawnMark).length === 0) performance.mark(drawnMark);
    return !waits;
  });
  const sections: ChartSections = new ChartSections(
    spec => (spec.scores ? new ScoreCard(host, queue, cardEvents) : new ChartCard(spec, plotter, queue, cardEvents)),
    group => change({ folded: toggled(state.value.folded, group) }),
  );
  const announcer = h('p', { class: 'visually-hidden', 'aria-live': 'polite' });
  let theme = readTheme();
  let run: RunSummary | null = null;
  let events: RunEvent[] = [];
  let meanings: Record<string, string> = {};
  let episodes: DashboardSnapshot['episodes'] = { train: null, val: {} };
  let scored = false;
  let groups: ChartGroup[] = [];
  let openedEvent: RunEvent | null = null;
  let search = '';
  let hoveredRow: number | null = null;
  let drawing = false;
  let grown = false; // new lines since the last drawing
  let onlyGrown = false; // and nothing else has changed
  let resting: ReturnType<typeof setTimeout> | undefined;
  let laidOut = ''; // input of the last layout

  const store = new SeriesStore(host, keys => {
    if (state.value.table || run?.status.episodes) return draw();
    if (!run) return;
    const shared = { ...context(), grown: false };
    if (keys.has('wall_s') || keys.has('train/num_episodes')) return draw();
    for (const card of sections.cards) if (card.shows(keys)) card.update(shared);
  });

  const send = (command: Command) => host.notify(dashboardCommand, { command });
  /** Changes settings, for this page and as defaults of the workspace. */
  function change(part: Partial<DashboardView>): void {
    state.change(part);
    host.notify(dashboardView, { view: { schema: viewSchema, view: { ...state.value, zoom: null } } });
    bar.show(state.value);
    draw();
  }
  const bar = topBar(state.value, {
    command: send,
    change,
    search(text) {
      search = text.trim().toLowerCase();
      draw();
    },
    resetZoom: () => change({ zoom: null }),
    exportShown,
    openAlarm() {
      const newest = alarmsOf().at(-1);
      if (newest) openEvent(newest);
    },
  });
  const cardEvents: CardEvents = {
    hover: x => showCrosshair(x === null ? null : nearestRow(x)),
    move(rows) {
      const from = hoveredRow ?? store.length - 1 - Math.min(0, rows);
      showCrosshair(Math.max(0, Math.min(store.length - 1, from + rows)));
    },
    openMark: ({ event }) => openEvent(event),
    toggle(id, setting) {
      if (setting === 'pinned') return change(pinToggled(state.value, id));
      change({ [setting]: toggled(state.value[setting], id) });
    },
    moveBy(id, positions) {
      const group = groupOf(id);
      const at = group?.charts.findIndex(chart => chart.id === id) ?? -1;
      if (group) move(group, id, Math.max(0, Math.min(group.charts.length - 1, at + positions)));
    },
    moveBefore(id, other) {
      const [from, to] = [groupOf(id), groupOf(other)];
      if (!from || from !== to) return;
      const ids = from.charts.map(chart => chart.id);
      move(from, id, ids.indexOf(other));
    },
    zoomBy(factor, about) {
      const { shown, whole } = spans();
      const middle = about ?? (hoveredRow === null ? (shown.from + shown.to) / 2 : positions().xs[hoveredRow]);
      change({ zoom: zoomed(shown, whole, factor, middle) });
    },
    panBy(distance) {
      if (!state.value.zoom) return;
      const { shown, whole } = spans();
      const quarter = (shown.to - shown.from) / 4;
      change({
        zoom: panned(shown, whole, distance === 'left' ? -quarter : distance === 'right' ? quarter : distance),
      });
    },
    show: part => change({ zoom: part }),
    export: (id, format) => void exportChart(id, format),
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
    const kept = snapshot.view as { schema?: number; view?: Partial<DashboardView> } | undefined;
    if (!run && isFresh && kept?.schema === viewSchema) state.change({ ...kept.view, zoom: null });
    run = snapshot.run;
    events = [...snapshot.events];
    ({ meanings, episodes, scored } = snapshot);
    store.smoothing = state.value.smoothing;
    store.load(snapshot);
    state.keepFolder(run.folder);
    if (bar.element.parentElement !== root) replaceChildren(root, bar.element, sections.element, announcer);
    bar.show(state.value);
    bar.showReadProgress(snapshot.read);
    draw();
  }

  const positions = () => store.positions(state.value.axis);

  function nearestRow(x: number): number | null {
    const { xs } = positions();
    if (xs.length === 0 || !Number.isFinite(x)) return null;
    const after = Math.min(xs.length - 1, lowerBound(xs, x));
    return after > 0 && x - xs[after - 1] < xs[after] - x ? after - 1 : after;
  }

  function showCrosshair(row: number | null): void {
    hoveredRow = row;
    for (const card of sections.cards) card.hover(row);
  }

  /** The whole x range and the visible part. */
  function spans(): { whole: { from: number; to: number }; shown: { from: number; to: number } } {
    const { min, max } = wholeRange();
    const whole = { from: min, to: max };
    return { whole, shown: state.value.zoom ?? whole };
  }

  function wholeRange(): Range {
    const { axis, xs } = positions();
    const last = xs.length > 0 ? xs[xs.length - 1] : 0;
    if (displayStatus(run!) !== 'running' && last > 0) return progressRange(last, last); // the run has ended
    const total = run!.status.total_steps || null;
    const limit =
      axis === 'step' ? total : axis === 'episodes' && total && episodes.train ? total * episodes.train : null;
    return progressRange(last, limit);
  }

  function context(): ChartContext {
    const { smoothing, zoom } = state.value;
    const { axis, xs } = positions();
    const x = zoom ? zoomRange(zoom.from, zoom.to) : wholeRange();
    const all = marksOf(events, event => {
      if (axis === 'step') return event.step;
      return xs[Math.min(store.rowFrom(event.step), xs.length - 1)] ?? Number.NaN;
    });
    const inside = all.filter(mark => mark.x >= x.min && mark.x <= x.max);
    const byWidth = new Map<number, Mark[]>();
    const alarms = new Map(
      all.flatMap(mark => (mark.kind === 'alarm' ? [[String(mark.event.data?.metric), mark]] : [])),
    );
    return {
      ...{ store, theme, smoothing, axis, xs, x, grown: onlyGrown },
      colour: colourOfRun(run!.id),
      episodes: (tag, side) => (side === 'val' ? episodes.val[tag] : undefined),
      meaning: key => meaningOf(meanings, key),
      alarm: key => alarms.get(key),
      marks(width) {
        const rounded = Math.max(100, Math.round(width / 100) * 100);
        let marks = byWidth.get(rounded);
        if (!marks) byWidth.set(rounded, (marks = thinned(inside, ((x.max - x.min) * markDistance) / rounded)));
        return marks;
      },
    };
  }

  const shownEvents = () => ({ events, opened: openedEvent });
  const alarmsOf = () => events.filter(event => event.kind === 'alarm' || event.kind === 'early_stop');

  function openEvent(event: RunEvent): void {
    openedEvent = event;
    change({ folded: state.value.folded.filter(id => id !== 'events') });
    requestAnimationFrame(() => sections.revealEvent());
  }

  /** Draws everything once, after all updates of this frame. */
  function draw(): void {
    onlyGrown = false;
    drawInFrame();
  }

  function drawInFrame(): void {
    if (drawing) return;
    drawing = true;
    requestAnimationFrame(() => {
      drawing = false;
      if (run) drawNow(run);
      onlyGrown = true;
    });
  }

  /** Draws new lines at once, then waits before the next drawing, because one more step is less than a pixel. */
  function drawGrown(): void {
    grown = true;
    if (resting) return;
    grown = false;
    drawInFrame();
    resting = setTimeout(() => {
      resting = undefined;
      if (grown) drawGrown();
    }, growthMs);
  }

  function drawNow(now: RunSummary): void {
    bar.update(now);
    bar.offer(store.axes, tagsOf(store.keys));
    bar.showControls(store.length > 0 && !now.status.episodes);
    const alarms = alarmsOf();
    bar.showAlarms(alarms.length, alarms.at(-1)?.message ?? '');
    if (store.length === 0) return showEmpty(now);
    store.smoothing = state.value.smoothing;
    const { tag, pinned, order } = state.value;
    const made = JSON.stringify([store.keys, scored, tag, pinned, order]);
    if (made !== laidOut) groups = arranged(arrange({ keys: store.keys, scored, tag: tag ?? undefined }), state.value);
    laidOut = made;
    if (now.status.episodes) return showEvaluation();
    if (state.value.table) return showTable();
    sections.layOut(groups, state.value, search, shownEvents());
    const shared = context();
    for (const card of sections.cards) card.update(shared);
    if (hoveredRow !== null) showCrosshair(Math.min(hoveredRow, store.length - 1));
  }

  function showEvaluation(): void {
    store.want(store.keys);
    const table = evaluationTable(groups, store, key => meaningOf(meanings, key));
    sections.showInstead(h('div', { class: 'table-scroll', tabindex: 0 }, table), state.value, shownEvents());
  }

  function showTable(): void {
    store.want(store.keys);
    const table = runTable(groups, store, {
      search,
      meaning: key => meaningOf(meanings, key),
      sort: state.value.sort,
      sorted: sort => change({ sort }),
    });
    const scroll = h('div', { class: 'table-scroll run-table-scroll', tabindex: 0 }, table);
    sections.showInstead(scroll, state.value, shownEvents());
  }

  function showEmpty({ status, live, name }: RunSummary): void {
    const displayed = displayStatus({ status, live });
    const working = displayed === 'starting' || displayed === 'running';
    const { episodes } = status;
    const atWork = episodes
      ? `${episodes.done} of ${episodes.of} episodes finished. Results appear when all are finished.`
      : `${name} is running (${status.phase || displayed}). The first step takes longest, because the model is loaded first. Its metrics appear here when it ends.`;
    const ended = `The run is ${displayed}, and ${episodes ? `${episodes.done} of ${episodes.of} episodes have finished` : 'no step has finished'}. See the log for details.`;
    const text = working ? atWork : (status.error ?? ended);
    const action = { label: 'Open the log', run: () => send('log') };
    const waits = episodes ? 'No results yet' : 'No step has finished yet';
    const title = working ? waits : `The run is ${displayed}`;
    sections.showInstead(notice({ kind: status.error ? 'error' : 'empty', title, text, action }), state.value);
  }

  const groupOf = (id: string) => groups.find(group => group.charts.some(chart => chart.id === id));

  function move(group: ChartGroup, id: string, at: number): void {
    const focused = document.activeElement;
    change(orderAfterMove(state.value, group, id, at));
    setText(announcer, `${id} is ${at + 1} of ${group.charts.length} in ${group.title}`);
    requestAnimationFrame(() => requestAnimationFrame(() => focused instanceof HTMLElement && focused.focus()));
  }

  /** Rows in the visible part of the x axis. */
  function rowsShown(): { from: number; to: number } {
    const { zoom } = state.value;
    const { xs } = positions();
    return zoom ? { from: lowerBound(xs, zoom.from), to: lowerBound(xs, zoom.to + 1e-9) } : { from: 0, to: xs.length };
  }

  function exportShown(): void {
    const specs = groups.flatMap(group => group.charts);
    const keys = state.value.table
      ? store.keys.filter(key => key.toLowerCase().includes(search))
      : specs.flatMap(({ id }) => {
          const card = sections.card(id);
          return card && (search === '' || card.matches(search)) ? card.keys : [];
        });
    const asked = { kind: 'csv' as const, name: search === '' ? 'metrics' : `metrics ${search}`, ...rowsShown() };
    host.request(dashboardExport, { ...asked, keys: [...new Set(keys)].filter(key => store.has(key)) }).catch(failed);
  }

  async function exportChart(id: string, format: 'csv' | 'png' | 'svg'): Promise<void> {
    const card = sections.card(id);
    if (!card) return;
    try {
      if (format === 'csv') {
        const keys = card.keys.filter(key => store.has(key));
        return void (await host.request(dashboardExport, { kind: 'csv', name: id, keys, ...rowsShown() }));
      }
      const data = card.picture(pictureSize.width);
      if (!data) return;
      const svg = svgOf(data, pictureSize);
      const bytes = format === 'svg' ? new TextEncoder().encode(svg) : await pngOf(svg, pictureSize, 2);
      await host.request(dashboardExport, { kind: 'picture', name: id, format, bytes });
    } catch (error) {
      failed(error);
    }
  }

  function failed(error: unknown): void {
    const close = { label: 'Close', run: () => said.remove() };
    const said = notice({ kind: 'error', title: 'The file was not written', text: messageOf(error), action: close });
    sections.element.prepend(said);
  }

  host.onNotify(dashboardLines, message => {
    if (!run) return; // the pending snapshot includes them
    run = message.run;
    appendAll(events, message.events);
    store.append(message.lines);
    if (message.lines.length > 0 || message.events.length > 0 || store.length === 0) drawGrown();
    else bar.update(run); // a frequent update of the status only
  });
  host.onNotify(dashboardRead, ({ read }) => {
    bar.showReadProgress(read);
    if (read >= 1) load();
  });
  onThemeChange(changed => {
    theme = changed;
    draw();
  });
  onKeys(document, {
    '/': () => bar.focusSearch(),
    t: () => change({ table: !state.value.table }),
    '0': () => change({ zoom: null }),
    Escape() {
      if (state.value.zoom) change({ zoom: null });
      else if (state.value.enlarged.length > 0) change({ enlarged: [] });
    },
  });
  // A hidden page receives no messages, so it loads a new snapshot.
  document.addEventListener('visibilitychange', () => {
    if (document.visibilityState === 'visible') load();
  });
  load();
}

const toggled = (ids: readonly string[], id: string): string[] =>
  ids.includes(id) ? ids.filter(other => other !== id) : [...ids, id];
