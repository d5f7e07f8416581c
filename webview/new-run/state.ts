// The state of the New Run page. The page stores the user's choices, which survive a reload; all other data comes from
// the trainer's plan.
import type { NewRunChoice, NewRunForm, PlannedRun } from '../../extension/protocol/new-run-page';

export interface NewRunState {
  /** `failed` is the error message if the configurations could not be read. */
  readonly connection: 'connecting' | 'connected' | { readonly failed: string };
  readonly form: NewRunForm | null;
  readonly choice: NewRunChoice;
  /** The newest plan; null before the first plan. */
  readonly planned: PlannedRun | null;
  /** Whether a plan of the current choices is pending. */
  readonly waiting: boolean;
  /** Whether a check of the current choices is pending; the check precedes the plan. */
  readonly checking: boolean;
  readonly starting: boolean;
  /** Error message of a failed start; the next change clears it. */
  readonly refused: string;
}

export const firstChoice: NewRunChoice = {
  preset: '',
  folder: '',
  engine: '',
  values: {},
  overrides: '',
  groups: null,
  sweep: null,
};

/** The plan displayed before the first plan arrives. */
export const emptyPlan: PlannedRun = {
  values: {},
  tags: [],
  groups: { train: {}, val: {} },
  engine: null,
  sweepRuns: null,
  estimate: null,
  problems: [],
  yaml: '',
};

export const initialState = (choice: NewRunChoice): NewRunState => ({
  connection: 'connecting',
  form: null,
  choice,
  planned: null,
  waiting: false,
  checking: false,
  starting: false,
  refused: '',
});

/** Whether a run can be started with the current choices; a pending check may still find problems. */
export const canStart = ({ form, planned, starting }: NewRunState): boolean =>
  form !== null && planned !== null && !starting && planned.problems.length === 0;

/** What the user must correct before a run can start. */
export interface StartObstacle {
  /**
   * Key of the first field with a problem, `es_manager` for the environments, `sweep` for the sweep, empty for the
   * messages above the form.
   */
  key: string;
  /** The remedy in one sentence. */
  text: string;
}

/** Returns why a run cannot be started; null if it can be started, is starting, or the values are not known yet. */
export function startObstacle(state: NewRunState): StartObstacle | null {
  const { form, planned, starting } = state;
  if (!form || !planned || starting || planned.problems.length === 0) return null;
  const { byKey, ofGroups, ofSweep } = placedProblems(state);
  const fields = form.groups.flatMap(group => group.fields).filter(({ key }) => byKey.has(key));
  const names = [
    ...fields.map(({ title }) => title),
    ...(ofGroups === undefined ? [] : ['Environments']),
    ...(ofSweep === undefined ? [] : ['Sweep']),
  ];
  if (names.length === 0) return { key: '', text: 'Read the error to start' };
  const key = fields.length > 0 ? fields[0].key : ofGroups === undefined ? 'sweep' : 'es_manager';
  const rest = names.length > 1 ? ` and ${names.length - 1} more` : '';
  return { key, text: `Correct ${names[0]}${rest} to start` };
}

/** Whether a configuration key belongs to the environments and their groups. */
export const isOfGroups = (key: string): boolean => /^es_manager\.(train|val)\.(env_groups|env_configs)/.test(key);

export interface PlacedProblems {
  /** Message of each field, by key. */
  byKey: ReadonlyMap<string, string>;
  /** Message about the environments and their groups; undefined without a problem. */
  ofGroups: string | undefined;
  /** Message about the sweep; undefined without a problem. */
  ofSweep: string | undefined;
  /** Messages without a field in the form. */
  others: readonly string[];
}

/** Assigns the problems of the plan to parts of the form; each message is shown once. */
export function placedProblems({ form, planned, refused }: NewRunState): PlacedProblems {
  const problems = planned?.problems ?? [];
  const keys = new Set(form?.groups.flatMap(({ fields }) => fields.map(({ key }) => key)));
  const byKey = new Map<string, string>();
  for (const { key, message } of problems) if (keys.has(key) && !byKey.has(key)) byKey.set(key, message);
  const ofGroups = problems.find(({ key }) => isOfGroups(key))?.message;
  const ofSweep = problems.find(({ key }) => key === 'sweep')?.message;
  const placed = new Set([...byKey.values(), ofGroups, ofSweep]);
  const others = [...problems.map(({ message }) => message).filter(message => !placed.has(message)), refused];
  return { byKey, ofGroups, ofSweep, others: others.filter(text => text !== '') };
}
