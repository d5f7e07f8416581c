// The reducer of the Collapse page. The page updates the run's series in place before it dispatches an event. The
// reducer recomputes the diagnoses if the version of the series has changed. Apart from reading the series, it is a
// pure function.
import type { CollapseSnapshot, PromptGroup } from '../../extension/protocol/collapse-page';
import type { CollapseFamily, GradientAnalysisRecord } from '../../extension/run-data/diagnostics';
import type { Theme } from '../shared/theme';
import { filterAt } from '../../extension/run-data/collapse-settings';
import { judgedStep } from './step/groups';
import { type GroupCell } from './step/group-cell';
import { cellWithin, firstCell, scoredFamily, type Cell } from './step/matrix';
import type { FamilyName } from '../../extension/run-data/interpretation/run-series';
import { diagnosesOf, matrixInView, positionOf, type CollapseState, type RunFacts, type StepFiles } from './state';

export type CollapseEvent =
  | { readonly type: 'loading' }
  | { readonly type: 'loaded'; readonly snapshot: CollapseSnapshot }
  | { readonly type: 'failed'; readonly message: string }
  | ({ readonly type: 'grown' } & NewFacts)
  | { readonly type: 'matrix'; readonly step: number; readonly family: CollapseFamily | null }
  | { readonly type: 'groups'; readonly step: number; readonly groups: readonly PromptGroup[] | null }
  | { readonly type: 'gradients'; readonly step: number; readonly record: GradientAnalysisRecord | null }
  | { readonly type: 'unreadable'; readonly part: keyof StepFiles; readonly step: number; readonly message: string }
  /** Selects a step; with null, the page follows the newest step. */
  | { readonly type: 'step'; readonly step: number | null }
  /** The user has selected a step; null means that the page follows the newest step again. Stops playback. */
  | { readonly type: 'scrubbed'; readonly step: number | null }
  /** Selects the previous or the next diagnosis. */
  | { readonly type: 'moved'; readonly by: -1 | 1 }
  | { readonly type: 'first' }
  | { readonly type: 'play' }
  /** The playback timer has fired, so the next diagnosis is selected. */
  | { readonly type: 'tick' }
  | { readonly type: 'family'; readonly family: FamilyName }
  | { readonly type: 'cell'; readonly cell: Cell }
  | { readonly type: 'table'; readonly open: boolean }
  | { readonly type: 'group-cell'; readonly cell: GroupCell }
  | { readonly type: 'analysis'; readonly name: string }
  | { readonly type: 'theme'; readonly theme: Theme };

/** Facts that may change with new metric lines. `events` contains only the new events. */
export type NewFacts = Pick<RunFacts, 'run' | 'events' | 'diagnosed' | 'checkpoints' | 'scoredBy'>;

export function reduce(state: CollapseState, event: CollapseEvent): CollapseState {
  switch (event.type) {
    case 'loading':
      return state.facts || state.failure === null ? state : { ...state, failure: null };
    case 'loaded': {
      const { run, events, meanings, settings, diagnosed, checkpoints, scoredBy } = event.snapshot;
      const facts = { run, events, meanings, settings, diagnosed, checkpoints, scoredBy };
      return withDiagnoses(state, { failure: null, facts });
    }
    case 'failed':
      return { ...state, failure: event.message, facts: null, playing: false };
    case 'grown':
      return state.facts ? withDiagnoses(state, { facts: withNewFacts(state.facts, event) }) : state;
    case 'matrix':
      return withMatrix(state, event.step, event.family);
    case 'groups':
      return withGroups(state, event.step, event.groups);
    case 'gradients':
      return withFile(state, 'gradients', { step: event.step, content: event.record });
    case 'unreadable':
      return withFile(state, event.part, { step: event.step, failed: event.message });
    case 'step':
      return atStep(state, event.step);
    case 'scrubbed':
      return atStep(paused(state), event.step);
    case 'moved':
      return moved(state, event.by);
    case 'first': {
      const first = state.diagnoses.stops[0] ?? state.series.steps.at(0);
      return first === undefined ? state : atStep(state, first);
    }
    case 'play':
      return played(state);
    case 'tick':
      return ticked(state);
    case 'family':
      return event.family === state.settings.family ? state : withFamily(state, event.family);
    case 'cell':
      return withCell(state, event.cell);
    case 'table':
      return event.open === state.tableOpen ? state : { ...state, tableOpen: event.open };
    case 'group-cell':
      return { ...state, groupCell: event.cell };
    case 'analysis':
      return { ...state, analysis: event.name };
    case 'theme':
      return { ...state, theme: event.theme };
  }
}

