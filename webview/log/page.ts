// The Log page: what a run reported, by step or with errors first. The host sends the newest part of the log first and
// then new entries.
import { render } from 'lit';
import { logCommand, logGrown, logReady } from '../../extension/protocol/log-page';
import { offerKeyHelp } from '../components/key-help';
import { messageOf, type Host } from '../shared/host';
import { onShown } from '../shared/visibility';
import { listKeys } from '../components/virtual-list';
import { onKeys, type KeyMap } from '../shared/keyboard';
import { viewState } from '../shared/state';
import { createStore } from '../shared/store';
import type { LogActions } from './actions';
import { logView } from './log-view';
import { reduce } from './reducer';
import { firstSettings, initialState, settingsSchema } from './state';

/** Starts the page in `root`. */
export function startLog(host: Host, root: HTMLElement): void {
  const saved = viewState(host, settingsSchema, firstSettings);
  const actions: LogActions = {
    load,
    command: command => host.notify(logCommand, command),
    change: settings => dispatch({ type: 'settings', settings }),
    search: text => dispatch({ type: 'search', text }),
    select: key => dispatch({ type: 'select', key }),
  };
  const store = createStore(initialState(saved.value), reduce, (state, before) => {
    if (before && state.settings !== before.settings) saved.change(state.settings);
    render(logView(state, actions), root);
  });
  const { dispatch } = store;

  function load(): void {
    dispatch({ type: 'loading' });
    host.request(logReady, null).then(
      snapshot => {
        saved.keepFolder(snapshot.run.folder);
        dispatch({ type: 'loaded', snapshot });
      },
      (error: unknown) => dispatch({ type: 'failed', message: messageOf(error) }),
    );
  }

  host.onNotify(logGrown, added => dispatch({ type: 'grown', added }));
  const keys: KeyMap = {
    '/': { does: 'Search the log', run: () => root.querySelector<HTMLElement>('.search')?.focus() },
    Escape: { does: 'Close the details of the entry', run: () => actions.select(null) },
  };
  onKeys(document, keys);
  offerKeyHelp(() => [
    { title: 'Log', keys },
    { title: 'In the list', keys: listKeys },
  ]);
  onShown(host, load);
  load();
}
