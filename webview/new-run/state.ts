// The state of the New Run page. The user's choices are the page's own and survive a reload; everything else comes from
// the trainer's plan.
import type { NewRunChoice, NewRunForm, PlannedRun } from '../../extension/protocol/new-run-page';

export interface NewRunState {
  /** `failed` is the message of configurations that could not be read. */
  readonly connection: 'connecting' | 'connected' | { readonly failed: string };
  readonly form: NewRunForm | null;
  readonly choice: NewRunChoice;
  /** The newest plan; null before the first one. */
  readonly planned: PlannedRun | null;
  /** A plan of the choices has been or will be requested. */
  readonly waiting: boolean;
  readonly starting: boolean;
  /** Error of a failed start, cleared by the next change. */
  readonly refused: string;
}

export const firstChoice: NewRunChoice = { preset: '', folder: '', values: {}, groups: null };

/** What a plan says before there is one. */
export const emptyPlan: PlannedRun = {
  values: {},
  tags: [],
  groups: { train: {}, val: {} },
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
  starting: false,
  refused: '',
});

/** Whether a run can be started from the choices. */
export const canStart = ({ form, planned, starting }: NewRunState): boolean =>
  form !== null && !starting && (planned?.problems.length ?? 0) === 0;

export interface PlacedProblems {
  /** Message by key of a field. */
  byKey: ReadonlyMap<string, string>;
  /** Problem of the environments and their groups. */
  ofGroups: string | undefined;
  /** Messages that belong to no part of the form. */
  others: readonly string[];
}

/** Where the problems of the plan are shown; a message is shown once. */
export function placedProblems({ form, planned, refused }: NewRunState): PlacedProblems {
  const problems = planned?.problems ?? [];
  const keys = new Set(form?.groups.flatMap(({ fields }) => fields.map(({ key }) => key)));
  const byKey = new Map<string, string>();
  for (const { key, message } of problems) if (keys.has(key) && !byKey.has(key)) byKey.set(key, message);
  const ofGroups = problems.find(({ key }) => /^es_manager\.(train|val)\.(env_groups|env_configs)/.test(key))?.message;
  const placed = new Set([...byKey.values(), ofGroups]);
  const others = [...problems.map(({ message }) => message).filter(message => !placed.has(message)), refused];
  return { byKey, ofGroups, others: others.filter(text => text !== '') };
}
