// The Dashboard page: many small charts of one run's metrics, which grow during training. This file turns messages from
// the host, key presses and timer events into changes of the page's state. The metrics are in a series store.
import { render } from 'lit';
import {
  dashboardLines,
  dashboardPicked,
  dashboardRead,
  dashboardReady,
  dashboardView as dashboardSettings,
} from '../../extension/protocol/dashboard-page';
import { offerKeyHelp } from '../components/key-help';
import { messageOf, type Host } from '../shared/host';
import { onShown } from '../shared/visibility';
import { onKeys, type KeyMap } from '../shared/keyboard';
import { viewState } from '../shared/state';
import { createStore } from '../shared/store';
import { onThemeChange, readTheme } from '../shared/theme';
import { dashboardActions } from './page-actions';
import type { Charts } from './charts/chart-sections';
import { metricChartKeys } from './charts/chart-menu';
import { contextMaker } from './charts/chart-context';
import { dashboardView } from './dashboard-view';
import { areDrawn, DrawQueue } from '../charts/draw-queue';
import { IncomingLines } from './incoming-lines';
import { OnScreen } from '../components/on-screen';
import type { Plotter } from '../charts/plot';
import { reduce, type DashboardEvent } from './reducer';
import { SeriesStore } from '../charts/metric-series';
import { firstSettings, settingsSchema } from './dashboard-settings';
import { groupsReader, initialState, isTable } from './state';

/** Starts the page in `root`. `plotter` draws on a canvas. */
export function startDashboard(host: Host, root: HTMLElement, plotter: Plotter): void {
  const isFresh = host.getState() === undefined;
  const saved = viewState(host, settingsSchema, firstSettings);
  const series = new SeriesStore(host, columnsCame);
  const contextOf = contextMaker(series);
  const groups = groupsReader();
  const actions = dashboardActions({ host, root, connect, state: () => store.state, dispatch, charts });
  const tools = { host, plotter, queue: new DrawQueue(() => areDrawn(root)), screen: new OnScreen(), actions };
  const store = createStore(initialState(saved.value, isFresh, readTheme()), reduce, (state, before) => {
    const { settings, run } = state;
    series.smoothing = settings.smoothing;
    if (before && settings !== before.settings) {
      saved.change(settings);
      const view = { schema: settingsSchema, view: { ...settings, zoom: null } };
      if (before.run) host.notify(dashboardSettings, { view }); // the first settings come from the host
    }
    if (run && run.folder !== before?.run?.folder) saved.keepFolder(run.folder);
    if (isTable(state)) series.want(state.series.keys);
    if (run && run.status.step !== before?.run?.status.step) pick();
    render(dashboardView(state, charts(state), actions), root);
  });
  const incoming = new IncomingLines(({ run, lines, events }) => {
    series.append(lines);
    dispatch({ type: 'grown', run, events, series: series.summary });
  });

  /** Computes the inputs of all charts from `state`; null before the first snapshot. */
  function charts(state = store.state): Charts | null {
    const { run } = state;
    return run && { groups: groups(state), context: contextOf(state, run), tools };
  }

  function dispatch(event: DashboardEvent): void {
    store.dispatch(event);
  }

  function connect(): void {
    dispatch({ type: 'connecting' });
    host.request(dashboardReady, null).then(
      snapshot => {
        incoming.drop();
        series.load(snapshot);
        dispatch({ type: 'connected', snapshot, series: series.summary });
      },
      (error: unknown) => dispatch({ type: 'failed', message: messageOf(error) }),
    );
  }

  let isPicking = false;
  /** Requests the picked episodes, and requests them again if the run has finished a step meanwhile. */
  function pick(): void {
    if (isPicking) return;
    isPicking = true;
    const step = store.state.run?.status.step;
    host
      .request(dashboardPicked, null)
      .then(
        picked => dispatch({ type: 'picked', picked }),
        () => undefined, // the row keeps the episodes of an earlier step
      )
      .finally(() => {
        isPicking = false;
        if (store.state.run?.status.step !== step) pick();
      });
  }

  let isFrameAsked = false;
  /**
   * Called when columns have arrived. The table of all metrics loads every column, so it is redrawn at most once per
   * frame.
   */
  function columnsCame(): void {
    const pass = (): void => {
      isFrameAsked = false;
      dispatch({ type: 'columns', series: series.summary });
    };
    if (!isTable(store.state)) return pass();
    if (!isFrameAsked) requestAnimationFrame(pass);
    isFrameAsked = true;
  }

  host.onNotify(dashboardLines, message => {
    if (!store.state.run) return; // before the first snapshot, which will include these lines
    if (message.lines.length > 0 || message.events.length > 0) incoming.add(message);
    else dispatch({ type: 'status', run: message.run });
  });
  host.onNotify(dashboardRead, ({ read }) => {
    dispatch({ type: 'read', read });
    if (read >= 1) connect();
  });
  onThemeChange(theme => dispatch({ type: 'theme', theme }));
  const keys: KeyMap = {
    '/': { does: 'Search metrics', run: () => root.querySelector<HTMLElement>('.search')?.focus() },
    t: { does: 'Charts or table', run: () => actions.change({ table: !store.state.settings.table }) },
    '0': { does: 'Show all steps', run: () => actions.show(null) },
    Escape: { does: 'End the zoom, or shrink enlarged charts', run: () => dispatch({ type: 'escape' }) },
  };
  onKeys(document, keys);
  offerKeyHelp(() => [
    { title: 'Dashboard', keys },
    { title: 'In a chart with the focus', keys: metricChartKeys },
  ]);
  onShown(host, connect);
  connect();
}