/** Returns the state with `change` applied. If the version of the series has changed, the diagnoses are recomputed. */
function withDiagnoses(state: CollapseState, change: Partial<CollapseState>): CollapseState {
  const { series, version, settings } = state;
  if (series.version === version) return { ...state, ...change };
  return { ...state, ...change, version: series.version, diagnoses: diagnosesOf(series, settings.family) };
}

function withNewFacts(facts: RunFacts, { run, events, diagnosed, checkpoints, scoredBy }: NewFacts): RunFacts {
  return {
    ...facts,
    run,
    diagnosed,
    checkpoints,
    scoredBy,
    events: events.length > 0 ? [...facts.events, ...events] : facts.events,
  };
}

const withFamily = (state: CollapseState, family: FamilyName): CollapseState => ({
  ...state,
  settings: { ...state.settings, family },
  diagnoses: diagnosesOf(state.series, family),
});

const withFile = <P extends keyof StepFiles>(state: CollapseState, part: P, file: StepFiles[P]): CollapseState => ({
  ...state,
  files: { ...state.files, [part]: file },
});

/**
 * Stores the matrix of a step. If a different matrix was displayed before, selects the first cell of the new matrix and
 * closes its table.
 */
function withMatrix(state: CollapseState, step: number, family: CollapseFamily | null): CollapseState {
  if (!family) return withFile(state, 'matrix', { step, content: null });
  const shown = matrixInView(state);
  if (shown?.family === family) return withFile(state, 'matrix', { step, content: shown });
  const content = scoredFamily(family);
  return { ...withFile(state, 'matrix', { step, content }), cell: firstCell(content), tableOpen: false };
}

/**
 * Stores the groups with the reasons why the filter kept or dropped them. The reasons are derived from the filter
 * settings that were in effect at the step.
 */
function withGroups(state: CollapseState, step: number, groups: readonly PromptGroup[] | null): CollapseState {
  const { facts } = state;
  if (!facts || !groups) return withFile(state, 'groups', { step, content: null });
  const content = judgedStep(groups, filterAt(facts.settings.filter, facts.events, step));
  return { ...withFile(state, 'groups', { step, content }), groupCell: { row: 0, member: 0 } };
}

function withCell(state: CollapseState, to: Cell): CollapseState {
  const scored = matrixInView(state);
  if (!scored || scored.family.samples.length === 0) return state;
  const cell = cellWithin(scored, to);
  return cell.row === state.cell.row && cell.column === state.cell.column ? state : { ...state, cell };
}

const atStep = (state: CollapseState, step: number | null): CollapseState =>
  step === state.settings.step ? state : { ...state, settings: { ...state.settings, step } };

const paused = (state: CollapseState): CollapseState => (state.playing ? { ...state, playing: false } : state);

const stopAfter = ({ diagnoses }: CollapseState, step: number): number | undefined =>
  diagnoses.stops.find(stop => stop > step);

function moved(state: CollapseState, by: -1 | 1): CollapseState {
  const { step } = positionOf(state);
  const next = by > 0 ? stopAfter(state, step) : state.diagnoses.stops.findLast(stop => stop < step);
  return next === undefined ? paused(state) : atStep(paused(state), next);
}

/** Starts or stops playback. At the last diagnosis, playback starts again from the first. */
function played(state: CollapseState): CollapseState {
  const { stops } = state.diagnoses;
  if (state.playing) return paused(state);
  if (stops.length < 2) return state;
  const isAtEnd = positionOf(state).step >= stops[stops.length - 1];
  return { ...(isAtEnd ? atStep(state, stops[0]) : state), playing: true };
}

function ticked(state: CollapseState): CollapseState {
  if (!state.playing) return state;
  const next = stopAfter(state, positionOf(state).step);
  return next === undefined ? paused(state) : atStep(state, next);
}
