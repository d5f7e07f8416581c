// The Timeline page shows what a run spends its time on. For every step, the host sends the seconds per lane. When the
// user opens a step, the page requests the spans of this step. If the step is still in progress, the page requests the
// spans again whenever the trainer has written new ones.
import { render } from 'lit';
import {
  timelineCommand,
  timelineExport,
  timelineGrown,
  timelineReady,
  timelineStepAt,
} from '../../extension/protocol/timeline-page';
import { messageOf, type Host } from '../shared/host';
import { onShown } from '../shared/visibility';
import { offerKeyHelp } from '../components/key-help';
import { onKeys, type KeyMap } from '../shared/keyboard';
import { viewState } from '../shared/state';
import { createStore } from '../shared/store';
import { onThemeChange, readTheme } from '../shared/theme';
import type { TimelineActions } from './actions';
import { reduce } from './reducer';
import {
  firstSettings,
  initialState,
  neighbour,
  overviewRange,
  settingsSchema,
  type ShownStep,
  type TimelineState,
} from './state';
import { timelineView } from './timeline-view';
import { barKeys } from './step-bars';
import { spanKeys } from './step-canvas';

/** A zoom key changes the visible range by this factor. A pan key moves it by the share `panShare` of its width. */
const zoomFactor = 1.6;
const panShare = 0.2;

/** Starts the page in `root`. */
export function startTimeline(host: Host, root: HTMLElement): void {
  const saved = viewState(host, settingsSchema, firstSettings);
  let asked: ShownStep | null = null; // the step whose answer is pending
  const actions: TimelineActions = {
    load,
    command: command => host.notify(timelineCommand, { command }),
    openEpisode: id => host.notify(timelineCommand, { command: 'episode', id }),
    open: step => dispatch({ type: 'open', step }),
    move(by) {
      const next = neighbour(store.state, by);
      if (next !== null) dispatch({ type: 'open', step: next });
    },
    follow: follow => dispatch({ type: 'settings', settings: { follow } }),
    showTable: table => dispatch({ type: 'settings', settings: { table } }),
    unfold: episodes => dispatch({ type: 'settings', settings: { episodes } }),
    mark: index => dispatch({ type: 'mark', index }),
    zoom: (from, to) => dispatch({ type: 'zoom', range: { from, to } }),
    zoomSteps: (from, to) => dispatch({ type: 'zoom-steps', range: { from, to } }),
    zoomBy: factor => dispatch({ type: 'zoom-by', factor }),
    panBy: share => dispatch({ type: 'pan-by', share }),
    showAll: () => dispatch({ type: 'all' }),
    select: span => dispatch({ type: 'select', span }),
    nextMatch: by => dispatch({ type: 'match', by }),
    search: text => dispatch({ type: 'search', text }),
    exportTrace,
    dismiss: () => dispatch({ type: 'refused', message: null }),
  };
  const store = createStore(initialState(saved.value, readTheme()), reduce, (state, before) => {
    if (before && state.settings !== before.settings) saved.change(state.settings);
    render(timelineView(state, actions), root);
    read(state);
  });
  const { dispatch } = store;

  function load(): void {
    dispatch({ type: 'loading' });
    host.request(timelineReady, null).then(
      snapshot => {
        saved.keepFolder(snapshot.run.folder);
        dispatch({ type: 'loaded', snapshot });
      },
      (error: unknown) => dispatch({ type: 'failed', message: messageOf(error) }),
    );
  }

  /** Requests the open step if it has not been read yet. Only one request is in flight. */
  function read({ waiting, settings: { step } }: TimelineState): void {
    if (waiting !== 'reading' || step === null || asked !== null) return;
    asked = step;
    host
      .request(timelineStepAt, { step })
      .then(
        timeline => {
          asked = null;
          dispatch({ type: 'read', step, timeline });
        },
        (error: unknown) => {
          asked = null;
          dispatch({ type: 'unreadable', step, message: messageOf(error) });
        },
      )
      .finally(() => read(store.state)); // another step may have been opened meanwhile
  }

  function exportTrace(): void {
    const { settings, open, steps } = store.state;
    const range = overviewRange(store.state);
    const shown = steps.slice(Math.floor(range.from), Math.ceil(range.to));
    const from = settings.step === null ? (shown.at(0)?.step ?? 0) : (open?.timeline.step ?? 0);
    const to = settings.step === null ? (shown.at(-1)?.step ?? 0) : from;
    host
      .request(timelineExport, { from, to })
      .catch((error: unknown) => dispatch({ type: 'refused', message: messageOf(error) }));
  }

  host.onNotify(timelineGrown, ({ steps, ...facts }) => dispatch({ type: 'grown', facts, steps }));
  onThemeChange(theme => dispatch({ type: 'theme', theme }));
  const zoomIn = { does: 'Zoom in', run: () => actions.zoomBy(1 / zoomFactor) };
  const zoomOut = { does: 'Zoom out', run: () => actions.zoomBy(zoomFactor) };
  const keys: KeyMap = {
    ...{ w: zoomIn, '+': zoomIn, '=': zoomIn, s: zoomOut, '-': zoomOut },
    a: { does: 'Move to earlier times', run: () => actions.panBy(-panShare) },
    d: { does: 'Move to later times', run: () => actions.panBy(panShare) },
    '0': { does: 'Show everything', run: actions.showAll },
    ',': { does: 'Previous step', run: () => actions.move(-1) },
    '.': { does: 'Next step', run: () => actions.move(1) },
    f: { does: 'Follow the newest step, or stop following', run: () => actions.follow(!store.state.settings.follow) },
    e: { does: 'Show or hide the episodes', run: () => actions.unfold(!store.state.settings.episodes) },
    '/': { does: 'Search', run: () => root.querySelector<HTMLElement>('.search')?.focus() },
    n: { does: 'Next match', run: () => actions.nextMatch(1) },
    N: { does: 'Previous match', run: () => actions.nextMatch(-1) },
    Escape: { does: 'End the search, clear the selection, or return to all steps', run: escape },
  };
  onKeys(document, keys);
  offerKeyHelp(() => [
    { title: 'Timeline', keys },
    { title: 'In the bars of all steps', keys: barKeys },
    { title: 'In the timeline of a step', keys: spanKeys },
  ]);

  /**
   * Ends the search. If there is no search, clears the selection; if nothing is selected either, returns to the
   * overview.
   */
  function escape(): void {
    const { search, open, settings } = store.state;
    if (search !== '') actions.search('');
    else if (open !== null && open.selected !== null) actions.select(null);
    else if (settings.step !== null) actions.open(null);
  }

  onShown(host, load);
  load();
}
