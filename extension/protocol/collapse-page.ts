// Messages between the extension host and the Collapse page. The host sends the run's metrics when the page opens, and
// each new line when it is written. Matrices, gradients and groups are stored in one file per step; the page requests
// the files of the selected step.
import type { NotificationType, RequestType } from 'vscode-messenger-common';
import type { CollapseSettings } from '../run-data/collapse-settings';
import type { CollapseFamily, GradientAnalysisRecord } from '../run-data/diagnostics';
import type { MetricNumbers } from '../run-data/metric-segments';
import type { RunSummary } from './page-state';
import type { RunEvent } from '../run-data/run-events';

/** Keys of metrics.jsonl that the page uses. The host sends no other keys. */
export const collapseKeys =
  /^(collapse|thoughts\/|rollout\/(in_group_reward|chosen_in_group_reward|filter_|zero_variance|invalid_answer)|actor\/(entropy|entropy_limit|grad_norm)$|response_length\/(mean|characters)$|(train|val-env)\/[^/]+\/success$)/;

/** Steps for which the run folder has a gradient analysis or a group table, ascending. */
export interface DiagnosedSteps {
  gradients: number[];
  groups: number[];
}

export interface CollapseSnapshot {
  run: RunSummary;
  steps: number[];
  /**
   * Values by metric key (`collapseKeys`). Each array has one value per entry of `steps`; the value is NaN if the
   * metrics line of the step lacks the key.
   */
  series: Record<string, Float64Array>;
  /** Alarms, early stops and changed settings. */
  events: RunEvent[];
  meanings: Record<string, string>;
  settings: CollapseSettings;
  diagnosed: DiagnosedSteps;
  /** Steps with a saved checkpoint, ascending. */
  checkpoints: number[];
  /** Name of the model that scored the stored rollouts of an attached run; null for other diagnoses. */
  scoredBy: string | null;
}

export const collapseReady: RequestType<null, CollapseSnapshot> = { method: 'collapse/ready' };

/**
 * New lines of metrics.jsonl since the last message. The list of lines is empty if only the run's status, its diagnosis
 * files or its checkpoints have changed.
 */
export const collapseLines: NotificationType<{
  run: RunSummary;
  lines: MetricNumbers[];
  events: RunEvent[];
  diagnosed: DiagnosedSteps;
  checkpoints: number[];
  scoredBy: string | null;
}> = { method: 'collapse/lines' };

/**
 * Returns the log-prob matrix of a family (a sample of prompt–reasoning pairs) at a diagnosed step, with the prompts
 * and reasoning texts. Null if the diagnosis file is missing or does not contain the family.
 */
export const collapseFamilyAt: RequestType<{ step: number; family: string }, CollapseFamily | null> = {
  method: 'collapse/family',
};

export const gradientsAt: RequestType<{ step: number }, GradientAnalysisRecord | null> = {
  method: 'collapse/step/gradients',
};

/** A prompt group of a training step. */
export interface PromptGroup {
  group_id: number;
  tag: string;
  /** Whether the group's episodes were used for training; null if unknown. */
  kept: boolean | null;
  /** Episodes of the group, ordered by `member`. `id` is null if the group was read from the group table. */
  episodes: { id: string | null; member: number; score: number; success: boolean | null; tokens: number | null }[];
}

/**
 * Returns the prompt groups of a step, read from its episodes or, if these are missing, from the group table
 * (`trainer.log_group_rv_table`). Null if both are missing.
 */
export const groupsAt: RequestType<{ step: number }, PromptGroup[] | null> = { method: 'collapse/step/groups' };

export type CollapseCommand =
  | { command: 'dashboard' | 'episodes' | 'diagnose' }
  /** Opens a training episode. */
  | { command: 'episode'; step: number; id: string }
  /** Opens docs/METRICS.md at a heading's anchor. */
  | { command: 'explain'; anchor: string }
  /** Copies configuration overrides to the clipboard. */
  | { command: 'copy'; text: string };
export const collapseCommand: NotificationType<CollapseCommand> = { method: 'collapse/command' };
