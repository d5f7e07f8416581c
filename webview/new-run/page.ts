// The New Run page: a preset to start from, the important keys, the estimated resources, and the resulting
// configuration. After a change and a short pause, the page requests a new plan; answers to older requests are ignored.
import { render } from 'lit';
import {
  newRunConnect,
  newRunEngines,
  newRunPlan,
  newRunReady,
  newRunSave,
  newRunStart,
} from '../../extension/protocol/new-run-page';
import { messageOf, type Host } from '../shared/host';
import { viewState } from '../shared/state';
import { createStore } from '../shared/store';
import { newRunView } from './new-run-view';
import { type NewRunActions } from './actions';
import { reduce } from './reducer';
import { canStart, firstChoice, initialState } from './state';

const viewSchema = 1;
/** A new plan is requested this many milliseconds after the last change. */
const settleMs = 350;

/** Starts the page in `root`. */
export function startNewRun(host: Host, root: HTMLElement): void {
  const saved = viewState(host, viewSchema, firstChoice);
  let asked = 0;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const actions: NewRunActions = {
    connect,
    change(part, now = false) {
      dispatch({ type: 'changed', part });
      clearTimeout(timer);
      if (now) plan();
      else timer = setTimeout(plan, settleMs);
    },
    connectEngine() {
      dispatch({ type: 'changed', part: {} }); // the control shows the chosen engine again
      host.notify(newRunConnect, null);
      plan();
    },
    save: () => host.notify(newRunSave, store.state.choice),
    start,
  };
  const store = createStore(initialState(saved.value), reduce, (state, before) => {
    if (before && state.choice !== before.choice) saved.change(state.choice);
    render(newRunView(state, actions), root);
  });
  const { dispatch } = store;

  function connect(): void {
    dispatch({ type: 'connecting' });
    host.request(newRunReady, null).then(
      form => {
        dispatch({ type: 'connected', form });
        plan();
      },
      (error: unknown) => dispatch({ type: 'failed', message: messageOf(error) }),
    );
  }

  function plan(): void {
    const mine = ++asked;
    dispatch({ type: 'planning' });
    host.request(newRunPlan, store.state.choice).then(
      answer => mine === asked && dispatch({ type: 'planned', plan: answer }),
      (error: unknown) => mine === asked && dispatch({ type: 'unplanned', message: messageOf(error) }),
    );
  }

  function start(): void {
    if (!canStart(store.state)) return;
    dispatch({ type: 'starting' });
    host.request(newRunStart, store.state.choice).then(
      () => dispatch({ type: 'started' }),
      (error: unknown) => dispatch({ type: 'refused', message: messageOf(error) }),
    );
  }

  host.onNotify(newRunEngines, list => {
    dispatch({ type: 'engines', list });
    plan();
  });
  document.addEventListener('keydown', event => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) start();
  });
  connect();
}
