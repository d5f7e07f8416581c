// The Collapse page: whether the model's reasoning still depends on its prompt. The host sends the complete series
// first and then new lines. Matrices, prompt groups and gradients are in separate files for each step, so the page
// requests them only for the selected step.
import { render } from 'lit';
import {
  collapseCommand,
  collapseLines,
  collapseReady,
  type CollapseCommand,
} from '../../extension/protocol/collapse-page';
import { messageOf, type Host } from '../shared/host';
import { onShown } from '../shared/visibility';
import { offerKeyHelp } from '../components/key-help';
import { onKeys, type KeyMap } from '../shared/keyboard';
import { viewState } from '../shared/state';
import { createStore } from '../shared/store';
import { onThemeChange, readTheme } from '../shared/theme';
import { collapseView } from './collapse-view';
import { type CollapseActions } from './actions';
import { setDataColours } from './css-colours';
import { reduce } from './reducer';
import { RunSeries } from '../../extension/run-data/interpretation/run-series';
import { episodeOfCell, firstSettings, initialState, playInterval, settingsSchema, wantedFiles } from './state';
import { stepRequests } from './step/step-requests';
import { groupKeys } from './step/groups';
import { matrixKeys } from './step/matrix-canvas';

/** Starts the page in `root`. */
export function startCollapse(host: Host, root: HTMLElement): void {
  const saved = viewState(host, settingsSchema, firstSettings);
  const series = new RunSeries();
  let playing: ReturnType<typeof setInterval> | undefined;
  const command = (of: CollapseCommand): void => host.notify(collapseCommand, of);
  const openEpisode = (id: string): void => command({ command: 'episode', step: episodeStep(id), id });
  const actions: CollapseActions = {
    load,
    command: name => command({ command: name }),
    openEpisode,
    explain: anchor => command({ command: 'explain', anchor }),
    copy: text => command({ command: 'copy', text }),
    go: step => dispatch({ type: 'step', step }),
    scrub: step => dispatch({ type: 'scrubbed', step }),
    move: by => dispatch({ type: 'moved', by }),
    togglePlay: () => dispatch({ type: 'play' }),
    chooseFamily: family => dispatch({ type: 'family', family }),
    selectCell: cell => dispatch({ type: 'cell', cell }),
    openCell() {
      const id = episodeOfCell(store.state);
      if (id !== undefined) openEpisode(id);
    },
    openTable: open => dispatch({ type: 'table', open }),
    stopAt: cell => dispatch({ type: 'group-cell', cell }),
    chooseAnalysis: name => dispatch({ type: 'analysis', name }),
  };

  const requests = stepRequests(host, event => dispatch(event));
  const store = createStore(initialState(series, saved.value, readTheme()), reduce, (state, before) => {
    if (before && state.settings !== before.settings) saved.change(state.settings);
    if (!state.playing) playing = void clearInterval(playing);
    else playing ??= setInterval(() => dispatch({ type: 'tick' }), playInterval(state));
    if (state.facts) setDataColours(state.theme, state.facts.run);
    render(collapseView(state, actions), root);
    const wanted = wantedFiles(state);
    if (wanted) requests.ask(wanted);
  });
  const { dispatch } = store;

  function load(): void {
    dispatch({ type: 'loading' });
    host.request(collapseReady, null).then(
      snapshot => {
        series.load(snapshot);
        saved.keepFolder(snapshot.run.folder);
        requests.forget();
        dispatch({ type: 'loaded', snapshot });
      },
      (error: unknown) => dispatch({ type: 'failed', message: messageOf(error) }),
    );
  }

  host.onNotify(collapseLines, ({ lines, ...facts }) => {
    if (!store.state.facts) return; // before the first snapshot, which will include these lines
    if (lines.length > 0) {
      series.append(lines);
      requests.retry();
    }
    dispatch({ type: 'grown', ...facts });
  });
  onThemeChange(theme => dispatch({ type: 'theme', theme }));
  const keys: KeyMap = {
    ArrowLeft: { does: 'Previous step', run: () => actions.move(-1) },
    ArrowRight: { does: 'Next step', run: () => actions.move(1) },
    Home: { does: 'First step', run: () => dispatch({ type: 'first' }) },
    End: { does: 'Newest step', run: () => dispatch({ type: 'step', step: null }) },
    ' ': { does: 'Play the steps, or pause', run: actions.togglePlay },
  };
  onKeys(document, keys);
  offerKeyHelp(() => [
    { title: 'Collapse', keys },
    { title: 'In the matrix', keys: matrixKeys },
    { title: 'In the prompt groups', keys: groupKeys },
  ]);
  onShown(host, load);
  load();
}

/** Returns the training step in an episode's id: `train-000060-g015-m00`. */
const episodeStep = (id: string): number => Number(/^train-(\d+)-/.exec(id)?.[1] ?? NaN);
