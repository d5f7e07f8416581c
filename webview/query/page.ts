// The Query page: SQL over the runs of a workspace folder, its result as a table, and a chart of two columns. Mod+Enter
// runs the query. Only one query runs at a time.
import { render } from 'lit';
import { queryCancel, queryReady, queryRun, querySave } from '../../extension/protocol/query-page';
import type { Plotter } from '../charts/plot';
import { offerKeyHelp } from '../components/key-help';
import { messageOf, type Host } from '../shared/host';
import { viewState } from '../shared/state';
import { createStore } from '../shared/store';
import { onThemeChange, readTheme } from '../shared/theme';
import type { QueryActions } from './actions';
import { queryView } from './query-view';
import { reduce } from './reducer';
import { firstSettings, initialState } from './state';

/** Starts the page in `root`. `plotter` draws on a canvas. */
export function startQuery(host: Host, root: HTMLElement, plotter: Plotter): void {
  const saved = viewState(host, 1, firstSettings);
  const failed = (error: unknown): void => dispatch({ type: 'failed', message: messageOf(error) });
  const actions: QueryActions = {
    load,
    write: sql => dispatch({ type: 'written', sql }),
    run: () => {
      const { running, settings } = store.state;
      if (running || settings.sql.trim() === '') return;
      dispatch({ type: 'started' });
      host.request(queryRun, { sql: settings.sql }).then(answer => dispatch({ type: 'answered', answer }), failed);
    },
    cancel: () => host.notify(queryCancel, null),
    chart: part => dispatch({ type: 'charted', part }),
    save: () => {
      const { result } = store.state;
      if (result) host.request(querySave, { columns: result.columns, rows: result.rows }).catch(failed);
    },
  };
  const store = createStore(initialState(saved.value, readTheme()), reduce, (state, before) => {
    if (before && state.settings !== before.settings) saved.change(state.settings);
    render(queryView(state, actions, plotter), root);
  });
  const { dispatch } = store;

  function load(): void {
    host.request(queryReady, null).then(context => {
      saved.keepFolder(document.body.dataset.run ?? '');
      dispatch({ type: 'connected', context });
    }, failed);
  }

  offerKeyHelp(() => [{ title: 'In the query', keys: { 'Ctrl+Enter': { does: 'Run the query' } } }]);
  onThemeChange(theme => dispatch({ type: 'theme', theme }));
  load();
}
