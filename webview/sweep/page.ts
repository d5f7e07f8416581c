// The Sweep page: the grid of arms and seeds of a sweep while its runs train, the result of each arm with its interval,
// and the paired difference of two arms. Only one request for the snapshot is in flight.
import { render } from 'lit';
import { sweepChanged, sweepControl, sweepOpen, sweepReady } from '../../extension/protocol/sweep-page';
import { offerKeyHelp } from '../components/key-help';
import { messageOf, type Host } from '../shared/host';
import { viewState } from '../shared/state';
import { createStore } from '../shared/store';
import { onThemeChange, readTheme } from '../shared/theme';
import type { SweepPageActions } from './actions';
import { reduce } from './reducer';
import { firstSettings, initialState } from './state';
import { sweepView } from './sweep-view';

/** Starts the page in `root`. */
export function startSweepPage(host: Host, root: HTMLElement): void {
  const saved = viewState(host, 1, firstSettings);
  const actions: SweepPageActions = {
    load,
    control: action => {
      if (store.state.requested !== null) return;
      dispatch({ type: 'requested', action });
      host
        .request(sweepControl, { action })
        .catch((error: unknown) => dispatch({ type: 'refused', message: messageOf(error) }));
    },
    chooseMetric: metric => {
      dispatch({ type: 'chosen', part: { metric } });
      load();
    },
    choose: part => dispatch({ type: 'chosen', part }),
    openDashboard: dashboard => host.notify(sweepOpen, { dashboard }),
    openComparison: () => host.notify(sweepOpen, 'comparison'),
    openFile: () => host.notify(sweepOpen, 'file'),
  };
  const store = createStore(initialState(saved.value, readTheme()), reduce, (state, before) => {
    if (before && state.settings !== before.settings) saved.change(state.settings);
    render(sweepView(state, actions), root);
  });
  const { dispatch } = store;

  let isLoading = false;
  /** Whether the sweep has changed since the request in flight was sent. */
  let isStale = false;
  function load(): void {
    if (isLoading) {
      isStale = true;
      return;
    }
    isLoading = true;
    isStale = false;
    host
      .request(sweepReady, { metric: store.state.settings.metric })
      .then(
        snapshot => {
          saved.keepFolder(document.body.dataset.run ?? '');
          dispatch({ type: 'connected', snapshot });
        },
        (error: unknown) => dispatch({ type: 'failed', message: messageOf(error) }),
      )
      .finally(() => {
        isLoading = false;
        if (isStale) load();
      });
  }

  host.onNotify(sweepChanged, load);
  offerKeyHelp(() => [
    {
      title: 'In the grid',
      keys: { Tab: { does: 'Go to the next run' }, Enter: { does: 'Open the dashboard of the run' } },
    },
  ]);
  onThemeChange(theme => dispatch({ type: 'theme', theme }));
  load();
}
