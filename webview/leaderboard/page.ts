// The Leaderboard page: tables of evaluations, read again on demand, saved as CSV or Markdown.
import { render } from 'lit';
import {
  leaderboardOpen,
  leaderboardReady,
  leaderboardSave,
  type LeaderboardSnapshot,
} from '../../extension/protocol/leaderboard-page';
import { offerKeyHelp } from '../components/key-help';
import { messageOf, type Host } from '../shared/host';
import { viewState } from '../shared/state';
import { createStore } from '../shared/store';
import { leaderboardView, type LeaderboardActions, type LeaderboardState } from './leaderboard-view';

type LeaderboardEvent =
  { readonly type: 'loaded'; readonly snapshot: LeaderboardSnapshot } | { readonly type: 'failed'; message: string };

const reduce = (state: LeaderboardState, event: LeaderboardEvent): LeaderboardState =>
  event.type === 'loaded' ? { snapshot: event.snapshot, error: null } : { ...state, error: event.message };

/** Starts the page in `root`. */
export function startLeaderboard(host: Host, root: HTMLElement): void {
  const saved = viewState(host, 1, {});
  const failed = (error: unknown): void => dispatch({ type: 'failed', message: messageOf(error) });
  const actions: LeaderboardActions = {
    load,
    open: folder => host.notify(leaderboardOpen, { folder }),
    save: format => void host.request(leaderboardSave, { format }).catch(failed),
  };
  const store = createStore<LeaderboardState, LeaderboardEvent>({ snapshot: null, error: null }, reduce, state =>
    render(leaderboardView(state, actions), root),
  );
  const { dispatch } = store;

  function load(): void {
    host.request(leaderboardReady, null).then(snapshot => {
      saved.keepFolder(document.body.dataset.run ?? '');
      dispatch({ type: 'loaded', snapshot });
    }, failed);
  }

  offerKeyHelp(() => [
    {
      title: 'In a table',
      keys: { Tab: { does: 'Go to the next evaluation' }, Enter: { does: 'Open the dashboard of the evaluation' } },
    },
  ]);
  load();
}
