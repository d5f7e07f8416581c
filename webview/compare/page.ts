// The Compare page: a table of each configuration's results and, for every metric, a chart of all runs. Runs that
// differ only by seed are drawn as one line with a band, from three seeds on. The page requests only the columns of charts on screen, with
// only one request in flight.
import { render } from 'lit';
import {
  compareColour,
  compareColumns,
  compareGrew,
  compareOpen,
  compareReady,
} from '../../extension/protocol/compare-page';
import { offerKeyHelp } from '../components/key-help';
import { OnScreen } from '../components/on-screen';
import { DrawQueue } from '../charts/draw-queue';
import type { Plotter } from '../charts/plot';
import { messageOf, type Host } from '../shared/host';
import { viewState } from '../shared/state';
import { createStore } from '../shared/store';
import { onThemeChange, readTheme } from '../shared/theme';
import { CompareChart, type ChartTools } from './compare-chart';
import { compareView } from './compare-view';
import { type CompareActions } from './actions';
import { reduce } from './reducer';
import { firstSettings, initialState, lookMaker, wantedKeys } from './state';

/** Starts the page in `root`. `plotter` draws on a canvas. */
export function startCompare(host: Host, root: HTMLElement, plotter: Plotter): void {
  const saved = viewState(host, 1, firstSettings);
  const actions: CompareActions = {
    load,
    search: text => dispatch({ type: 'searched', text }),
    smooth: smoothing => dispatch({ type: 'smoothed', smoothing }),
    chooseMetric: key => dispatch({ type: 'metric-chosen', key }),
    chooseAxis: axis => dispatch({ type: 'axis-chosen', axis }),
    show: zoom => dispatch({ type: 'zoomed', zoom }),
    toggle: (key, setting) => dispatch({ type: 'toggled', key, setting }),
    hide: (runs, isHidden) => dispatch({ type: 'hidden', runs, isHidden }),
    recolour: (folders, colour) =>
      void host
        .request(compareColour, { folders: [...folders], colour })
        .then(load, (error: unknown) => dispatch({ type: 'failed', message: messageOf(error) })),
    chooseBaseline: group => dispatch({ type: 'baseline', group }),
    showDifferences: differences => dispatch({ type: 'differences', differences }),
    unfold: (section, isOpen) => dispatch({ type: 'unfolded', section, isOpen }),
    openDashboard: dashboard => host.notify(compareOpen, { dashboard }),
    openDifference: difference => host.notify(compareOpen, { difference }),
  };
  const tools: ChartTools = {
    plotter,
    queue: new DrawQueue(() => true),
    screen: new OnScreen(),
    actions,
    hover: x => dispatch({ type: 'hovered', x }),
    appear: (key, isOnScreen) => dispatch({ type: 'on-screen', key, isOnScreen }),
  };
  const lookOf = lookMaker();
  const store = createStore(initialState(saved.value, readTheme()), reduce, (state, before) => {
    if (before && state.settings !== before.settings) saved.change(state.settings);
    render(compareView(state, lookOf(state), actions, tools), root);
    // Charts that enter the screen in the same event-loop task share a request.
    if (!state.asking && wantedKeys(state).length > 0) queueMicrotask(ask);
  });
  const { dispatch } = store;

  function load(): void {
    dispatch({ type: 'connecting' });
    host.request(compareReady, null).then(
      snapshot => {
        saved.keepFolder(document.body.dataset.run ?? '');
        dispatch({ type: 'connected', snapshot });
      },
      (error: unknown) => dispatch({ type: 'failed', message: messageOf(error) }),
    );
  }

  function ask(): void {
    const { asking, compared } = store.state;
    const keys = wantedKeys(store.state);
    if (asking || !compared || keys.length === 0) return;
    const of = compared.snapshot;
    dispatch({ type: 'asked', keys });
    host.request(compareColumns, { keys }).then(
      runs => dispatch({ type: 'answered', keys, of, runs }),
      () => dispatch({ type: 'refused' }),
    );
  }

  offerKeyHelp(() => [{ title: 'In a chart with the focus', keys: CompareChart.keys }]);
  host.onNotify(compareGrew, load);
  onThemeChange(theme => dispatch({ type: 'theme', theme }));
  load();
}
