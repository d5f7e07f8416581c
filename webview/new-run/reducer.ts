// The reducer of the New Run page. Pure function.
import type {
  EngineList,
  FormProblem,
  NewRunChoice,
  NewRunForm,
  NewRunPrefill,
  PlannedRun,
} from '../../extension/protocol/new-run-page';
import { emptyPlan, isOfGroups, type NewRunState } from './state';

export type NewRunEvent =
  | { readonly type: 'connecting' }
  | { readonly type: 'connected'; readonly form: NewRunForm }
  | { readonly type: 'prefilled'; readonly prefill: NewRunPrefill }
  | { readonly type: 'failed'; readonly message: string }
  | { readonly type: 'changed'; readonly part: Partial<NewRunChoice> }
  | { readonly type: 'engines'; readonly list: EngineList }
  | { readonly type: 'planning' }
  | { readonly type: 'checked'; readonly plan: PlannedRun }
  | { readonly type: 'planned'; readonly plan: PlannedRun }
  | { readonly type: 'unplanned'; readonly message: string }
  | { readonly type: 'starting' }
  | { readonly type: 'started' }
  | { readonly type: 'refused'; readonly message: string };

export function reduce(state: NewRunState, event: NewRunEvent): NewRunState {
  switch (event.type) {
    case 'connecting':
      return { ...state, connection: 'connecting' };
    case 'connected':
      return prefilled(
        { ...state, connection: 'connected', form: event.form, choice: existing(state.choice, event.form) },
        event.form.prefill,
      );
    case 'prefilled':
      return prefilled(state, event.prefill);
    case 'engines': {
      if (!state.form) return state;
      const form = { ...state.form, ...event.list };
      return { ...state, form, choice: existing(state.choice, form) };
    }
    case 'failed':
      return { ...state, connection: { failed: event.message } };
    case 'changed':
      return changed(state, event.part);
    case 'planning':
      return { ...state, waiting: true, checking: true };
    case 'checked': {
      const isSound = event.plan.problems.length === 0;
      const estimate = isSound ? (state.planned?.estimate ?? null) : null; // the plan replaces the old estimate
      return { ...state, planned: { ...event.plan, estimate }, checking: false, waiting: isSound };
    }
    case 'planned':
      return { ...state, planned: event.plan, waiting: false, checking: false };
    case 'unplanned': {
      const problems = [{ key: '', message: event.message }];
      return { ...state, planned: { ...(state.planned ?? emptyPlan), estimate: null, problems }, ...idle };
    }
    case 'starting':
      return { ...state, starting: true };
    case 'started':
      return { ...state, starting: false };
    case 'refused':
      return { ...state, starting: false, refused: event.message };
  }
}

/** Shows the configuration of a run in the form, with the run as the starting point. */
function prefilled(state: NewRunState, prefill: NewRunPrefill | null): NewRunState {
  if (!prefill || !state.form) return state;
  const { preset, folder, values, overrides } = prefill;
  const presets = [...state.form.presets.filter(({ id }) => id !== preset.id), preset];
  const choice = {
    ...state.choice,
    preset: preset.id,
    folder,
    values,
    overrides,
    groups: null,
    sweep: null,
    engine: '',
  };
  return { ...state, form: { ...state.form, presets }, choice, planned: null, refused: '' };
}

const idle = { waiting: false, checking: false };

/**
 * Applies a change of the choices. A problem disappears with its cause: the problems of the changed keys are dropped at
 * once, and the problems of the complete configuration too. The next check reports those that remain.
 */
function changed(state: NewRunState, part: Partial<NewRunChoice>): NewRunState {
  const choice = { ...state.choice, ...part };
  const before = state.choice;
  const isOtherSource = (['preset', 'folder', 'engine', 'overrides'] as const).some(
    name => choice[name] !== before[name],
  );
  const remains = ({ key }: FormProblem): boolean =>
    !isOtherSource &&
    key !== '' &&
    choice.values[key] === before.values[key] &&
    !(isOfGroups(key) && choice.groups !== before.groups) &&
    !(key === 'sweep' && choice.sweep !== before.sweep);
  const planned = state.planned && { ...state.planned, problems: state.planned.problems.filter(remains) };
  return { ...state, choice, planned, refused: '', waiting: true, checking: true };
}

/**
 * Returns the restored choices. A preset or folder that no longer exists is replaced by the first available preset or
 * folder. If the chosen engine is no longer in the list of servers, the preset's engine is chosen instead.
 */
function existing(choice: NewRunChoice, { presets, folders, engines, chosen }: NewRunForm): NewRunChoice {
  const isKnown = presets.some(({ id }) => id === choice.preset);
  const isThere = folders.some(({ path }) => path === choice.folder);
  return {
    ...choice,
    engine: [chosen, choice.engine].find(name => engines.some(engine => engine.name === name)) ?? '',
    ...(!isKnown && { preset: presets[0]?.id ?? '', values: {}, overrides: '', groups: null, sweep: null }),
    ...(!isThere && { folder: folders[0]?.path ?? '' }),
  };
}
