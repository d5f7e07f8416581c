// The New Run page: a preset to start from, the important keys, the estimated resources, and the resulting
// configuration. After a change and a short pause, the page requests a new plan; answers to older requests are ignored.
import { render } from 'lit';
import {
  newRunCheck,
  newRunConnect,
  newRunEngines,
  newRunPlan,
  newRunPrefill,
  newRunReady,
  newRunSave,
  newRunStart,
} from '../../extension/protocol/new-run-page';
import { offerKeyHelp } from '../components/key-help';
import { messageOf, type Host } from '../shared/host';
import { viewState } from '../shared/state';
import { createStore } from '../shared/store';
import { newRunView } from './new-run-view';
import { type NewRunActions } from './actions';
import { reduce } from './reducer';
import { canStart, firstChoice, initialState, startObstacle } from './state';

const viewSchema = 1;
/** A new plan is requested this many milliseconds after the last change. */
const settleMs = 150;

/** Starts the page in `root`. */
export function startNewRun(host: Host, root: HTMLElement): void {
  const saved = viewState(host, viewSchema, firstChoice);
  let asked = 0;
  /** Whether the user has pressed Start while a check was pending. */
  let startsWhenChecked = false;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const actions: NewRunActions = {
    connect,
    change(part, now = false) {
      startsWhenChecked = false;
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
    host.request(newRunReady, { preset: store.state.choice.preset }).then(
      form => {
        dispatch({ type: 'connected', form });
        plan();
      },
      (error: unknown) => dispatch({ type: 'failed', message: messageOf(error) }),
    );
  }

  /** Checks the choices, which takes milliseconds, and then estimates the resources. */
  function plan(): void {
    const mine = ++asked;
    const { choice } = store.state;
    dispatch({ type: 'planning' });
    const ask = async (): Promise<void> => {
      const checked = await host.request(newRunCheck, choice);
      if (mine !== asked) return;
      dispatch({ type: 'checked', plan: checked });
      if (startsWhenChecked) start();
      if (checked.problems.length > 0) return;
      const planned = await host.request(newRunPlan, choice);
      if (mine === asked) dispatch({ type: 'planned', plan: planned });
    };
    ask().catch((error: unknown) => {
      if (mine !== asked) return;
      startsWhenChecked = false;
      dispatch({ type: 'unplanned', message: messageOf(error) });
    });
  }

  /** Starts the run. If something must be corrected, moves the focus there; if a check is pending, waits for it. */
  function start(): void {
    startsWhenChecked = store.state.checking && store.state.form !== null;
    if (startsWhenChecked) return;
    const obstacle = startObstacle(store.state);
    if (obstacle) return focusField(root, obstacle.key);
    if (!canStart(store.state)) return;
    dispatch({ type: 'starting' });
    host.request(newRunStart, store.state.choice).then(
      () => dispatch({ type: 'started' }),
      (error: unknown) => dispatch({ type: 'refused', message: messageOf(error) }),
    );
  }

  host.onNotify(newRunPrefill, prefill => {
    dispatch({ type: 'prefilled', prefill });
    plan();
  });
  host.onNotify(newRunEngines, list => {
    dispatch({ type: 'engines', list });
    plan();
  });
  document.addEventListener('keydown', event => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) start();
  });
  offerKeyHelp(() => [{ title: 'New run', keys: { 'Ctrl+Enter': { does: 'Start the run' } } }]);
  connect();
}

/** Scrolls to a field of the form and focuses its control; an empty key stands for the messages above the form. */
function focusField(root: HTMLElement, key: string): void {
  const part = root.querySelector<HTMLElement>(key === '' ? '.trouble' : `[data-key="${CSS.escape(key)}"]`);
  part?.scrollIntoView({ block: 'center' });
  const control = key === '' ? part : part?.querySelector<HTMLElement>('.field-control > *, vscode-text-field');
  control?.focus();
}
