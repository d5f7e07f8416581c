// The Play page: the user takes the model's place and plays an environment. The session is in the host, which replies
// to each request with the session's state. The page displays the state and the key bindings. Only one request is in
// flight; keys that the user presses in the meantime are dropped.
import { render } from 'lit';
import type { PlayDo } from '../../extension/protocol/environment-tools';
import { playCommand, playDo, playReady, playStale } from '../../extension/protocol/play-page';
import { offerKeyHelp } from '../components/key-help';
import { messageOf, type Host } from '../shared/host';
import { onShown } from '../shared/visibility';
import { isTyping } from '../shared/keyboard';
import { viewState } from '../shared/state';
import { createStore } from '../shared/store';
import { playView } from './play-view';
import { type PlayActions } from './actions';
import { reduce } from './reducer';
import { namedKeys } from './action-keys';
import { requestKeys, requestOfKey } from './requests';
import { initialState } from './state';

/** Starts the page in `root`. */
export function startPlay(host: Host, root: HTMLElement): void {
  const saved = viewState(host, 1, {});
  const actions: PlayActions = {
    connect,
    ask: request => void ask(request),
    press,
    view: step => dispatch({ type: 'view', step }),
    typeAnswer: text => dispatch({ type: 'answer-typed', text }),
    typeSeed: text => dispatch({ type: 'seed-typed', text }),
    openSource: at => host.notify(playCommand, { command: 'source', ...(at !== undefined && { at }) }),
    check: () => host.notify(playCommand, { command: 'check' }),
  };
  const store = createStore(initialState, reduce, state => render(playView(state, actions), root));
  const { dispatch } = store;

  function connect(): void {
    dispatch({ type: 'connecting' });
    host.request(playReady, null).then(
      reply => {
        saved.keepFolder(document.body.dataset.run ?? '');
        dispatch({ type: 'connected', reply });
      },
      (error: unknown) => dispatch({ type: 'failed', message: messageOf(error) }),
    );
  }

  async function ask(request: PlayDo | null): Promise<void> {
    if (!request || store.state.busy) return;
    dispatch({ type: 'asked' });
    try {
      dispatch({ type: 'replied', asked: request, reply: await host.request(playDo, request) });
    } catch (error) {
      dispatch({ type: 'refused', message: messageOf(error) });
    }
    // Keeps the focus in the answer field, so that the user can type the next answer.
    if (request.do === 'act' && typeof request.action === 'string') root.querySelector<HTMLElement>('.answer')?.focus();
  }

  function press(key: string): void {
    const session = store.state.reply?.session;
    if (session) void ask(requestOfKey(key, session) ?? null);
  }

  document.addEventListener('keydown', event => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || isTyping(event)) return;
    const session = store.state.reply?.session;
    if (!session || requestOfKey(event.key, session) === undefined) return;
    event.preventDefault();
    press(event.key);
  });
  offerKeyHelp(() => [
    { title: 'Actions', keys: namedKeys(store.state.reply?.session?.actions ?? []) },
    { title: 'Episode', keys: requestKeys },
  ]);
  host.onNotify(playStale, ({ file }) => dispatch({ type: 'stale', file }));
  onShown(host, connect);
  connect();
}
