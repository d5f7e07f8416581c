// The Live page: one episode of a running run, displayed token by token while it is sampled. The host sends updates.
// While the setting `follow` is on, the page scrolls with new content and switches to the next episode shortly after
// the current episode has ended. Between rollouts, the page shows the trainer's phase.
import { render } from 'lit';
import { liveCommand, liveEpisode, liveReady, liveRun, liveTags, liveTokens } from '../../extension/protocol/live-page';
import { messageOf, type Host } from '../shared/host';
import { onShown } from '../shared/visibility';
import { offerKeyHelp } from '../components/key-help';
import { onKeys, type KeyMap } from '../shared/keyboard';
import { viewState } from '../shared/state';
import { createStore } from '../shared/store';
import { onThemeChange, readTheme } from '../shared/theme';
import { liveView } from './live-view';
import { type LiveActions } from './actions';
import { reduce } from './reducer';
import { firstSettings, initialState, lingers } from './state';

/** Milliseconds for which a finished episode stays displayed while `follow` is on. */
const lingerMs = 2500;

/** Starts the page in `root`. */
export function startLive(host: Host, root: HTMLElement): void {
  const saved = viewState(host, 1, firstSettings);
  let lingering: ReturnType<typeof setTimeout> | undefined;
  const actions: LiveActions = {
    connect,
    command: command => host.notify(liveCommand, { command }),
    follow: on => dispatch({ type: 'follow', on }),
    chooseTag(tag) {
      dispatch({ type: 'tag', tag });
      connect();
    },
  };
  const store = createStore(initialState(saved.value, readTheme()), reduce, (state, before) => {
    if (before && state.settings !== before.settings) saved.change(state.settings);
    if (state.run && state.run.folder !== before?.run?.folder) saved.keepFolder(state.run.folder);
    if (!lingers(state)) lingering = void clearTimeout(lingering);
    else lingering ??= setTimeout(() => dispatch({ type: 'lingered' }), lingerMs);
    render(liveView(state, actions), root);
  });
  const { dispatch } = store;

  function connect(): void {
    dispatch({ type: 'connecting' });
    const { tag } = store.state.settings;
    host.request(liveReady, tag === '' ? {} : { tag }).then(
      snapshot => dispatch({ type: 'connected', snapshot }),
      (error: unknown) => dispatch({ type: 'failed', message: messageOf(error) }),
    );
  }

  host.onNotify(liveRun, ({ run }) => dispatch({ type: 'run', run }));
  host.onNotify(liveTags, ({ tags }) => dispatch({ type: 'tags', tags }));
  host.onNotify(liveEpisode, ({ episode }) => dispatch({ type: 'episode', episode }));
  host.onNotify(liveTokens, tokens => dispatch({ type: 'tokens', ...tokens }));
  onThemeChange(theme => dispatch({ type: 'theme', theme }));
  const keys: KeyMap = {
    f: { does: 'Follow the episodes, or stay', run: () => actions.follow(!store.state.settings.follow) },
    e: { does: 'Open the Episodes page', run: () => actions.command('episodes') },
  };
  onKeys(document, keys);
  offerKeyHelp(() => [{ title: 'Live episode', keys }]);
  onShown(host, connect);
  connect();
}
