// The state of the Timeline page. It is immutable; only the reducer changes it.
import type { TimelineFacts } from '../../extension/protocol/timeline-page';
import type { StepSummary, StepTimeline } from '../../extension/run-data/timeline';
import type { Theme } from '../shared/theme';
import { spanLabel } from './labels';
import type { StepLayout } from './step-layout';

/** The number of a step, or `current` for the step in progress. */
export type ShownStep = number | 'current';

/** Settings that are restored when the page is shown again. */
export interface ViewSettings {
  /** The open step; null shows the overview. */
  readonly step: ShownStep | null;
  /** Whether the page always opens the newest step, as soon as its spans are available. */
  readonly follow: boolean;
  /** Whether a table replaces the drawing. */
  readonly table: boolean;
  /** Whether the drawing of a step has a row for each episode. */
  readonly episodes: boolean;
}

export const settingsSchema = 1;
export const firstSettings: ViewSettings = { step: null, follow: false, table: false, episodes: true };

/** The visible range: microseconds since the start of the open step, or indices of steps in the overview. */
export interface Range {
  readonly from: number;
  readonly to: number;
}

/** The open step with its drawing. */
export interface OpenStep {
  readonly timeline: StepTimeline;
  readonly layout: StepLayout;
  readonly range: Range;
  /** Index of the selected span; null for none. */
  readonly selected: number | null;
  /**
   * Index of the span that the selected span waits for; null if it waits for none. The drawing outlines the awaited
   * span.
   */
  readonly cause: number | null;
  /** Spans that match the search, in order of their start; null without a search. */
  readonly matches: readonly number[] | null;
}

export interface TimelineState {
  /** Message of a failed snapshot request; null if there was no failure. */
  readonly failure: string | null;
  /** Message of a failed export; null if there was none. */
  readonly refusal: string | null;
  readonly facts: TimelineFacts | null;
  readonly steps: readonly StepSummary[];
  /** The visible range of the overview; null shows all steps. */
  readonly overview: Range | null;
  /** Index of the marked step of the overview. The arrow keys move the mark. */
  readonly marked: number;
  readonly open: OpenStep | null;
  /**
   * Reason why the step that the user has opened is not displayed yet: it is being read (`reading`), the run no longer
   * contains its spans (`missing`), or reading it failed. Null if there is no such reason.
   */
  readonly waiting: 'reading' | 'missing' | { readonly failed: string } | null;
  readonly search: string;
  readonly settings: ViewSettings;
  readonly theme: Theme;
}

export const initialState = (settings: ViewSettings, theme: Theme): TimelineState => ({
  failure: null,
  refusal: null,
  facts: null,
  steps: [],
  overview: null,
  marked: 0,
  open: null,
  waiting: null,
  search: '',
  settings,
  theme,
});

/** Returns the visible range of the overview. */
export const overviewRange = ({ overview, steps }: TimelineState): Range => overview ?? { from: 0, to: steps.length };

/** Returns the range that covers a whole step, in microseconds. */
export const wholeStep = ({ seconds }: StepTimeline): Range => ({ from: 0, to: Math.max(1, seconds * 1e6) });

/**
 * Returns the step that `follow` opens: the step in progress or, if there is none, the newest step whose spans the run
 * still contains.
 */
export function newestStep({ facts }: TimelineState): ShownStep | null {
  if (!facts) return null;
  return facts.run.live && facts.current !== '' ? 'current' : (facts.kept.at(-1) ?? null);
}

/**
 * Of the steps whose spans the run still contains, returns the nearest one before or after the open step; null if there
 * is none.
 */
export function neighbour({ facts, open, settings }: TimelineState, by: -1 | 1): ShownStep | null {
  if (!facts) return null;
  const at = open?.timeline.step ?? (settings.step === 'current' ? Infinity : (settings.step ?? 0));
  const { kept, current } = facts;
  if (by < 0) return kept.findLast(step => step < at) ?? null;
  const next = kept.find(step => step > at);
  return next ?? (settings.step !== 'current' && facts.run.live && current !== '' ? 'current' : null);
}

/** Whether the episodes' rows can be drawn. */
export const hasEpisodes = ({ timeline }: OpenStep): boolean => timeline.episodes.length > 0;

/**
 * Returns the indices of the spans whose label, name, lane or episode contains all words of a text; null for an empty
 * text.
 */
export function matchesOf({ names, episodes, spans }: StepTimeline, text: string): number[] | null {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return null;
  const kinds = names.map(kind => `${kind.lane} ${kind.name} ${spanLabel(kind)}`.toLowerCase());
  const ids = episodes.map(id => id.toLowerCase());
  const found: number[] = [];
  for (let i = 0; i < spans.start.length; i++) {
    const id = spans.episode[i] < 0 ? '' : ids[spans.episode[i]];
    if (words.every(word => kinds[spans.name[i]].includes(word) || id.includes(word))) found.push(i);
  }
  return found;
}
