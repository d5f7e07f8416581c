// The reducer of the Timeline page, a pure function. Opening a step sets `waiting`; the page then requests the step
// from the host.
import type { TimelineFacts, TimelineSnapshot } from '../../extension/protocol/timeline-page';
import type { StepSummary, StepTimeline } from '../../extension/run-data/timeline';
import type { Theme } from '../shared/theme';
import { causeOf } from './span-relations';
import { layOut } from './step-layout';
import {
  matchesOf,
  newestStep,
  overviewRange,
  wholeStep,
  type OpenStep,
  type Range,
  type ShownStep,
  type TimelineState,
  type ViewSettings,
} from './state';

export type TimelineEvent =
  | { readonly type: 'loading' }
  | { readonly type: 'loaded'; readonly snapshot: TimelineSnapshot }
  | { readonly type: 'failed'; readonly message: string }
  | { readonly type: 'grown'; readonly facts: TimelineFacts; readonly steps: readonly StepSummary[] }
  | { readonly type: 'open'; readonly step: ShownStep | null }
  | { readonly type: 'read'; readonly step: ShownStep; readonly timeline: StepTimeline | null }
  | { readonly type: 'unreadable'; readonly step: ShownStep; readonly message: string }
  | { readonly type: 'settings'; readonly settings: Partial<Omit<ViewSettings, 'step'>> }
  | { readonly type: 'zoom'; readonly range: Range }
  | { readonly type: 'zoom-steps'; readonly range: Range }
  | { readonly type: 'zoom-by'; readonly factor: number }
  | { readonly type: 'pan-by'; readonly share: number }
  | { readonly type: 'all' }
  | { readonly type: 'mark'; readonly index: number }
  | { readonly type: 'select'; readonly span: number | null }
  | { readonly type: 'match'; readonly by: -1 | 1 }
  | { readonly type: 'search'; readonly text: string }
  | { readonly type: 'refused'; readonly message: string | null }
  | { readonly type: 'theme'; readonly theme: Theme };

/** Width of the shortest range to which the user can zoom in a step, in microseconds. */
const shortest = 20;
/** Smallest number of steps to which the user can zoom in the overview. */
const fewest = 8;

export function reduce(state: TimelineState, event: TimelineEvent): TimelineState {
  switch (event.type) {
    case 'loading':
      return state.facts || state.failure === null ? state : { ...state, failure: null };
    case 'loaded': {
      const { steps, ...facts } = event.snapshot;
      const next = { ...state, failure: null, facts, steps };
      return followed({ ...next, marked: Math.max(0, steps.length - 1) }, state);
    }
    case 'failed':
      return { ...state, failure: event.message, facts: null };
    case 'grown':
      return grown(state, event.facts, event.steps);
    case 'open':
      return opened(
        { ...state, settings: { ...state.settings, follow: state.settings.follow && event.step === 'current' } },
        event.step,
      );
    case 'read':
      return event.step === state.settings.step ? withTimeline(state, event.timeline) : state;
    case 'unreadable':
      return event.step === state.settings.step ? { ...state, open: null, waiting: { failed: event.message } } : state;
    case 'settings':
      return changed(state, event.settings);
    case 'zoom':
      return withOpen(state, open => ({ ...open, range: within(event.range, wholeStep(open.timeline), shortest) }));
    case 'zoom-steps':
      return withOverview(state, event.range);
    case 'zoom-by':
      return inView(state, ({ from, to }) => {
        const half = ((to - from) * event.factor) / 2;
        const middle = (from + to) / 2;
        return { from: middle - half, to: middle + half };
      });
    case 'pan-by':
      return inView(state, ({ from, to }) => {
        const by = (to - from) * event.share;
        return { from: from + by, to: to + by };
      });
    case 'all':
      return state.settings.step === null
        ? { ...state, overview: null }
        : withOpen(state, open => ({ ...open, range: wholeStep(open.timeline) }));
    case 'mark':
      return marked(state, event.index);
    case 'select':
      return withOpen(state, open => selecting(open, event.span));
    case 'match':
      return withOpen(state, open => nextMatch(open, event.by));
    case 'search':
      return withOpen({ ...state, search: event.text }, open => ({
        ...open,
        matches: matchesOf(open.timeline, event.text),
      }));
    case 'refused':
      return { ...state, refusal: event.message };
    case 'theme':
      return { ...state, theme: event.theme };
  }
}

function grown(state: TimelineState, facts: TimelineFacts, steps: readonly StepSummary[]): TimelineState {
  if (!state.facts) return state; // before the snapshot, which will have these steps
  const atEnd = state.marked >= state.steps.length - 1;
  const all = steps.length > 0 ? [...state.steps, ...steps] : state.steps;
  const next = { ...state, facts, steps: all };
  const isCurrent = state.settings.step === 'current' && facts.current !== state.facts.current;
  // If the user has opened the step in progress and this step has ended, it stays open under its number.
  const ended = isCurrent && state.open && !state.settings.follow && facts.kept.includes(state.open.timeline.step);
  const again: TimelineState = ended
    ? opened(next, state.open.timeline.step)
    : isCurrent && facts.current !== ''
      ? { ...next, waiting: 'reading' }
      : next;
  return followed({ ...again, marked: atEnd ? Math.max(0, all.length - 1) : state.marked }, state);
}

