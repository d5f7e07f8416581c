// Messages between the extension host and the New Run page. The page owns what its reader chose; the host says what that comes to, by asking
// the trainer's own terminal (`ragen plan`), and is the only one that starts anything or writes a file.
import type { NotificationType, RequestType } from 'vscode-messenger-common';

/** A configuration to start from: a shipped preset, or a file of the workspace. */
export interface PresetChoice {
  /** The name of a shipped preset, or the absolute path of a file. */
  id: string;
  name: string;
  description: string;
}

/** A key of the configuration as a control. */
export interface Field {
  key: string;
  title: string;
  /** What the key means, from the configuration's schema. */
  help: string;
  kind: 'number' | 'text' | 'flag' | 'choice';
  /** What a choice may be. */
  choices: string[];
}

export interface FieldGroup {
  title: string;
  fields: Field[];
}

export interface NewRunForm {
  presets: PresetChoice[];
  /** Absolute paths of the workspace's folders, in which runs can be. */
  folders: { path: string; name: string }[];
  groups: FieldGroup[];
}

/** Prompt groups by environment tag. */
export type GroupsByTag = Record<string, number>;

/** What the reader chose: everything else is the preset's. */
export interface NewRunChoice {
  preset: string;
  /** Path of a folder of the workspace. */
  folder: string;
  /** Values by key, as they were typed. */
  values: Record<string, string>;
  /** In place of the preset's environments. */
  groups: { train: GroupsByTag; val: GroupsByTag } | null;
}

/** What is wrong with a value; without a key, with the whole. */
export interface FormProblem {
  key: string;
  message: string;
}

/** Memory in bytes; times in seconds. */
export interface RunEstimate {
  model: { path: string; parameters: number; trained: 'all' | 'adapters' };
  peak: { phase: string; bytes: number };
  available: number;
  rows: { what: string; bytes: number; how: string; phase: string }[];
  fits: boolean;
  remedy: string | null;
  /** Sentences on the configuration that are no mistakes. */
  notes: string[];
  time: {
    step_s: number;
    generation_s: number;
    total_s: number;
    basis: 'measured' | 'scaled' | 'assumed';
    run: { id: string; name: string } | null;
  } | null;
}

/** What a choice comes to. */
export interface PlannedRun {
  /** The value of each field, as text; missing where the configuration could not be read. */
  values: Record<string, string>;
  /** Every environment that the configuration knows, with its kind. */
  tags: { tag: string; environment: string }[];
  groups: { train: GroupsByTag; val: GroupsByTag };
  /** Null where there are problems. */
  estimate: RunEstimate | null;
  problems: FormProblem[];
  /** The configuration to be saved: the preset and what was changed. */
  yaml: string;
}

export const newRunReady: RequestType<null, NewRunForm> = { method: 'newRun/ready' };
export const newRunPlan: RequestType<NewRunChoice, PlannedRun> = { method: 'newRun/plan' };
/** Starts a run; answers once it is there. Rejects with the reason where it could not be started. */
export const newRunStart: RequestType<NewRunChoice, null> = { method: 'newRun/start' };
/** Saves the configuration as a file and opens it. */
export const newRunSave: NotificationType<NewRunChoice> = { method: 'newRun/save' };
