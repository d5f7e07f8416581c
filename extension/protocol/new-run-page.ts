// Messages between the extension host and the New Run page. The page stores the user's choices. The host evaluates them
// in the planning process; the host also starts runs and writes files.
import type { NotificationType, RequestType } from 'vscode-messenger-common';
import type { EngineAbilities } from '../run-data/engine-limits';

/** A configuration to start from: a built-in preset or a file in the workspace. */
export interface PresetChoice {
  /** Name of a built-in preset, absolute path of a file, `run:` with the id of a run, or `fork:` with checkpoint and run. */
  id: string;
  name: string;
  description: string;
}

/** A configuration key as a form control. */
export interface Field {
  key: string;
  title: string;
  /** Description of the key from the configuration schema. */
  help: string;
  kind: 'number' | 'text' | 'flag' | 'choice';
  /** If `kind` is `choice`, the values among which the user chooses. */
  choices: string[];
}

export interface FieldGroup {
  title: string;
  fields: Field[];
}

/** An engine on a server, saved by the user, on which a run can sample and train. */
export interface EngineChoice {
  name: string;
  url: string;
  /** Model and rates in one line. */
  about: string;
  abilities: EngineAbilities;
}

export interface EngineList {
  engines: EngineChoice[];
  /** The engine to select; null to keep the selection. */
  chosen: string | null;
}

/** What the form shows first when the user duplicates or forks a run: the run's configuration and overrides. */
export interface NewRunPrefill {
  /** The run as a starting point. */
  preset: PresetChoice;
  /** Workspace folder of the run. */
  folder: string;
  /** The run's overrides of keys that are in the form. */
  values: Record<string, string>;
  /** All other overrides of the run, as one line. */
  overrides: string;
}

export interface NewRunForm extends EngineList {
  /** The run to duplicate or to fork; null to keep the user's choices. */
  prefill: NewRunPrefill | null;
  presets: PresetChoice[];
  /** Absolute paths of the workspace folders, in which runs can be started. */
  folders: { path: string; name: string }[];
  groups: FieldGroup[];
}

/** Number of prompt groups by environment tag. */
export type GroupsByTag = Record<string, number>;

/** The user's choices; the preset determines all other values. */
export interface NewRunChoice {
  preset: string;
  /** Path of a workspace folder. */
  folder: string;
  /** Name of a saved engine; empty for the preset's engine, which usually is this machine. */
  engine: string;
  /** Values by key, as the user typed them. */
  values: Record<string, string>;
  /** Overrides of other keys, `key=value` separated by blanks, as the user typed them; applied before `values`. */
  overrides: string;
  /** Environments that replace the preset's environments; null to keep the preset's environments. */
  groups: { train: GroupsByTag; val: GroupsByTag } | null;
  /** The sweep to start instead of a run; null for a run. */
  sweep: SweepChoice | null;
}

/** A sweep as the user typed it. */
export interface SweepChoice {
  /** Configuration keys with their values, separated by commas. */
  grid: { key: string; values: string }[];
  /** A number of seeds, or seeds separated by commas; empty for the seed of the configuration. */
  seeds: string;
  /** Number of runs at a time. */
  jobs: string;
}

/** An invalid value at `key`; if `key` is empty, a problem of the complete configuration. */
export interface FormProblem {
  key: string;
  message: string;
}

/** Estimated resources of a run: memory in bytes, times in seconds. */
export interface RunEstimate {
  /** `parameters` is null if the model is on a server and its size is not known. */
  model: { path: string; parameters: number | null; trained: 'all' | 'adapters' };
  peak: { phase: string; bytes: number };
  available: number;
  rows: { what: string; bytes: number; how: string; phase: string }[];
  fits: boolean;
  remedy: string | null;
  /** Where the rates of the server are from; null if the model runs on this machine. */
  remote: { rates: { basis: 'measured on the server' | 'given' | 'assumed' } } | null;
  /** Remarks on the configuration that are not errors. */
  notes: string[];
  time: {
    step_s: number;
    generation_s: number;
    total_s: number;
    basis: 'measured' | 'scaled' | 'assumed' | 'rates';
    run: { id: string; name: string } | null;
  } | null;
}

/** The result of planning a run from the user's choices. */
export interface PlannedRun {
  /** Value of each field, as text; missing if the configuration could not be read. */
  values: Record<string, string>;
  /** Every environment in the configuration, with its type. */
  tags: { tag: string; environment: string }[];
  groups: { train: GroupsByTag; val: GroupsByTag };
  /** The server on which the model runs; null for this machine. */
  engine: { url: string; model: string | null } | null;
  /** Estimated resources; null if `problems` is not empty. */
  estimate: RunEstimate | null;
  problems: FormProblem[];
  /** Number of runs of the sweep; null without a sweep, and for an invalid one. */
  sweepRuns: number | null;
  /** YAML text of the configuration, the preset with the user's changes, or of the sweep file. */
  yaml: string;
}

/** `preset` is the saved choice; a run is in the list of presets only if it is chosen. */
export const newRunReady: RequestType<{ preset: string }, NewRunForm> = { method: 'newRun/ready' };
/** Resolves and checks the user's choices; the answer has no estimate. */
export const newRunCheck: RequestType<NewRunChoice, PlannedRun> = { method: 'newRun/check' };
/** Checks the user's choices and estimates the resources; may fetch the small files of a model. */
export const newRunPlan: RequestType<NewRunChoice, PlannedRun> = { method: 'newRun/plan' };
/** Starts a run or a sweep; resolves when it has started. Rejects with the reason if it could not start. */
export const newRunStart: RequestType<NewRunChoice, null> = { method: 'newRun/start' };
/** Lets the user connect to another engine. When that engine is saved, the host sends `newRunEngines`. */
export const newRunConnect: NotificationType<null> = { method: 'newRun/connect' };
/** Reports that the saved engines have changed, or that the page must select one of them. */
export const newRunEngines: NotificationType<EngineList> = { method: 'newRun/engines' };
/** Shows the configuration of a run in the form. */
export const newRunPrefill: NotificationType<NewRunPrefill> = { method: 'newRun/prefill' };
/** Saves the configuration as a file and opens it. */
export const newRunSave: NotificationType<NewRunChoice> = { method: 'newRun/save' };