/** Opens the newest step if `follow` is on and this step is not open yet. */
function followed(state: TimelineState, before: TimelineState): TimelineState {
  const newest = newestStep(state);
  if (!state.settings.follow) return state.facts && !before.facts ? opened(state, state.settings.step) : state;
  return newest === null || (newest === state.settings.step && before.facts !== null) ? state : opened(state, newest);
}

/** Opens a step. Unless the step is open already, the page then requests it. */
function opened(state: TimelineState, step: ShownStep | null): TimelineState {
  const settings = { ...state.settings, step };
  if (step === null) return { ...state, settings, open: null, waiting: null };
  const isOpen = state.open && state.settings.step === step && step !== 'current';
  return { ...state, settings, waiting: isOpen ? null : 'reading' };
}

function withTimeline(state: TimelineState, timeline: StepTimeline | null): TimelineState {
  if (!timeline) return { ...state, open: null, waiting: 'missing' };
  const before = state.open;
  const same = before?.timeline.step === timeline.step;
  const whole = wholeStep(timeline);
  // When new spans of the open step arrive, the visible range stays the same. Only a range that reached the end of the
  // step is extended to the new end.
  const all = !same || before.range.to >= wholeStep(before.timeline).to;
  const open: OpenStep = {
    timeline,
    layout: layOut(timeline, state.settings.episodes),
    range: all ? { from: same ? Math.min(before.range.from, whole.to) : 0, to: whole.to } : before.range,
    selected: null,
    cause: null,
    matches: matchesOf(timeline, state.search),
  };
  return { ...state, open, waiting: null };
}

function changed(state: TimelineState, settings: Partial<ViewSettings>): TimelineState {
  const next = { ...state, settings: { ...state.settings, ...settings } };
  if (settings.follow) return followed(next, { ...state, facts: null });
  if (settings.episodes === undefined) return next;
  return withOpen(next, open => ({ ...open, layout: layOut(open.timeline, settings.episodes!) }));
}

/** Changes the visible range of the open step or, if no step is open, of the overview. */
function inView(state: TimelineState, change: (range: Range) => Range): TimelineState {
  if (state.settings.step === null) return withOverview(state, change(overviewRange(state)));
  return withOpen(state, open => ({
    ...open,
    range: within(change(open.range), wholeStep(open.timeline), shortest),
  }));
}

function withOverview(state: TimelineState, range: Range): TimelineState {
  const whole = { from: 0, to: state.steps.length };
  const shown = within(range, whole, Math.min(fewest, whole.to));
  return { ...state, overview: shown.from <= 0 && shown.to >= whole.to ? null : shown };
}

function marked(state: TimelineState, index: number): TimelineState {
  const to = Math.max(0, Math.min(state.steps.length - 1, index));
  const { from, to: end } = overviewRange(state);
  const next = { ...state, marked: to };
  if (to >= from && to < end) return next;
  const width = end - from;
  const start = to < from ? to : to + 1 - width;
  return withOverview(next, { from: start, to: start + width });
}

/** Selects a span. If the span is outside the visible range, moves the range so that the span is in its middle. */
function selecting(open: OpenStep, span: number | null): OpenStep {
  if (span === null) return { ...open, selected: null, cause: null };
  const { start, us } = open.timeline.spans;
  const [from, to] = [start[span], start[span] + us[span]];
  const { range } = open;
  const width = range.to - range.from;
  const isShown = to >= range.from && from <= range.to;
  const middle = (from + to) / 2;
  const moved = { from: middle - width / 2, to: middle + width / 2 };
  return {
    ...open,
    selected: span,
    cause: open.timeline.spans.cause[span] < 0 ? null : causeOf(open.timeline, span),
    range: isShown ? range : within(moved, wholeStep(open.timeline), shortest),
  };
}

function nextMatch(open: OpenStep, by: -1 | 1): OpenStep {
  const { matches, selected } = open;
  if (!matches || matches.length === 0) return open;
  const at = selected === null ? -1 : matches.indexOf(selected);
  const to = at < 0 ? (by > 0 ? 0 : matches.length - 1) : (at + by + matches.length) % matches.length;
  return selecting(open, matches[to]);
}

const withOpen = (state: TimelineState, change: (open: OpenStep) => OpenStep): TimelineState =>
  state.open ? { ...state, open: change(state.open) } : state;

/**
 * Fits a range into `whole`: widens it to `least` if it is narrower, shortens it if it is wider than `whole`, and moves
 * it inside `whole`.
 */
function within({ from, to }: Range, whole: Range, least: number): Range {
  const width = Math.min(whole.to - whole.from, Math.max(least, to - from));
  const middle = (from + to) / 2;
  const start = Math.max(whole.from, Math.min(whole.to - width, middle - width / 2));
  return { from: start, to: start + width };
}
